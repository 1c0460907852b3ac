// Whatever bytes a client sends: an answer within the contract, no 500, no hang, and the node lives on.

#include "support/shared_nodes.hpp"
#include "support/wait_until.hpp"

#include <boost/test/unit_test.hpp>

#include <cstddef>

namespace {

using namespace holdfast::tests;
using holdfast::test::http_answer;
using holdfast::test::http_client;
using holdfast::test::http_client_error;
using namespace std::chrono_literals;

/// A node that is quick to lose patience, so that the cases about slow senders are quick as well.
node& impatient_node() {
    static node instance(postgres_cluster::shared().url(postgres_cluster::shared().create_database()),
                         {{"HEADER_DEADLINE_MS", "1500"}, {"BODY_DEADLINE_MS", "1500"}});
    return instance;
}

struct fixture {
    node& server = impatient_node();
    lock_client user{server.port()};
    const std::size_t resident_before = server.resident_bytes();

    /// After each case: alive, at work, nothing that it calls its own fault, no swelling.
    ~fixture() {
        BOOST_TEST(server.running());
        BOOST_TEST(lock_client(server.port()).get("/healthz").status == 200);
        const std::string resource = fresh_name("after");
        lock_client after(server.port());
        const reply grant = after.acquire(resource, "w", 60);
        BOOST_TEST((grant.status == 200 && grant.acquired()), grant.text());
        BOOST_TEST(server.log().find("internal-error") == std::string::npos);
        BOOST_TEST(server.resident_bytes() < resident_before + (std::size_t{96} << 20));
    }

    http_client raw() { return http_client::connect("127.0.0.1", server.port(), 10s); }

    /// Sends the bytes on a fresh connection and reads one answer.
    http_answer answer_to(const std::string& bytes) {
        http_client client = raw();
        client.send(bytes);
        return client.read();
    }

    reply acquire_with_body(const std::string& body) { return user.request("POST", "/locks/bad", body); }
};

void check_problem(const http_answer& answer, int status, const std::string& name) {
    BOOST_TEST(answer.status == status, answer.status << " " << answer.body);
    BOOST_TEST(answer.header("Content-Type") == "application/problem+json");
    BOOST_TEST(answer.body.find("/problems/" + name) != std::string::npos, answer.body);
}

const std::string good_body = R"({"owner":"w","ttl_seconds":60})";
const std::string post_head = "POST /locks/bad HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";

}  // namespace

BOOST_FIXTURE_TEST_SUITE(bad_input, fixture)

BOOST_AUTO_TEST_CASE(a_body_of_2_MB_is_413_that_reaches_the_client) {
    const std::string body = R"({"owner":")" + std::string(2'000'000, 'w') + R"("})";
    for (int i = 0; i < 10; ++i) {
        http_client client = raw();
        client.send(http_client::format("POST", "/locks/bad", body));  // all of it, before anything is read
        check_problem(client.read(), 413, "payload-too-large");
        BOOST_TEST(client.closed_within(10s));
    }
    // The same in chunks, where no length announces it.
    http_client client = raw();
    std::string chunks = post_head + "Transfer-Encoding: chunked\r\n\r\n";
    for (int i = 0; i < 100; ++i)
        chunks += "4e20\r\n" + std::string(20'000, ' ') + "\r\n";
    client.send(chunks + "0\r\n\r\n");
    check_problem(client.read(), 413, "payload-too-large");
}

BOOST_AUTO_TEST_CASE(a_body_of_just_16_KiB_is_read) {
    std::string body = good_body;
    body.insert(1, std::string(16384 - body.size(), ' '));
    BOOST_TEST(acquire_with_body(body).status == 200);
    check_problem(acquire_with_body(body + " ").answer, 413, "payload-too-large");
}

BOOST_AUTO_TEST_CASE(a_target_of_100_kB_is_414_that_reaches_the_client) {
    http_client client = raw();
    client.send("GET /locks/" + std::string(100'000, 'n') + " HTTP/1.1\r\nHost: x\r\n\r\n");
    check_problem(client.read(), 414, "uri-too-long");
    BOOST_TEST(client.closed_within(10s));
    // The limit is that of the target, not of what the name may be.
    check_problem(user.get("/healthz?" + std::string(8192 - 8, 'q')).answer, 414, "uri-too-long");
    BOOST_TEST(user.get("/healthz?" + std::string(8192 - 9, 'q')).status == 200);
}

BOOST_AUTO_TEST_CASE(headers_of_more_than_16_KiB_are_431_that_reaches_the_client) {
    std::string many = "GET /healthz HTTP/1.1\r\nHost: x\r\n";
    for (int i = 0; i < 2000; ++i)
        many += "X-Header-" + std::to_string(i) + ": value\r\n";
    check_problem(answer_to(many + "\r\n"), 431, "headers-too-large");
    check_problem(answer_to("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + std::string(1'000'000, 'v') + "\r\n\r\n"),
                  431, "headers-too-large");
    // What fits is served.
    BOOST_TEST(
        answer_to("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + std::string(15'000, 'v') + "\r\n\r\n").status ==
        200);
}

BOOST_AUTO_TEST_CASE(nul_bytes) {
    check_problem(acquire_with_body(std::string("{\"owner\":\"a\0b\",\"ttl_seconds\":1}", 31)).answer, 400,
                  "invalid-json");
    check_problem(acquire_with_body(std::string("\0", 1)).answer, 400, "invalid-json");
    check_problem(acquire_with_body(R"({"owner":"a\u0000b","ttl_seconds":1})").answer, 422, "validation-failed");
    check_problem(user.get("/locks/a%00b").answer, 422, "validation-failed");
    check_problem(answer_to(std::string("GET /locks/a\0b HTTP/1.1\r\nHost: x\r\n\r\n", 36)), 400, "bad-request");
    check_problem(answer_to(std::string("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Nul: a\0b\r\n\r\n", 46)), 400,
                  "bad-request");
    check_problem(answer_to(std::string(100, '\0') + "\r\n\r\n"), 400, "bad-request");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_utf_8) {
    for (const std::string bytes : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
        const reply body = acquire_with_body("{\"owner\":\"" + bytes + "\",\"ttl_seconds\":1}");
        BOOST_TEST(body.status == 400, body.text());
        check_problem(user.request("POST", "/locks/" + path_segment(bytes), good_body).answer, 422,
                      "validation-failed");
        check_problem(user.get("/locks/" + path_segment("a" + bytes + "b")).answer, 422, "validation-failed");
    }
    BOOST_TEST(user.get("/locks/%F0%9F%94%92").status == 404);
}

BOOST_AUTO_TEST_CASE(lone_surrogates) {
    for (const std::string escape : {R"(\ud800)", R"(\udc00)", R"(\ud800\ud800)", R"(\ud83d x)", R"(\uDFFF\uD800)"}) {
        const reply refused = acquire_with_body(R"({"owner":")" + escape + R"(","ttl_seconds":1})");
        BOOST_TEST((refused.status == 400 || refused.status == 422), refused.text());
    }
    BOOST_TEST(acquire_with_body(R"({"owner":"\ud83d\udd12","ttl_seconds":1})").status == 200);
}

BOOST_AUTO_TEST_CASE(control_characters_in_names) {
    for (const std::string name : {"%0a", "a%0D%0Ab", "%1f", "%7f", "%09"})
        check_problem(user.get("/locks/" + name).answer, 422, "validation-failed");
    for (const std::string escape : {R"(a\nb)", R"(a\u001fb)", R"(\u007f)"})
        check_problem(acquire_with_body(R"({"owner":")" + escape + R"(","ttl_seconds":1})").answer, 422,
                      "validation-failed");
}

BOOST_AUTO_TEST_CASE(broken_percent_escapes) {
    for (const std::string path : {"/locks/%", "/locks/a%2", "/locks/%zz", "/locks/%%41", "/locks/a%-1"})
        check_problem(user.get(path).answer, 400, "bad-request");
}

BOOST_AUTO_TEST_CASE(deep_nesting) {
    check_problem(acquire_with_body(std::string(100'000, '[')).answer, 413, "payload-too-large");
    for (const std::string& deep :
         {std::string(16'000, '['), std::string(8'000, '[') + std::string(8'000, ']'),
          R"({"owner":)" + std::string(8'000, '[') + std::string(8'000, ']') + "}", std::string(16'000, '{')}) {
        const reply refused = acquire_with_body(deep);
        BOOST_TEST((refused.status == 400 || refused.status == 422), refused.text());
    }
}

BOOST_AUTO_TEST_CASE(odd_numbers) {
    using errors = std::vector<std::pair<std::string, std::string>>;
    const std::vector<std::pair<std::string, std::string>> expected{{"1e400", "invalid"},
                                                                    {"-1e400", "invalid"},
                                                                    {"1e99999999999999999999", "invalid"},
                                                                    {"1.0", "invalid"},
                                                                    {"0.1e1", "invalid"},
                                                                    {"null", "invalid"},
                                                                    {"-0", "out_of_range"},
                                                                    {"18446744073709551617", "out_of_range"},
                                                                    {"-9223372036854775809", "out_of_range"},
                                                                    {std::string(5000, '9'), "out_of_range"}};
    for (const auto& [literal, code] : expected) {
        const reply refused = acquire_with_body(R"({"owner":"w","ttl_seconds":)" + literal + "}");
        BOOST_TEST(refused.status == 422, literal.substr(0, 40) << ": " << refused.text());
        BOOST_TEST((errors_of(refused) == errors{{"ttl_seconds", code}}), literal.substr(0, 40) << refused.text());
    }
    for (const std::string no_json : {"01", "+1", ".5", "1.", "0x10", "NaN", "Infinity", "1e", "--1"})
        check_problem(acquire_with_body(R"({"owner":"w","ttl_seconds":)" + no_json + "}").answer, 400, "invalid-json");
    const reply token = user.request("DELETE", "/locks/bad", R"({"owner":"w","fencing_token":9007199254740992})");
    BOOST_TEST((errors_of(token) == errors{{"fencing_token", "out_of_range"}}), token.text());
}

BOOST_AUTO_TEST_CASE(bodies_that_are_no_json) {
    for (const std::string body :
         {"{", "nope", "{} {}", R"({"owner":"w",})", "{'owner':'w'}", R"({"owner":"w" "ttl_seconds":1})",
          "/* comment */ {}", "owner=w&ttl_seconds=1", "<xml/>", R"({"owner":"w","ttl_seconds":1}x)", " ",
          "\xef\xbb\xbf{}", R"({"owner":"\x41","ttl_seconds":1})", "{\"owner\":\"a\nb\",\"ttl_seconds\":1}"}) {
        const reply refused = acquire_with_body(body);
        BOOST_TEST(refused.status == 400, body << ": " << refused.text());
        BOOST_TEST(refused.problem() == "invalid-json", body << ": " << refused.text());
    }
    for (const std::string body : {"[]", "\"text\"", "1", "null", "true"})
        check_problem(acquire_with_body(body).answer, 422, "validation-failed");
}

BOOST_AUTO_TEST_CASE(repeated_and_unknown_members) {
    using errors = std::vector<std::pair<std::string, std::string>>;
    const reply repeated = acquire_with_body(R"({"owner":"w","ttl_seconds":1,"ttl_seconds":2})");
    BOOST_TEST((errors_of(repeated) == errors{{"ttl_seconds", "repeated"}}), repeated.text());
    // The same name, written differently.
    const reply escaped = acquire_with_body(R"({"owner":"w","\u006fwner":"w","ttl_seconds":1})");
    BOOST_TEST((errors_of(escaped) == errors{{"owner", "repeated"}}), escaped.text());
    const reply unknown = acquire_with_body(R"({"owner":"w","ttl_seconds":1,"Owner":"w"})");
    BOOST_TEST((errors_of(unknown) == errors{{"Owner", "unknown"}}), unknown.text());
    std::string many = R"({"owner":"w","ttl_seconds":1)";
    for (int i = 0; i < 1000; ++i)
        many += ",\"m" + std::to_string(i) + "\":1";
    check_problem(acquire_with_body(many + "}").answer, 422, "validation-failed");
}

BOOST_AUTO_TEST_CASE(broken_framing_is_400_and_a_close) {
    for (const std::string& bytes :
         {std::string("GARBAGE\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
          std::string("GET / HTTP/1.1 x\r\nHost: x\r\n\r\n"), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
          std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(200, 'x') + "\r\n\r\n",
          std::string("GET /healthz HTTP/1.1\r\nno colon here\r\n\r\n"),
          std::string("GET /healthz HTTP/1.1\r\nHost: x\r\n : x\r\n\r\n"),
          std::string("GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n"), post_head + "Content-Length: -1\r\n\r\n",
          post_head + "Content-Length: five\r\n\r\n", post_head + "Content-Length: 99999999999999999999999\r\n\r\n",
          post_head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
          post_head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
          post_head + "Transfer-Encoding: gzip\r\n\r\n",
          post_head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
          post_head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
          post_head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n"}) {
        http_client client = raw();
        client.send(bytes);
        try {
            const http_answer answer = client.read();
            BOOST_TEST(answer.status == 400, bytes << " got " << answer.status);
            BOOST_TEST(client.closed_within(10s), bytes);
        } catch (const http_client_error& error) {
            BOOST_ERROR(bytes << ": " << error.what());
        }
    }
}

BOOST_AUTO_TEST_CASE(a_slow_header_cannot_stretch_its_deadline) {
    http_client client = raw();
    const auto start = std::chrono::steady_clock::now();
    client.send_slowly("GET /healthz HTTP/1.1\r\nX: " + std::string(40, 's'), 1, 50ms);  // 3.3 s, if it could
    check_problem(client.read(), 408, "request-timeout");
    BOOST_TEST(client.closed_within(5s));
    BOOST_TEST((std::chrono::steady_clock::now() - start < 8s));
}

BOOST_AUTO_TEST_CASE(a_slow_body_cannot_stretch_its_deadline) {
    http_client client = raw();
    const auto start = std::chrono::steady_clock::now();
    client.send(post_head + "Content-Length: 1000\r\n\r\n");
    client.send_slowly(std::string(60, ' '), 1, 50ms);
    check_problem(client.read(), 408, "request-timeout");
    BOOST_TEST(client.closed_within(5s));
    BOOST_TEST((std::chrono::steady_clock::now() - start < 8s));
}

BOOST_AUTO_TEST_CASE(a_request_that_stops_in_the_middle_is_408) {
    for (const std::string& begun :
         {std::string("G"), std::string("GET /healthz HTTP/1.1\r\nHost: x\r\n"),
          post_head + "Content-Length: 30\r\n\r\n{", post_head + "Transfer-Encoding: chunked\r\n\r\n5"}) {
        http_client client = raw();
        client.send(begun);
        check_problem(client.read(), 408, "request-timeout");
        BOOST_TEST(client.closed_within(5s));
    }
}

BOOST_AUTO_TEST_CASE(a_half_closed_client_is_answered) {
    http_client client = raw();
    client.send(http_client::format("GET", "/healthz"));
    client.shutdown_send();
    BOOST_TEST(client.read().status == 200);
    BOOST_TEST(client.closed_within(10s));
}

BOOST_AUTO_TEST_CASE(an_error_does_not_spoil_the_connection) {
    http_client client = raw();
    for (int i = 0; i < 20; ++i) {
        BOOST_TEST(client.request("POST", "/locks/bad", "nope").status == 400);
        BOOST_TEST(client.request("POST", "/locks/bad", "{}").status == 422);
        BOOST_TEST(client.request("PUT", "/locks/bad", "{}").status == 405);
        BOOST_TEST(client.request("POST", "/nowhere", "{}").status == 404);
        BOOST_TEST(client.request("GET", "/healthz").status == 200);
    }
}

BOOST_AUTO_TEST_CASE(clients_that_never_read_do_not_fill_the_memory) {
    std::string many;
    for (int i = 0; i < 500; ++i)
        many += http_client::format("GET", "/openapi.json");
    std::vector<http_client> deaf;
    const std::size_t before = server.resident_bytes();
    for (int i = 0; i < 20; ++i) {
        deaf.push_back(http_client::connect("127.0.0.1", server.port(), 200ms));
        try {
            deaf.back().send(many);
        } catch (const http_client_error&) {
            // The node stopped reading, as it should.
        }
    }
    BOOST_TEST(server.resident_bytes() < before + (std::size_t{32} << 20));
    const reply alive = user.get("/healthz");
    BOOST_TEST(alive.status == 200);
    BOOST_TEST(alive.duration() < 2s);
}

BOOST_AUTO_TEST_CASE(much_garbage_at_once) {
    in_parallel(8, [&](std::size_t which) {
        for (int i = 0; i < 40; ++i) {
            http_client client = raw();
            std::string noise;
            for (std::size_t j = 0; j < 3000; ++j)
                noise += static_cast<char>((j * 7919 + which * 104729 + static_cast<std::size_t>(i) * 31) % 251);
            client.send((i % 2 ? "GET /locks/" : "") + noise + "\r\n\r\n");
            if (i % 3 == 0) client.reset();
        }
    });
}

BOOST_AUTO_TEST_SUITE_END()
