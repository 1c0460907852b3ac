// The reader of Redis's protocol in the load generator for Redis.
#include "../../bench/resp.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <tuple>

using namespace holdfast::rivals;

BOOST_AUTO_TEST_SUITE(resp)

BOOST_AUTO_TEST_CASE(every_reply_is_read_once_it_is_whole_and_never_before) {
    for (const auto& [bytes, type, text] :
         {std::tuple{"+OK\r\n", '+', "OK"}, std::tuple{"-NOSCRIPT No matching\r\n", '-', "NOSCRIPT No matching"},
          std::tuple{":1\r\n", ':', "1"}, std::tuple{"$5\r\na\r\nbc\r\n", '$', "a\r\nbc"},
          std::tuple{"$0\r\n\r\n", '$', ""}, std::tuple{"$-1\r\n", '_', ""}, std::tuple{"*1\r\n", '\0', "1"},
          std::tuple{"$x\r\n", '\0', "x"}}) {
        const std::string whole(bytes);
        for (std::size_t size = 0; size < whole.size(); ++size)
            BOOST_TEST(!parse_reply(whole.substr(0, size)).has_value(), whole);

        const std::string with_more = whole + "+next\r\n";
        const auto reply = parse_reply(with_more);

        BOOST_REQUIRE(reply);
        BOOST_TEST(reply->type == type);
        BOOST_TEST(reply->text == text);
        BOOST_TEST(reply->size == whole.size());
    }
}

BOOST_AUTO_TEST_CASE(arguments_carry_their_length_in_bytes) {
    std::string command = "*2\r\n";

    append_argument(command, "GET");
    append_argument(command, "\xc3\xa9\r\n");

    BOOST_TEST(command == "*2\r\n$3\r\nGET\r\n$4\r\n\xc3\xa9\r\n\r\n");
}

BOOST_AUTO_TEST_SUITE_END()
