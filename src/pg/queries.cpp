#include "holdfast/pg/queries.hpp"

#include "holdfast/pg/embedded_sql.hpp"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace holdfast::pg {
namespace {

struct query_source {
    query which;
    std::string_view name;
    std::string_view path;
    bool skip_locked;
};

constexpr std::array<query_source, query_count> sources{{
    {query::acquire_fast, "holdfast_acquire_fast", "queries/acquire.sql", true},
    {query::acquire_slow, "holdfast_acquire_slow", "queries/acquire.sql", false},
    {query::renew_fast, "holdfast_renew_fast", "queries/renew.sql", true},
    {query::renew_slow, "holdfast_renew_slow", "queries/renew.sql", false},
    {query::release_fast, "holdfast_release_fast", "queries/release.sql", true},
    {query::release_slow, "holdfast_release_slow", "queries/release.sql", false},
    {query::pass_on, "holdfast_pass_on", "queries/pass_on.sql", true},
    {query::restamp, "holdfast_restamp", "queries/restamp.sql", false},
    {query::look, "holdfast_look", "queries/look.sql", false},
    {query::probe, "holdfast_probe", "queries/probe.sql", false},
    {query::analyze, "holdfast_analyze", "queries/analyze.sql", false},
    {query::sweep, "holdfast_sweep", "queries/sweep.sql", false},
    {query::queue, "holdfast_queue", "queries/queue.sql", false},
    {query::announce, "holdfast_announce", "queries/announce.sql", false},
    {query::settle_memory, "holdfast_settle_memory", "queries/settle_memory.sql", false},
    {query::draw_node, "holdfast_draw_node", "queries/draw_node.sql", false},
    {query::beat, "holdfast_beat", "queries/beat.sql", false},
    {query::survey, "holdfast_survey", "queries/survey.sql", false},
    {query::tidy_queue, "holdfast_tidy_queue", "queries/tidy_queue.sql", false},
    {query::schema_version, "holdfast_schema_version", "queries/schema_version.sql", false},
    {query::advance_tokens, "holdfast_advance_tokens", "queries/advance_tokens.sql", false},
}};

std::string_view embedded_text(std::string_view path) {
    for (const embedded_file& file : embedded_sql())
        if (file.path == path) return file.text;
    throw std::logic_error("no embedded file " + std::string(path));
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

std::string quoted(std::string_view text, char quote) {
    std::string result(1, quote);
    for (const char each : text) {
        if (each == quote) result += quote;
        result += each;
    }
    return result + quote;
}

/// A string literal that is read the same whatever standard_conforming_strings says.
std::string quoted_literal(std::string_view text) {
    std::string literal = quoted(text, '\'');
    if (literal.find('\\') == std::string::npos) return literal;
    replace_all(literal, "\\", "\\\\");
    return " E" + literal;
}

}  // namespace

std::string quoted_identifier(std::string_view name) {
    return quoted(name, '"');
}

std::string_view query_name(query which) noexcept {
    return sources[static_cast<std::size_t>(which)].name;
}

std::string fill_in(std::string_view text, std::string_view schema, bool skip_locked) {
    const std::string identifier = quoted_identifier(schema);
    const std::array<std::pair<std::string_view, std::string>, 7> replacements{{
        {"{skip_locked}", skip_locked ? "SKIP LOCKED" : ""},
        {"{fencing_tokens}", quoted_literal(identifier + ".fencing_tokens")},
        {"{places}", quoted_literal(identifier + ".places")},
        {"{attachments}", quoted_literal(identifier + ".attachments")},
        {"{node_numbers}", quoted_literal(identifier + ".node_numbers")},
        {"{table}", quoted_literal(identifier + ".distributed_locks")},
        {"{schema}", identifier},
    }};
    std::string result;
    // In one pass: a schema may be called "{table}".
    while (!text.empty()) {
        const auto found = std::find_if(replacements.begin(), replacements.end(),
                                        [&](const auto& each) { return text.starts_with(each.first); });
        const bool placeholder = found != replacements.end();
        result += placeholder ? std::string_view(found->second) : text.substr(0, 1);
        text.remove_prefix(placeholder ? found->first.size() : 1);
    }
    return result;
}

query_texts::query_texts(std::string_view schema) {
    for (const query_source& source : sources) {
        assert(sources[static_cast<std::size_t>(source.which)].name == source.name);
        texts_[static_cast<std::size_t>(source.which)] =
            fill_in(embedded_text(source.path), schema, source.skip_locked);
    }
}

std::vector<migration> known_migrations() {
    constexpr std::string_view folder = "migrations/";
    std::vector<migration> migrations;
    for (const embedded_file& file : embedded_sql()) {  // sorted by path
        if (!file.path.starts_with(folder)) continue;
        const std::string_view name = file.path.substr(folder.size(), file.path.rfind('.') - folder.size());
        int version = 0;
        std::from_chars(name.data(), name.data() + name.size(), version);
        if (version != static_cast<int>(migrations.size()) + 1)
            throw std::logic_error("migrations are not numbered 1, 2, 3");
        migrations.push_back({version, std::string(name), file.text});
    }
    return migrations;
}

}  // namespace holdfast::pg
