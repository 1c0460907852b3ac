#include "holdfast/app/logging.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <limits>
#include <optional>
#include <string>
#include <vector>

using namespace holdfast;
using namespace std::chrono_literals;
namespace json = boost::json;

namespace {

/// A pipe whose ends close with it.
class pipe_ends {
public:
    pipe_ends() { BOOST_REQUIRE_EQUAL(::pipe2(ends_.data(), O_CLOEXEC), 0); }
    ~pipe_ends() {
        close_reader();
        close_writer();
    }
    pipe_ends(const pipe_ends&) = delete;
    pipe_ends& operator=(const pipe_ends&) = delete;

    int reader() const { return ends_[0]; }
    int writer() const { return ends_[1]; }

    void close_reader() { close_end(ends_[0]); }
    void close_writer() { close_end(ends_[1]); }

    /// What is in the pipe until it is empty and has no writer; close_writer() first.
    std::string read_all() const {
        std::string text;
        std::array<char, 4096> chunk;
        for (ssize_t got; (got = ::read(ends_[0], chunk.data(), chunk.size())) > 0;)
            text.append(chunk.data(), static_cast<std::size_t>(got));
        return text;
    }

private:
    static void close_end(int& end) {
        if (end >= 0) ::close(end);
        end = -1;
    }

    std::array<int, 2> ends_{-1, -1};
};

std::vector<json::object> parsed_lines(const std::string& text) {
    std::vector<json::object> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at);
        BOOST_REQUIRE(end != std::string::npos);
        lines.push_back(json::parse(text.substr(at, end - at)).as_object());
        at = end + 1;
    }
    return lines;
}

std::string formatted(domain::log_field field) {
    return app::format_line(domain::timestamp{}, domain::log_level::info, "tried", {field});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(logging)

BOOST_AUTO_TEST_CASE(a_line_carries_time_level_event_and_fields_in_order) {
    const domain::timestamp moment{1'792'152'366'000'042us};

    const std::string line = app::format_line(
        moment, domain::log_level::warning, "listening",
        {{"address", std::string_view("127.0.0.1")}, {"port", std::int64_t{8080}}, {"slow", true}, {"share", 0.25}});

    BOOST_TEST(line == R"({"time":"2026-10-16T12:06:06.000042Z","level":"warning","event":"listening",)"
                       R"("address":"127.0.0.1","port":8080,"slow":true,"share":0.25})");
}

BOOST_AUTO_TEST_CASE(every_single_byte_gives_a_line_of_valid_json) {
    for (int byte = 0; byte < 256; ++byte) {
        const std::string value = {'a', static_cast<char>(byte), '"', '\\'};

        const json::object line = json::parse(formatted({"value", value})).as_object();

        const std::string expected = byte < 0x80 ? value : "a\xEF\xBF\xBD\"\\";
        BOOST_TEST(std::string_view(line.at("value").as_string()) == expected, "byte " << byte);
    }
}

BOOST_AUTO_TEST_CASE(broken_utf8_is_replaced_byte_by_byte_and_the_rest_is_kept) {
    const std::vector<std::pair<std::string, std::string>> cases{
        {"\xC3(", "\uFFFD("},                              // lead without its trail
        {"\xE2\x82", "\uFFFD\uFFFD"},                      // cut off
        {"\xC0\xAF", "\uFFFD\uFFFD"},                      // overlong
        {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // surrogate
        {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
        {"\xE2\x82\xAC and \xF0\x9F\x94\x92", "\u20AC and \U0001F512"},
    };
    for (const auto& [given, expected] : cases) {
        const json::object line = json::parse(formatted({"value", given})).as_object();

        BOOST_TEST(std::string_view(line.at("value").as_string()) == expected);
    }
}

BOOST_AUTO_TEST_CASE(no_control_character_reaches_the_line_unescaped) {
    const std::string line = formatted({"value", std::string_view("\0\x1b[2J\r\n\x7f\xC2\x9B\xC2\x80", 12)});

    for (const char c : line)
        BOOST_TEST((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
    BOOST_TEST(line.find('\xC2') == std::string::npos);
    BOOST_TEST(line.find(R"(\u0000\u001b[2J\r\n\u007f\u009b\u0080)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(numbers_that_json_lacks_become_null) {
    BOOST_TEST(json::parse(formatted({"value", std::numeric_limits<double>::infinity()})).at("value").is_null());
    BOOST_TEST(json::parse(formatted({"value", std::numeric_limits<double>::quiet_NaN()})).at("value").is_null());
    BOOST_TEST(json::parse(formatted({"value", 1e300})).at("value").as_double() == 1e300);
}

BOOST_AUTO_TEST_CASE(a_long_value_is_cut_and_stays_valid) {
    std::string value(2'047, 'a');
    value += "\u20AC and more";

    const json::object line = json::parse(formatted({"value", value})).as_object();

    BOOST_TEST(line.at("value").as_string().size() < 2'100u);
    BOOST_TEST(std::string_view(line.at("value").as_string()).ends_with("..."));
}

BOOST_AUTO_TEST_CASE(lines_below_the_level_are_left_out_and_the_rest_is_written_before_the_end) {
    pipe_ends pipe;
    {
        app::log_journal journal(domain::log_level::warning, pipe.writer());
        journal.write(domain::log_level::info, "left_out", {});
        journal.write(domain::log_level::warning, "kept", {{"n", std::int64_t{1}}});
        journal.write(domain::log_level::error, "kept", {{"n", std::int64_t{2}}});
    }
    pipe.close_writer();

    const std::vector<json::object> lines = parsed_lines(pipe.read_all());

    BOOST_REQUIRE_EQUAL(lines.size(), 2u);
    BOOST_TEST(lines[0].at("n").as_int64() == 1);
    BOOST_TEST(lines[1].at("level").as_string() == "error");
}

BOOST_AUTO_TEST_CASE(flush_returns_once_the_lines_are_out) {
    pipe_ends pipe;
    app::log_journal journal(domain::log_level::info, pipe.writer());
    for (std::int64_t n = 0; n < 100; ++n)
        journal.write(domain::log_level::info, "counted", {{"n", n}});

    journal.flush(10s);

    pipe.close_writer();  // the journal has nothing left to write
    BOOST_TEST(parsed_lines(pipe.read_all()).size() == 100u);
}

BOOST_AUTO_TEST_CASE(a_reader_who_stalls_blocks_neither_write_nor_the_end_and_losses_are_told) {
    constexpr std::int64_t lines_written = 20'000;  // far more than pipe and queue hold
    pipe_ends pipe;
    std::optional<app::log_journal> journal(std::in_place, domain::log_level::info, pipe.writer());

    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t n = 0; n < lines_written; ++n)
        journal->write(domain::log_level::info, "counted", {{"n", n}});
    journal->flush(50ms);
    const auto stalled_for = std::chrono::steady_clock::now() - start;
    std::string text;
    {
        std::array<char, 16'384> chunk;  // the reader wakes for a moment: the report of losses gets through
        for (int reads = 0; reads < 8; ++reads) {
            const ssize_t got = ::read(pipe.reader(), chunk.data(), chunk.size());
            BOOST_REQUIRE(got > 0);
            text.append(chunk.data(), static_cast<std::size_t>(got));
        }
    }
    const auto ending = std::chrono::steady_clock::now();
    journal.reset();
    const auto ended_after = std::chrono::steady_clock::now() - ending;
    pipe.close_writer();
    text += pipe.read_all();

    BOOST_TEST((stalled_for < 10s));
    BOOST_TEST((ended_after < 5s));
    std::int64_t lost = 0;
    for (const json::object& line : parsed_lines(text.substr(0, text.rfind('\n') + 1)))
        if (line.at("event").as_string() == "log_lines_lost") lost += line.at("lines").as_int64();
    BOOST_TEST(lost > 0);
    BOOST_TEST(lost < lines_written);
}

BOOST_AUTO_TEST_CASE(a_reader_who_is_gone_ends_nothing) {
    std::signal(SIGPIPE, SIG_IGN);  // as a node does
    pipe_ends pipe;
    app::log_journal journal(domain::log_level::info, pipe.writer());
    pipe.close_reader();

    const auto start = std::chrono::steady_clock::now();
    journal.write(domain::log_level::info, "unheard", {});
    journal.flush(10s);
    const auto took = std::chrono::steady_clock::now() - start;

    BOOST_TEST((took < 5s));  // and the process still runs
}

BOOST_AUTO_TEST_SUITE_END()
