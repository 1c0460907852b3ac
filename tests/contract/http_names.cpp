// Contract, section 3: names and limits, one case a row and a rule.

#include "support/http_expect.hpp"
#include "support/http_node.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace {

using namespace holdfast::test;
using namespace std::string_literals;
namespace json = boost::json;

struct fixture {
    http_node node;
    http_client client = node.connect();

    http_answer acquire(std::string_view target, std::string_view body = R"({"owner":"me","ttl_seconds":30})") {
        return client.request("POST", target, body);
    }
    http_answer acquire_with(std::string_view members) { return acquire("/locks/a", "{" + std::string(members) + "}"); }
    /// Acquires under the target and returns the resource that the answer names.
    std::string resource_of(std::string_view target) {
        const auto answer = acquire(target);
        BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.status << ' ' << answer.body);
        return std::string(json_of(answer).at("lock").at("resource").as_string());
    }
    std::string owner_of(std::string_view owner_literal) {
        const auto answer = acquire_with(R"("ttl_seconds":30,"owner":)" + std::string(owner_literal));
        BOOST_REQUIRE_MESSAGE(answer.status == 200, answer.status << ' ' << answer.body);
        return std::string(json_of(answer).at("lock").at("owner").as_string());
    }
};

std::string times(std::string_view piece, std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
        text += piece;
    return text;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(http_names, fixture)

// ---- resource

BOOST_AUTO_TEST_CASE(resource_is_decoded_exactly_once) {
    BOOST_TEST(resource_of("/locks/payment%3A42") == "payment:42");
    BOOST_TEST(resource_of("/locks/payment:42") == "payment:42");
    BOOST_TEST(resource_of("/locks/a%252Fb") == "a%2Fb");
    BOOST_TEST(resource_of("/locks/%41%c3%a9") == "Aé");
    BOOST_TEST(resource_of("/locks/\xc3\xa9") == "é");
}

BOOST_AUTO_TEST_CASE(plus_in_a_path_is_a_plus) {
    BOOST_TEST(resource_of("/locks/a+b%20c") == "a+b c");
}

BOOST_AUTO_TEST_CASE(encoded_slash_belongs_to_the_name) {
    BOOST_TEST(resource_of("/locks/a%2Fb") == "a/b");
    check_problem(acquire("/locks/a/b"), 404, "not-found", "/locks/a/b");
}

BOOST_AUTO_TEST_CASE(dots_are_names_like_others) {
    BOOST_TEST(resource_of("/locks/.") == ".");
    BOOST_TEST(resource_of("/locks/..") == "..");
    BOOST_TEST(resource_of("/locks/%2e%2E") == "..");
    BOOST_TEST(resource_of("/locks/..%2F..%2Fetc") == "../../etc");
}

BOOST_AUTO_TEST_CASE(resource_may_be_called_like_an_action) {
    for (const std::string name : {"renew", "release", "queue", "events", "locks"}) {
        BOOST_TEST(resource_of("/locks/" + name) == name);
        const auto renewed = client.request("POST", "/locks/" + name + "/renew", R"({"owner":"me","ttl_seconds":5})");
        BOOST_TEST(renewed.status == 200, renewed.body);
        BOOST_TEST(client.request("DELETE", "/locks/" + name, R"({"owner":"me"})").status == 204);
    }
}

BOOST_AUTO_TEST_CASE(empty_resource_is_no_path) {
    check_problem(acquire("/locks/"), 404, "not-found", "/locks/");
    check_problem(acquire("/locks"), 404, "not-found", "/locks");
    check_problem(client.request("POST", "/locks//renew", "{}"), 404, "not-found", "/locks//renew");
    check_problem(client.request("GET", "/locks/a/"), 404, "not-found", "/locks/a/");
    check_problem(client.request("GET", "//locks/a"), 404, "not-found", "//locks/a");
}

BOOST_AUTO_TEST_CASE(query_parameters_are_ignored) {
    BOOST_TEST(resource_of("/locks/a?owner=x&ttl_seconds=nonsense") == "a");
    BOOST_TEST(resource_of("/locks/a%3Fb?c=%zz") == "a?b");
    BOOST_TEST(client.request("GET", "/healthz?").status == 200);
}

BOOST_AUTO_TEST_CASE(resource_has_at_most_255_bytes) {
    BOOST_TEST(resource_of("/locks/" + times("a", 255)).size() == 255u);
    BOOST_TEST(resource_of("/locks/" + times("%c3%a9", 127) + "a").size() == 255u);
    check_invalid(acquire("/locks/" + times("a", 256)), {"resource:too_long"});
    check_invalid(acquire("/locks/" + times("%c3%a9", 128)), {"resource:too_long"});
    check_invalid(client.request("GET", "/locks/" + times("a", 256)), {"resource:too_long"});
}

BOOST_AUTO_TEST_CASE(resource_has_no_control_characters) {
    for (const char* escape : {"%00", "%01", "%0A", "%0d", "%1F", "%7f"})
        check_invalid(acquire("/locks/a" + std::string(escape) + "b"), {"resource:invalid"});
    BOOST_TEST(resource_of("/locks/a%20b") == "a b");
    BOOST_TEST(resource_of("/locks/%c2%85") == "\xc2\x85");
}

BOOST_AUTO_TEST_CASE(resource_is_valid_utf8) {
    for (const char* bytes : {"%ff", "%c3", "%c0%80", "%ed%a0%80", "%f4%90%80%80", "%e2%82"})
        check_invalid(acquire("/locks/" + std::string(bytes)), {"resource:invalid"});
    check_invalid(client.request("GET", "/locks/\xff"), {"resource:invalid"});
}

BOOST_AUTO_TEST_CASE(broken_percent_escape_is_400) {
    for (const std::string path : {"/locks/%", "/locks/a%2", "/locks/%zz", "/locks/%%41"}) {
        const auto answer = acquire(path);
        BOOST_TEST(answer.status == 400);
        BOOST_TEST(json_of(answer).at("type").as_string() == "/problems/bad-request");
    }
    check_problem(client.request("GET", "/locks/%zz"), 400, "bad-request", "/locks/%25zz");
}

BOOST_AUTO_TEST_CASE(names_are_compared_byte_for_byte) {
    BOOST_TEST(acquire("/locks/Name").status == 200);
    check_problem(client.request("GET", "/locks/name"), 404, "not-found", "/locks/name");
    BOOST_TEST(acquire("/locks/%c3%a9").status == 200);
    check_problem(client.request("GET", "/locks/e%cc%81"), 404, "not-found", "/locks/e%cc%81");
}

BOOST_AUTO_TEST_CASE(atk_06_sql_in_the_resource_name) {
    const std::string target = "/locks/x'%3B%20DROP%20TABLE%20distributed_locks%3B--";
    BOOST_TEST(resource_of(target) == "x'; DROP TABLE distributed_locks;--");
    const auto seen = client.request("GET", target);
    BOOST_TEST(json_of(seen).at("resource").as_string() == "x'; DROP TABLE distributed_locks;--");
}

BOOST_AUTO_TEST_CASE(atk_12_resource_of_256_bytes) {
    const auto path = "/locks/" + times("n", 256);
    const auto answer = acquire(path);
    check_problem(answer, 422, "validation-failed", path);
    check_invalid(answer, {"resource:too_long"});
}

BOOST_AUTO_TEST_CASE(atk_12_resource_of_8_kib) {
    check_problem(acquire("/locks/" + times("n", 8192)), 414, "uri-too-long", "");
    BOOST_TEST(client.closed_within(std::chrono::seconds(2)));
}

BOOST_AUTO_TEST_CASE(atk_12_resource_of_10_mb) {
    BOOST_TEST(client.send(http_client::format("GET", "/locks/" + times("n", 10'000'000))));
    check_problem(client.read(), 414, "uri-too-long", "");
}

// ---- owner

BOOST_AUTO_TEST_CASE(owner_is_trimmed_of_ascii_white_space) {
    BOOST_TEST(owner_of(R"(" \t\n\u000b\f\r me too \t")") == "me too");
    node.advance(std::chrono::minutes(1));
    BOOST_TEST(owner_of("\"\\u00a0me\"") == "\xc2\xa0me");
}

BOOST_AUTO_TEST_CASE(owner_has_1_to_255_bytes) {
    BOOST_TEST(owner_of('"' + times("o", 255) + '"').size() == 255u);
    node.advance(std::chrono::minutes(1));
    BOOST_TEST(owner_of("\"  " + times("o", 255) + "  \"").size() == 255u);
    check_invalid(acquire_with(R"("ttl_seconds":30,"owner":")" + times("o", 256) + '"'), {"owner:too_long"});
    check_invalid(acquire_with(R"("ttl_seconds":30,"owner":")" + times("é", 128) + '"'), {"owner:too_long"});
}

BOOST_AUTO_TEST_CASE(atk_07_empty_and_blank_owner) {
    for (const char* owner : {R"("")", R"(" ")", R"("\t\r\n ")"})
        check_invalid(acquire_with(R"("ttl_seconds":30,"owner":)" + std::string(owner)), {"owner:invalid"});
    check_problem(client.request("GET", "/locks/a"), 404, "not-found", "/locks/a");
}

BOOST_AUTO_TEST_CASE(owner_has_no_control_characters) {
    for (const char* owner : {R"("a\u0000b")", R"("a\nb")", R"("a\u007fb")", R"("\u0000")"})
        check_invalid(acquire_with(R"("ttl_seconds":30,"owner":)" + std::string(owner)), {"owner:invalid"});
}

BOOST_AUTO_TEST_CASE(owner_is_a_string) {
    for (const char* owner : {"null", "1", "1.5", "true", "false", "[]", "{}", R"(["me"])", R"({"owner":"me"})"})
        check_invalid(acquire_with(R"("ttl_seconds":30,"owner":)" + std::string(owner)), {"owner:invalid"});
}

BOOST_AUTO_TEST_CASE(owner_comes_back_as_it_was_sent) {
    for (const std::string owner :
         {"\"quoted\"", "back\\slash", "Ünïcödé \xf0\x9f\x94\x92", "</script>", "%s%n", "a/b"}) {
        BOOST_TEST(owner_of(json::serialize(json::string_view(owner))) == owner);
        node.advance(std::chrono::minutes(1));
    }
}

// ---- ttl_seconds

BOOST_AUTO_TEST_CASE(ttl_is_1_to_the_maximum) {
    BOOST_TEST(acquire_with(R"("owner":"me","ttl_seconds":1)").status == 200);
    BOOST_TEST(acquire_with(R"("owner":"me","ttl_seconds":86400)").status == 200);
    check_invalid(acquire_with(R"("owner":"me","ttl_seconds":86401)"), {"ttl_seconds:out_of_range"});
}

BOOST_AUTO_TEST_CASE(ttl_maximum_is_a_setting) {
    holdfast::http::server_settings settings;
    settings.ttl_seconds_max = 60;
    http_node strict(settings);
    BOOST_TEST(strict.request("POST", "/locks/a", R"({"owner":"me","ttl_seconds":60})").status == 200);
    check_invalid(strict.request("POST", "/locks/a", R"({"owner":"me","ttl_seconds":61})"),
                  {"ttl_seconds:out_of_range"});
}

BOOST_AUTO_TEST_CASE(atk_05_zero_and_negative_ttl) {
    for (const char* ttl : {"0", "-0", "-1", "-30", "-9223372036854775808"}) {
        check_invalid(acquire_with(R"("owner":"me","ttl_seconds":)" + std::string(ttl)), {"ttl_seconds:out_of_range"});
        check_invalid(
            client.request("POST", "/locks/a/renew", R"({"owner":"me","ttl_seconds":)" + std::string(ttl) + "}"),
            {"ttl_seconds:out_of_range"});
    }
    check_problem(client.request("GET", "/locks/a"), 404, "not-found", "/locks/a");
}

BOOST_AUTO_TEST_CASE(atk_08_ttl_as_string_and_as_float) {
    for (const char* ttl : {R"("30")", "30.0", "30.5", "3e1", "3E1", "3e+1", "300e-1"})
        check_invalid(acquire_with(R"("owner":"me","ttl_seconds":)" + std::string(ttl)), {"ttl_seconds:invalid"});
    check_problem(client.request("GET", "/locks/a"), 404, "not-found", "/locks/a");
}

BOOST_AUTO_TEST_CASE(ttl_of_other_kinds_is_invalid) {
    for (const char* ttl : {"null", "true", "[]", "[30]", "{}", R"({"s":30})"})
        check_invalid(acquire_with(R"("owner":"me","ttl_seconds":)" + std::string(ttl)), {"ttl_seconds:invalid"});
}

BOOST_AUTO_TEST_CASE(huge_integers_are_out_of_range) {
    for (const std::string& ttl :
         {std::string("9223372036854775807"), std::string("9223372036854775808"), std::string("18446744073709551616"),
          std::string("-9223372036854775809"), times("9", 400), times("9", 10'000)})
        check_invalid(acquire_with(R"("owner":"me","ttl_seconds":)" + ttl), {"ttl_seconds:out_of_range"});
}

BOOST_AUTO_TEST_CASE(huge_exponents_are_invalid_and_still_json) {
    for (const std::string ttl : {"1e400", "-1e400", "1e-400", "1e99999999999", "1E+99999999999", "-1e-99999999999",
                                  "0e99999999999", "0.1e99999999999"})
        check_invalid(acquire_with(R"("owner":"me","ttl_seconds":)" + ttl), {"ttl_seconds:invalid"});
    check_invalid(acquire_with(R"("owner":"e99999999999","ttl_seconds":)" + times("9", 9'000) + "e2147483647"),
                  {"ttl_seconds:invalid"});
    check_problem(acquire_with(R"("owner":"me","ttl_seconds":1e99999999999x)"), 400, "invalid-json", "/locks/a");
    check_problem(acquire_with(R"("owner":"me","ttl_seconds":1e)"), 400, "invalid-json", "/locks/a");
}

// ---- fencing_token

BOOST_AUTO_TEST_CASE(fencing_token_is_0_to_2_53_minus_1) {
    acquire("/locks/a");
    const auto release = [&](std::string_view token) {
        return client.request("DELETE", "/locks/a", R"({"owner":"me","fencing_token":)" + std::string(token) + "}");
    };
    check_problem(release("0"), 403, "forbidden", "/locks/a");
    check_problem(release("-0"), 403, "forbidden", "/locks/a");
    check_problem(release("9007199254740991"), 403, "forbidden", "/locks/a");
    check_invalid(release("9007199254740992"), {"fencing_token:out_of_range"});
    check_invalid(release("-1"), {"fencing_token:out_of_range"});
    check_invalid(release("1" + times("0", 100)), {"fencing_token:out_of_range"});
    for (const char* token : {"null", "\"1\"", "1.0", "1e0", "true", "[1]"})
        check_invalid(release(token), {"fencing_token:invalid"});
    BOOST_TEST(release("1").status == 204);
}

BOOST_AUTO_TEST_CASE(fencing_token_is_no_member_of_an_acquire) {
    check_invalid(acquire_with(R"("owner":"me","ttl_seconds":30,"fencing_token":1)"), {"fencing_token:unknown"});
}

// ---- body

BOOST_AUTO_TEST_CASE(absent_or_empty_body_counts_as_empty_object) {
    check_invalid(client.request("POST", "/locks/a"), {"owner:required", "ttl_seconds:required"});
    check_invalid(client.request("POST", "/locks/a", "", {{"Content-Length", "0"}}),
                  {"owner:required", "ttl_seconds:required"});
    check_invalid(acquire("/locks/a", "{}"), {"owner:required", "ttl_seconds:required"});
    check_invalid(client.request("DELETE", "/locks/a"), {"owner:required"});
    check_invalid(client.request("POST", "/locks/a/release"), {"owner:required"});
    check_invalid(client.request("POST", "/locks/a/renew"), {"owner:required", "ttl_seconds:required"});
    client.send(
        "POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        "0\r\n\r\n");
    check_invalid(client.read(), {"owner:required", "ttl_seconds:required"});
}

BOOST_AUTO_TEST_CASE(body_that_is_no_json_is_400) {
    const std::string nul = "{\"owner\":\"a\0b\",\"ttl_seconds\":30}"s;
    for (const std::string& body : {std::string(" "),
                                    std::string("{"),
                                    std::string("}"),
                                    std::string("{}}"),
                                    std::string("{} {}"),
                                    std::string("owner"),
                                    std::string("owner=me&ttl_seconds=30"),
                                    std::string("{'owner':'me'}"),
                                    std::string("{\"owner\":\"me\",}"),
                                    std::string("{\"owner\" \"me\"}"),
                                    std::string("{owner:\"me\"}"),
                                    std::string("[1,]"),
                                    std::string("NaN"),
                                    std::string("{\"ttl_seconds\":01}"),
                                    std::string("{\"ttl_seconds\":+1}"),
                                    std::string("{\"ttl_seconds\":1.}"),
                                    std::string("{\"ttl_seconds\":.5}"),
                                    std::string("{\"ttl_seconds\":0x1}"),
                                    std::string("{\"ttl_seconds\":Infinity}"),
                                    std::string("{/*c*/}"),
                                    std::string("{\"owner\":\"a\nb\"}"),
                                    std::string("\xef\xbb\xbf{}"),
                                    std::string("\0", 1),
                                    nul})
        check_problem(acquire("/locks/a", body), 400, "invalid-json", "/locks/a");
}

BOOST_AUTO_TEST_CASE(invalid_utf8_in_the_body_is_400) {
    for (const std::string bytes : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"}) {
        check_problem(acquire_with("\"owner\":\"" + bytes + "\",\"ttl_seconds\":30"), 400, "invalid-json", "/locks/a");
        check_problem(acquire_with("\"" + bytes + "\":1"), 400, "invalid-json", "/locks/a");
    }
}

BOOST_AUTO_TEST_CASE(lone_surrogates_are_400) {
    for (const std::string escape :
         {"\\ud800", "\\udfff", "\\ud800x", "\\ud800\\n", "\\ud800\\u0041", "\\udc00\\ud800"})
        check_problem(acquire_with("\"owner\":\"" + escape + "\",\"ttl_seconds\":30"), 400, "invalid-json", "/locks/a");
    BOOST_TEST(owner_of(R"("\ud83d\udd12")") == "\xf0\x9f\x94\x92");
}

BOOST_AUTO_TEST_CASE(json_that_is_no_object_is_422) {
    for (const char* body :
         {"[]", "null", "true", "1", "1e99999999999", "\"owner\"", R"([{"owner":"me","ttl_seconds":30}])"})
        check_invalid(acquire("/locks/a", body), {"body:invalid"});
}

BOOST_AUTO_TEST_CASE(deep_nesting_is_422_as_long_as_the_body_fits) {
    check_invalid(acquire("/locks/a", times("[", 8192) + times("]", 8192)), {"body:invalid"});
    check_invalid(acquire_with("\"x\":" + times("[", 8000) + times("]", 8000)),
                  {"owner:required", "ttl_seconds:required", "x:unknown"});
    check_invalid(acquire_with("\"owner\":" + times("{\"\":", 2700) + "1" + times("}", 2700)),
                  {"owner:invalid", "ttl_seconds:required"});
    check_problem(acquire("/locks/a", times("[", 16384)), 400, "invalid-json", "/locks/a");
    check_problem(acquire("/locks/a", times("[", 8192) + times("]", 8191) + "}"), 400, "invalid-json", "/locks/a");
}

BOOST_AUTO_TEST_CASE(depth_100_000_is_too_large) {
    check_problem(acquire("/locks/a", times("[", 100'000) + times("]", 100'000)), 413, "payload-too-large", "/locks/a");
}

BOOST_AUTO_TEST_CASE(members_of_nested_objects_are_not_members) {
    check_invalid(acquire_with(R"("x":{"owner":"me","ttl_seconds":30,"owner":1})"),
                  {"owner:required", "ttl_seconds:required", "x:unknown"});
}

BOOST_AUTO_TEST_CASE(unknown_members_are_refused) {
    check_invalid(acquire_with(R"("owner":"me","ttl_seconds":30,"Owner":"me","wait":1,"":null)"),
                  {"Owner:unknown", "wait:unknown", ":unknown"});
    check_problem(client.request("GET", "/locks/a"), 404, "not-found", "/locks/a");
}

BOOST_AUTO_TEST_CASE(repeated_members_are_refused) {
    check_invalid(acquire_with(R"("owner":"me","owner":"me","ttl_seconds":30)"), {"owner:repeated"});
    check_invalid(acquire_with(R"("owner":"me","\u006fwner":"you","ttl_seconds":30,"ttl_seconds":1,"ttl_seconds":"x")"),
                  {"owner:repeated", "ttl_seconds:repeated"});
}

BOOST_AUTO_TEST_CASE(all_field_errors_come_at_once) {
    check_invalid(
        client.request("POST", "/locks/%00/renew", R"({"owner":" ","ttl_seconds":0,"fencing_token":-1,"more":1})"),
        {"resource:invalid", "owner:invalid", "ttl_seconds:out_of_range", "fencing_token:out_of_range",
         "more:unknown"});
}

BOOST_AUTO_TEST_CASE(only_so_many_field_errors_are_listed) {
    std::string members;
    for (int i = 0; i < 1000; ++i)
        members += "\"m" + std::to_string(i) + "\":0,";
    members.pop_back();
    const auto answer = acquire_with(members);
    BOOST_TEST(errors_of(answer).size() == 64u);
    BOOST_TEST(json_of(answer).at("detail").as_string().find("Errors not listed: 938.") != json::string::npos,
               answer.body);
}

BOOST_AUTO_TEST_CASE(long_unknown_names_are_cut_between_characters) {
    const auto answer = acquire_with(R"("owner":"me","ttl_seconds":30,")" + times("é", 4000) + R"(":1)");
    check_invalid(answer, {times("é", 32) + "…:unknown"});
    check_invalid(acquire_with(R"("owner":"me","ttl_seconds":30,"x)" + times("é", 4000) + R"(":1)"),
                  {"x" + times("é", 31) + "…:unknown"});
}

BOOST_AUTO_TEST_CASE(body_has_at_most_16_kib) {
    const std::string members = R"("owner":"me","ttl_seconds":30)";
    const std::string padding = times(" ", 16 * 1024 - members.size() - 2);
    BOOST_TEST(acquire_with(members + padding).status == 200);
    check_problem(acquire_with(members + padding + ' '), 413, "payload-too-large", "/locks/a");
    BOOST_TEST(client.closed_within(std::chrono::seconds(2)));
}

// ---- target and header block

BOOST_AUTO_TEST_CASE(target_has_at_most_8_kib) {
    const std::string target = "/locks/a?";
    BOOST_TEST(client.request("HEAD", target + times("q", 8192 - target.size())).status == 404);
    check_problem(client.request("GET", target + times("q", 8193 - target.size())), 414, "uri-too-long", "");
    BOOST_TEST(client.closed_within(std::chrono::seconds(2)));
}

BOOST_AUTO_TEST_CASE(target_of_100_kb_is_414) {
    check_problem(client.request("GET", "/locks/" + times("n", 100'000)), 414, "uri-too-long", "");
}

BOOST_AUTO_TEST_CASE(header_block_has_at_most_16_kib) {
    // The block is "Host: test" and the padding, each with CR LF.
    const auto padding = [](std::size_t block) {
        return times("p", block - 12 - std::string("X-Padding: \r\n").size());
    };
    BOOST_TEST(client.request("GET", "/healthz", "", {{"X-Padding", padding(16 * 1024)}}).status == 200);
    check_problem(client.request("GET", "/healthz", "", {{"X-Padding", padding(16 * 1024 + 1)}}), 431,
                  "headers-too-large", "/healthz");
    BOOST_TEST(client.closed_within(std::chrono::seconds(2)));
}

BOOST_AUTO_TEST_CASE(two_thousand_headers_are_431) {
    http_client::header_list headers;
    for (int i = 0; i < 2000; ++i)
        headers.emplace_back("X-Header-" + std::to_string(i), "value");
    check_problem(client.request("GET", "/healthz", "", headers), 431, "headers-too-large", "/healthz");
}

BOOST_AUTO_TEST_CASE(body_of_2_mb_is_413) {
    check_problem(acquire_with("\"x\":\"" + times("y", 2'000'000) + "\""), 413, "payload-too-large", "/locks/a");
}

// ---- the order of checks: each request breaks one rule and all that come after it

BOOST_AUTO_TEST_CASE(path_comes_before_everything) {
    const std::string headers =
        " HTTP/1.1\r\nHost: a\r\nHost: b\r\nExpect: x\r\nContent-Type: text/plain\r\nContent-Length: ";
    client.send("POST /nowhere" + headers + "3\r\n\r\n{[}");
    check_problem(client.read(), 404, "not-found", "/nowhere");
    client.send("PUT /locks/%zz" + headers + "3\r\n\r\n{[}");
    check_problem(client.read(), 405, "method-not-allowed", "/locks/%25zz");
    client.send("POST /nowhere" + headers + "2000000\r\n\r\n");
    check_problem(client.read(), 404, "not-found", "/nowhere");
}

BOOST_AUTO_TEST_CASE(headers_come_before_size) {
    const auto refused = [&](const http_client::header_list& headers) {
        return node.request("POST", "/locks/%00", times("x", 100'000), headers);
    };
    BOOST_TEST(refused({{"Idempotency-Key", ""}, {"Content-Type", "text/plain"}, {"Expect", "x"}}).status == 400);
    BOOST_TEST(refused({{"Content-Type", "text/plain"}, {"Expect", "x"}}).status == 415);
    BOOST_TEST(refused({{"Expect", "x"}}).status == 417);
    BOOST_TEST(refused({}).status == 413);
}

BOOST_AUTO_TEST_CASE(json_comes_before_fields) {
    check_problem(acquire("/locks/%00", "{"), 400, "invalid-json", "/locks/%00");
}

BOOST_AUTO_TEST_SUITE_END()
