#include "holdfast/app/option_set.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <optional>

namespace holdfast::app {
namespace {

std::optional<std::int64_t> parse_whole_number(const std::string& text) {
    if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
        return std::nullopt;
    std::int64_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// CLI11 gives the bare flag as no text.
std::optional<bool> parse_boolean(const std::string& text) {
    if (text.empty() || text == "true" || text == "on" || text == "yes" || text == "1") return true;
    if (text == "false" || text == "off" || text == "no" || text == "0") return false;
    return std::nullopt;
}

std::string joined(const std::vector<std::string_view>& words, std::string_view separator) {
    std::string text;
    for (const std::string_view word : words) {
        if (!text.empty()) text += separator;
        text += word;
    }
    return text;
}

}  // namespace

std::string environment_variable(std::string_view flag) {
    std::string name = "HOLDFAST_";
    for (const char c : flag)
        name += c == '-' ? '_' : (c >= 'a' && c <= 'z') ? static_cast<char>(c - 'a' + 'A') : c;
    return name;
}

std::string printable(std::string_view text) {
    constexpr std::size_t bytes_max = 80;
    std::string shown(text.substr(0, bytes_max));
    for (char& c : shown)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
    if (text.size() > bytes_max) shown += "...";
    return shown;
}

std::string option_set::called(std::string_view flag) const {
    std::string name = "--" + std::string(flag);
    if (source_ == environment::variables) name += " (" + environment_variable(flag) + ")";
    return name;
}

option_set::entry& option_set::add(option_name name, std::string_view shown_value) {
    entry& added = entries_.emplace_back();
    added.flag = name.flag;
    added.option = command_.add_option("--" + std::string(name.flag), added.text, std::string(name.description));
    added.option->group(std::string(name.group));
    std::string shown(shown_value);
    if (source_ == environment::variables) {
        added.option->envname(environment_variable(name.flag));
        shown += "  " + environment_variable(name.flag);
    }
    added.option->option_text(shown);
    return added;
}

void option_set::add_whole_number(option_name name, std::string_view unit, std::int64_t min, std::int64_t max,
                                  std::int64_t fallback, std::function<void(std::int64_t)> assign) {
    const std::string range = std::to_string(min) + " to " + std::to_string(max);
    entry& added = add(name, std::string(unit) + "=" + std::to_string(fallback) + " [" + range + "]");
    added.read = [this, name, range, min, max, assign = std::move(assign)](const std::string& text) {
        const std::optional<std::int64_t> number = parse_whole_number(text);
        if (!number || *number < min || *number > max)
            throw usage_error(called(name.flag) + ": \"" + printable(text) + "\" is not a whole number from " + range);
        assign(*number);
    };
}

void option_set::add_boolean(option_name name, bool& target) {
    entry& added = add(name, target ? "BOOLEAN=true" : "BOOLEAN=false");
    added.option->expected(0, 1);
    added.read = [this, name, &target](const std::string& text) {
        const std::optional<bool> value = parse_boolean(text);
        if (!value) throw usage_error(called(name.flag) + ": \"" + printable(text) + "\" is neither true nor false");
        target = *value;
    };
}

void option_set::add_text(option_name name, std::string_view placeholder, std::string& target) {
    entry& added = add(name, std::string(placeholder) + (target.empty() ? "" : "=" + target));
    added.read = [&target](const std::string& text) { target = text; };
}

void option_set::add_choice(option_name name, std::vector<std::string_view> choices, std::size_t fallback,
                            std::function<void(std::size_t)> assign) {
    entry& added = add(name, joined(choices, "|") + "=" + std::string(choices.at(fallback)));
    added.read = [this, name, choices = std::move(choices), assign = std::move(assign)](const std::string& text) {
        const auto chosen = std::find(choices.begin(), choices.end(), text);
        if (chosen == choices.end())
            throw usage_error(called(name.flag) + ": \"" + printable(text) + "\" is none of " + joined(choices, ", "));
        assign(static_cast<std::size_t>(chosen - choices.begin()));
    };
}

void option_set::read() const {
    for (const entry& entry : entries_) {
        if (entry.option->count() == 0) continue;
        // CLI11 gives `--port --database-url=X` the second as the first one's value. It may hold a secret: not shown.
        if (entry.text.starts_with("--")) throw usage_error(called(entry.flag) + " has no value");
        entry.read(entry.text);
    }
}

std::vector<std::string_view> option_set::flags() const {
    std::vector<std::string_view> flags;
    for (const entry& entry : entries_)
        flags.push_back(entry.flag);
    return flags;
}

}  // namespace holdfast::app
