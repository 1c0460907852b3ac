#ifndef HOLDFAST_APP_OPTION_SET_HPP
#define HOLDFAST_APP_OPTION_SET_HPP

// Options of a command line that may also come from the environment. CLI11 finds the texts; reading them is done here,
// after parsing, because its own conversion takes octal and hexadecimal numbers and its newer versions ignore a bad
// value in a variable without a word.

#include "holdfast/app/usage_error.hpp"

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace holdfast::app {

/// How an option is called and described. Views of literals.
struct option_name {
    std::string_view flag;         ///< kebab-case, without dashes
    std::string_view group;        ///< heading in --help
    std::string_view description;  ///< one line in --help
};

/// Collects options, then reads them all at once. Targets must outlive the set.
class option_set {
public:
    enum class environment { none, variables };

    /// Options are added to `command`; with `variables` each also listens to HOLDFAST_SNAKE_NAME.
    option_set(CLI::App& command, environment source) : command_(command), source_(source) {}

    /// Decimal digits only, `min` to `max`, both included. The value in `fallback` is the default that --help shows.
    void add_whole_number(option_name name, std::string_view unit, std::int64_t min, std::int64_t max,
                          std::int64_t fallback, std::function<void(std::int64_t)> assign);
    /// `true` or `false` (also on/off, yes/no, 1/0); the bare flag means true.
    void add_boolean(option_name name, bool& target);
    /// Any text.
    void add_text(option_name name, std::string_view placeholder, std::string& target);
    /// One of `choices`; the index of the chosen one is assigned.
    void add_choice(option_name name, std::vector<std::string_view> choices, std::size_t fallback,
                    std::function<void(std::size_t)> assign);

    /// Call after CLI11 has parsed. Assigns what was given; throws usage_error for the first value that cannot be read.
    /// What was not given keeps its target untouched; a variable that is set to nothing counts as not given.
    void read() const;

    /// The flags added so far, without dashes, in order.
    std::vector<std::string_view> flags() const;

private:
    struct entry {
        std::string_view flag;
        std::string text;
        CLI::Option* option = nullptr;
        std::function<void(const std::string&)> read;
    };

    entry& add(option_name name, std::string_view shown_value);
    std::string called(std::string_view flag) const;

    CLI::App& command_;
    environment source_;
    std::list<entry> entries_;  // CLI11 keeps the address of `text`
};

/// HOLDFAST_SNAKE_NAME for a kebab-name.
std::string environment_variable(std::string_view flag);

/// `text` for a one-line message: control characters replaced, cut to 80 bytes.
std::string printable(std::string_view text);

}  // namespace holdfast::app

#endif
