#include "holdfast/http/router.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

using namespace holdfast::http;

BOOST_AUTO_TEST_SUITE(router)

BOOST_AUTO_TEST_CASE(every_route_matches_itself) {
    for (const route& entry : routes()) {
        std::string target(entry.pattern);
        const auto brace = target.find('{');
        if (brace != std::string::npos) target.replace(brace, target.find('}') - brace + 1, "thing");
        const auto match = match_route(entry.method, target);
        BOOST_TEST((match.result == match_result::matched));
        BOOST_TEST((match.meant == entry.meant));
        BOOST_TEST(match.path == target);
        BOOST_TEST(match.variable == (brace == std::string::npos ? "" : "thing"));
    }
}

BOOST_AUTO_TEST_CASE(no_two_routes_are_the_same) {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const route& entry : routes())
        BOOST_TEST(seen.emplace(entry.method, entry.pattern).second);
}

BOOST_AUTO_TEST_CASE(head_goes_where_get_goes) {
    BOOST_TEST((match_route("HEAD", "/locks/a").meant == operation::look));
    BOOST_TEST((match_route("HEAD", "/locks/a/renew").result == match_result::method_not_allowed));
}

BOOST_AUTO_TEST_CASE(a_resource_may_be_called_like_a_fixed_segment) {
    const auto check = [](std::string_view method, std::string_view target, operation meant,
                          std::string_view resource) {
        const auto match = match_route(method, target);
        BOOST_TEST((match.result == match_result::matched && match.meant == meant && match.variable == resource),
                   target);
    };
    check("POST", "/locks/queue", operation::acquire, "queue");
    check("DELETE", "/locks/queue", operation::release, "queue");
    check("DELETE", "/locks/queue/queue", operation::leave, "queue");
    check("POST", "/locks/queue/queue/leave", operation::leave, "queue");
    check("POST", "/locks/leave/queue/leave", operation::leave, "leave");
    check("POST", "/locks/queue/release", operation::release, "queue");
    check("DELETE", "/locks/queue%2Fqueue", operation::release, "queue%2Fqueue");
    for (const char* target : {"/locks/queue/leave", "/locks//queue", "/locks/a/queue/", "/locks/a/queue/release",
                               "/locks/a/leave", "/locks/a/queue/leave/", "/locks/a%2Fqueue/leave"})
        BOOST_TEST((match_route("POST", target).result == match_result::not_found), target);
    BOOST_TEST(match_route("GET", "/locks/a/queue").allow == "DELETE, OPTIONS");
    BOOST_TEST(match_route("DELETE", "/locks/a/queue/leave").allow == "POST, OPTIONS");
}

BOOST_AUTO_TEST_CASE(variable_stays_encoded) {
    BOOST_TEST(match_route("GET", "/locks/a%2Fb%zz?c/d").variable == "a%2Fb%zz");
    BOOST_TEST(match_route("GET", "/locks/a%2Fb?c/d").path == "/locks/a%2Fb");
}

BOOST_AUTO_TEST_CASE(fixed_segments_are_taken_literally) {
    for (const char* target :
         {"/%6Cocks/a", "/Locks/a", "/locks/a/%72enew", "/healthz/", "/./healthz", "/locks/../healthz"})
        BOOST_TEST((match_route("GET", target).result == match_result::not_found), target);
}

BOOST_AUTO_TEST_CASE(percent_decoding_happens_once) {
    BOOST_TEST(*percent_decode("a%2fB%2Fc+%2541") == "a/B/c+%41");
    BOOST_TEST(percent_decode("%00")->size() == 1u);
    for (const char* broken : {"%", "a%", "%4", "%g1", "%1g", "%%%", "% 1", "%-1"})
        BOOST_TEST(!percent_decode(broken));
}

BOOST_AUTO_TEST_CASE(uri_paths_are_ascii) {
    BOOST_TEST(as_uri_path("/locks/a%2Fb:c@d") == "/locks/a%2Fb:c@d");
    BOOST_TEST(as_uri_path("/\xff \"%") == "/%FF%20%22%25");
    BOOST_TEST(as_uri_path(std::string_view("\0", 1)) == "%00");
}

BOOST_AUTO_TEST_SUITE_END()
