// Contract, section 6 and the bad input of section 3, byte by byte: what two parsers might read differently is refused.

#include "support/http_expect.hpp"
#include "support/http_node.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;
using namespace std::string_literals;

struct fixture {
    http_node node;

    /// One answer, 400, then the close: nothing behind the broken bytes is read as a request. `instance` is the path,
    /// once the request line could be read.
    void check_refused(const std::string& bytes, const std::string& instance = "") {
        BOOST_TEST_INFO_SCOPE("sent: " << bytes.substr(0, 200));
        auto client = node.connect();
        client.send(bytes);
        check_problem(client.read(), 400, "bad-request", instance);
        BOOST_TEST(client.closed_within(2s));
    }
    void check_refused_headers(const std::string& headers) {
        check_refused("POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + headers +
                          "\r\n{}   GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
                      "/locks/a");
    }
    http_answer answer_to(const std::string& bytes) {
        auto client = node.connect();
        client.send(bytes);
        return client.read();
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(http_framing, fixture)

BOOST_AUTO_TEST_CASE(bytes_that_are_no_request) {
    check_refused("\r\r\n\r\n");
    check_refused("hello\r\n\r\n");
    check_refused(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(300, '\x11'));
    check_refused("GET\r\n\r\n");
    check_refused("GET /healthz\r\n\r\n");
    check_refused(" GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    check_refused("GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    check_refused("GET /healthz  HTTP/1.1\r\nHost: x\r\n\r\n");
    check_refused("GET /heal thz HTTP/1.1\r\nHost: x\r\n\r\n");
    check_refused("GET /healthz HTTP/1.1 \r\nHost: x\r\n\r\n");
    check_refused("GE(T /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    check_refused(std::string(100, 'M') + " /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    check_refused(std::string(100'000, 'M'));
    check_refused("GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n");
    check_refused("GET /\x7f HTTP/1.1\r\nHost: x\r\n\r\n");
    check_refused("GET /\t HTTP/1.1\r\nHost: x\r\n\r\n");
}

BOOST_AUTO_TEST_CASE(other_protocol_versions) {
    for (const std::string version :
         {"HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3", "http/1.1", "HTTP/1.10", "HTTPS/1.1", "X"})
        check_refused("GET /healthz " + version + "\r\nHost: x\r\n\r\n");
    check_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
}

BOOST_AUTO_TEST_CASE(line_ends) {
    check_refused("GET /healthz HTTP/1.1\nHost: x\n\n");
    check_refused("GET /healthz HTTP/1.1\r\nHost: x\n\r\n", "/healthz");
    check_refused("GET /healthz HTTP/1.1\r\nHost: x\r\n\n", "/healthz");
    check_refused("GET /healthz HTTP/1.1\r\nHost: x\rY: z\r\n\r\n", "/healthz");
    check_refused("GET /healthz HTTP/1.1\r\rHost: x\r\n\r\n");
}

BOOST_AUTO_TEST_CASE(header_fields) {
    for (const std::string field :
         {"Name : value", "Name\t: value", ": value", "no colon", "Na me: value", "N\xc3\xa4me: value", "Name: a\x01z",
          "Name: a\x7fz", "A: b\r\n folded", "A: b\r\n\tfolded", " Host: y", "(comment): x", "Name\": x"})
        check_refused("GET /healthz HTTP/1.1\r\nHost: x\r\n" + field + "\r\n\r\n", "/healthz");
    check_refused("GET /healthz HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n"s, "/healthz");
    check_refused("GET /healthz HTTP/1.1\r\nHost: x\r\nA\0: b\r\n\r\n"s, "/healthz");
    check_refused("GET /heal\0thz HTTP/1.1\r\nHost: x\r\n\r\n"s);
    BOOST_TEST(answer_to("GET /healthz HTTP/1.1\r\nhOsT:\t x \t\r\nEmpty:\r\nUtf: \xc3\xa9\tx\r\n\r\n").status == 200);
}

BOOST_AUTO_TEST_CASE(content_length) {
    for (const std::string length : {"", "+5", "-5", "5, 5", "5,5", "5;", "0x5", "5.0", "5 5", " ", "\"5\"", "five",
                                     "٥", "99999999999999999999999999", "9999999999999999999"})
        check_refused_headers("Content-Length: " + length + "\r\n");
    check_refused_headers("Content-Length: 2\r\nContent-Length: 2\r\n");
    check_refused_headers("Content-Length: 2\r\nContent-Length: 5\r\n");
    check_refused_headers("Content-Length: 2\r\ncontent-length: 0\r\n");
}

BOOST_AUTO_TEST_CASE(transfer_encoding) {
    for (const std::string coding : {"", "gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked", "identity",
                                     "chunked;x=y", "\"chunked\"", "xchunked", "chunked ,", ",chunked",
                                     "\x0b"
                                     "chunked"})
        check_refused_headers("Transfer-Encoding: " + coding + "\r\n");
    check_refused_headers("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n");
    check_refused_headers("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n");
    check_refused(
        "POST /locks/a HTTP/1.0\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "/locks/a");
}

BOOST_AUTO_TEST_CASE(content_length_and_transfer_encoding_together) {
    check_refused_headers("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n");
    check_refused_headers("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n");
    check_refused_headers("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n");
}

BOOST_AUTO_TEST_CASE(host) {
    const auto check = [&](const std::string& head, int status) {
        BOOST_TEST(answer_to(head + "\r\n").status == status, head);
    };
    check("GET /healthz HTTP/1.1\r\n", 400);
    check("GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400);
    check("GET /healthz HTTP/1.1\r\nHost:\r\n", 200);
    check("GET /healthz HTTP/1.0\r\n", 200);
    check("GET /healthz HTTP/1.0\r\nHost: a\r\nHost: b\r\n", 400);
    check("OPTIONS * HTTP/1.1\r\n", 400);
}

BOOST_AUTO_TEST_CASE(targets_of_every_form) {
    const auto status_of = [&](const std::string& method, const std::string& target) {
        return answer_to(method + " " + target + " HTTP/1.1\r\nHost: x\r\n\r\n").status;
    };
    BOOST_TEST(status_of("GET", "http://example.org/healthz") == 200);
    BOOST_TEST(status_of("GET", "HTTPS://user@example.org:1/healthz?x#") == 400);
    BOOST_TEST(status_of("GET", "https://user@example.org:1/healthz?x") == 200);
    BOOST_TEST(status_of("GET", "http://example.org") == 404);
    BOOST_TEST(status_of("GET", "http://example.org?x") == 404);
    BOOST_TEST(status_of("GET", "/http://example.org/healthz") == 404);
    BOOST_TEST(status_of("GET", "healthz") == 400);
    BOOST_TEST(status_of("GET", "://x/healthz") == 400);
    BOOST_TEST(status_of("GET", "*") == 400);
    BOOST_TEST(status_of("CONNECT", "example.org:80") == 400);
    BOOST_TEST(status_of("GET", "/healthz#fragment") == 400);
    const auto all = answer_to("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
    BOOST_TEST(all.status == 204);
    BOOST_TEST(all.header("Allow") == "GET, HEAD, POST, DELETE, OPTIONS");
}

BOOST_AUTO_TEST_CASE(chunked_bodies) {
    const std::string head =
        "POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: Chunked\r\n\r\n";
    BOOST_TEST(
        answer_to(head + "5\r\n{\"own\r\n1a;ext=\"v\"\r\ner\":\"me\",\"ttl_seconds\":30}\r\n000\r\nTrailer: t\r\n\r\n")
            .status == 200);
    for (const std::string body :
         {"x\r\n{}\r\n0\r\n\r\n", "-2\r\n{}\r\n0\r\n\r\n", "2\r\n{}0\r\n\r\n", "2\r\n{}\r\n\r\n", "\r\n",
          "2\n{}\n0\n\n", "0x2\r\n{}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n", "0\r\nBad Trailer: x\r\n\r\n",
          "0\r\nContent-Length: 5\r\n\r\n"})
        check_problem(answer_to(head + body), 400, "bad-request", "/locks/a");
    for (const std::string body : {"4001\r\n", "7fffffffffffffff\r\n", "ffffffffffffffff\r\n"})
        check_problem(answer_to(head + body), 413, "payload-too-large", "/locks/a");
}

BOOST_AUTO_TEST_CASE(chunked_body_over_the_limit_in_small_chunks) {
    std::string body;
    for (int i = 0; i < 17; ++i)
        body += "400\r\n" + std::string(1024, ' ') + "\r\n";
    auto client = node.connect();
    client.send(
        "POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
        body);
    check_problem(client.read(), 413, "payload-too-large", "/locks/a");
    BOOST_TEST(client.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(endless_chunk_sizes_and_trailers_are_bounded) {
    const std::string head =
        "POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    check_problem(answer_to(head + "2;" + std::string(1'000'000, 'x')), 400, "bad-request", "/locks/a");
    check_problem(answer_to(head + "0\r\nT: " + std::string(1'000'000, 'x')), 400, "bad-request", "/locks/a");
    check_problem(answer_to(head + std::string(1'000'000, '0')), 400, "bad-request", "/locks/a");
}

BOOST_AUTO_TEST_CASE(a_request_that_ends_early_gets_an_answer) {
    auto client = node.connect();
    client.send("GET /healthz HTTP/1.1\r\nHo");
    client.shutdown_send();
    check_problem(client.read(), 400, "bad-request", "/healthz");
    auto second = node.connect();
    second.send("POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{");
    second.shutdown_send();
    check_problem(second.read(), 400, "bad-request", "/locks/a");
    BOOST_TEST(second.closed_within(2s));
}

BOOST_AUTO_TEST_SUITE_END()
