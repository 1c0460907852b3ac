#include "holdfast/http/head_scanner.hpp"

#include "holdfast/http/limits.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using holdfast::http::problem;
using scanner = holdfast::http::head_scanner;

namespace {

const std::string head = "POST /locks/a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n";

}  // namespace

BOOST_AUTO_TEST_SUITE(head_scanner)

BOOST_AUTO_TEST_CASE(finds_the_end_at_once) {
    scanner scan;
    BOOST_TEST((scan.scan(head + "{}GET") == scanner::verdict::complete));
    BOOST_TEST(scan.head_bytes() == head.size());
}

BOOST_AUTO_TEST_CASE(finds_the_end_byte_by_byte) {
    scanner scan;
    for (std::size_t i = 1; i < head.size(); ++i)
        BOOST_TEST((scan.scan(std::string_view(head).substr(0, i)) == scanner::verdict::need_more));
    BOOST_TEST((scan.scan(head) == scanner::verdict::complete));
    BOOST_TEST(scan.head_bytes() == head.size());
}

BOOST_AUTO_TEST_CASE(refuses_as_soon_as_the_limit_is_passed) {
    const auto limit = holdfast::http::limits::target_bytes_max;
    scanner target;
    BOOST_TEST((target.scan("GET " + std::string(limit, 'x')) == scanner::verdict::need_more));
    BOOST_TEST((target.scan("GET " + std::string(limit + 1, 'x')) == scanner::verdict::refused));
    BOOST_TEST((target.refusal() == problem::uri_too_long));

    scanner block;
    const std::string start = "GET / HTTP/1.1\r\n";
    const std::string field = "X: " + std::string(holdfast::http::limits::header_bytes_max - 3, 'x');
    BOOST_TEST((block.scan(start + field) == scanner::verdict::need_more));
    BOOST_TEST((block.scan(start + field + "x") == scanner::verdict::refused));
    BOOST_TEST((block.refusal() == problem::headers_too_large));
}

BOOST_AUTO_TEST_CASE(target_and_header_block_of_the_largest_size_fit_together) {
    const std::string request = "DELETE " + std::string(holdfast::http::limits::target_bytes_max, 'x') +
                                " HTTP/1.1\r\nX: " + std::string(holdfast::http::limits::header_bytes_max - 5, 'x') +
                                "\r\n\r\n";
    scanner scan;
    BOOST_TEST((scan.scan(request) == scanner::verdict::complete));
    BOOST_TEST(request.size() <= holdfast::http::limits::read_buffer_bytes_max);
}

BOOST_AUTO_TEST_SUITE_END()
