// Every request of the contract, from a client's socket to the database and back, over two nodes.

#include "support/shared_nodes.hpp"
#include "support/wait_until.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <barrier>
#include <set>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;

constexpr std::int64_t ttl = 60;

struct fixture : two_users {
    std::string resource = fresh_name("request");
    std::string path = "/locks/" + path_segment(resource);

    /// Acquires through the first node and checks that it is a grant within the contract.
    reply granted(const std::string& owner, std::int64_t seconds, const std::string& key = "") {
        reply grant = alice.acquire(resource, owner, seconds, key);
        BOOST_REQUIRE_MESSAGE(grant.status == 200 && grant.acquired(), grant.text());
        BOOST_TEST(outside_the_contract(grant) == "");
        return grant;
    }
};

/// Two LOCKs that must be the same grant, the remaining time aside.
void check_same(const lease_recorder::lease& left, const lease_recorder::lease& right) {
    BOOST_TEST(left.resource == right.resource);
    BOOST_TEST(left.owner == right.owner);
    BOOST_TEST(left.token == right.token);
    BOOST_TEST(left.acquired_at == right.acquired_at);
    BOOST_TEST(left.expires_at == right.expires_at);
}

void check_problem(const reply& reply, int status, const std::string& problem) {
    BOOST_TEST(reply.status == status, reply.text());
    BOOST_TEST(reply.problem() == problem, reply.text());
    BOOST_TEST(outside_the_contract(reply) == "");
}

std::int64_t length_us(const lease_recorder::lease& lease) {
    return parse_time_us(lease.expires_at).value() - parse_time_us(lease.acquired_at).value();
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(requests, fixture)

BOOST_AUTO_TEST_CASE(acquire_answers_the_lock) {
    for (const std::int64_t seconds : {std::int64_t{1}, std::int64_t{7}, std::int64_t{86'400}}) {
        const auto lease = granted("worker-1", seconds).lease();
        BOOST_TEST(lease.resource == resource);
        BOOST_TEST(lease.owner == "worker-1");
        BOOST_TEST(length_us(lease) == seconds * 1'000'000);
        BOOST_TEST(lease.expires_in.count() > 0);
        BOOST_TEST(lease.expires_in.count() <= seconds * 1000);
    }
}

BOOST_AUTO_TEST_CASE(a_ttl_above_the_maximum_is_out_of_range) {
    for (const std::string& ttl_text :
         {std::string("86401"), std::string("9223372036854775808"), "1" + std::string(400, '0')}) {
        const reply refused = alice.request("POST", path, R"({"owner":"w","ttl_seconds":)" + ttl_text + "}");
        BOOST_TEST(refused.status == 422, refused.text());
        const std::vector<std::pair<std::string, std::string>> expected{{"ttl_seconds", "out_of_range"}};
        BOOST_TEST((errors_of(refused) == expected), refused.text());
    }
}

BOOST_AUTO_TEST_CASE(acquire_of_a_held_lock_tells_the_longest_wait) {
    granted("worker-1", 1);

    const reply refused = bob.acquire(resource, "worker-2", ttl);
    BOOST_REQUIRE_MESSAGE(refused.status == 200 && !refused.acquired(), refused.text());
    BOOST_TEST(outside_the_contract(refused) == "");
    const std::int64_t wait_ms = refused.retry_after_ms();
    BOOST_TEST(wait_ms >= 1);
    BOOST_TEST(wait_ms <= 1000);

    // Counted from the answer, the lease is over after that time.
    std::this_thread::sleep_until(refused.when.received + std::chrono::milliseconds(wait_ms));
    const reply grant = bob.acquire(resource, "worker-2", ttl);
    BOOST_TEST((grant.status == 200 && grant.acquired()), grant.text());
}

BOOST_AUTO_TEST_CASE(a_look_shows_the_lock_from_any_node) {
    const auto lease = granted("worker-1", ttl).lease();
    for (const reply& seen : {alice.look(resource), bob.look(resource)}) {
        BOOST_REQUIRE_MESSAGE(seen.status == 200, seen.text());
        BOOST_TEST(outside_the_contract(seen) == "");
        check_same(seen.lease(), lease);
        BOOST_TEST(seen.lease().expires_in <= lease.expires_in);
        BOOST_TEST(seen.lease().expires_in > 0ms);
    }
}

BOOST_AUTO_TEST_CASE(a_look_at_nothing_is_404) {
    check_problem(bob.look(resource), 404, "not-found");
}

BOOST_AUTO_TEST_CASE(a_look_after_the_end_is_404) {
    const reply grant = granted("worker-1", 1);
    // Alive for as long as its owner may trust it, by the owner's own clock.
    const auto trusted_until = grant.when.sent + grant.lease().expires_in;
    const bool gone = wait_until(5s, [&] {
        const reply seen = bob.look(resource);
        if (seen.status == 404 && seen.when.received < trusted_until) BOOST_ERROR("ended too early: " << seen.text());
        return seen.status == 404;
    });
    BOOST_TEST(gone);
}

BOOST_AUTO_TEST_CASE(delete_releases) {
    granted("worker-1", ttl);

    const reply released = bob.release(resource, "worker-1");
    BOOST_TEST(released.status == 204, released.text());
    BOOST_TEST(outside_the_contract(released) == "");
    BOOST_TEST(alice.look(resource).status == 404);
    check_problem(bob.release(resource, "worker-1"), 404, "not-found");
    BOOST_TEST(bob.acquire(resource, "worker-2", ttl).acquired());
}

BOOST_AUTO_TEST_CASE(delete_with_the_current_token_releases) {
    const auto token = granted("worker-1", ttl).token();
    check_problem(bob.release(resource, "worker-1", token + 1), 403, "forbidden");
    check_problem(bob.release(resource, "worker-1", 0), 403, "forbidden");
    BOOST_TEST(bob.look(resource).status == 200);
    BOOST_TEST(bob.release(resource, "worker-1", token).status == 204);
}

BOOST_AUTO_TEST_CASE(delete_by_another_is_403_and_of_an_ended_lock_404) {
    granted("worker-1", 1);
    check_problem(bob.release(resource, "worker-2"), 403, "forbidden");
    BOOST_TEST(wait_until(5s, [&] { return bob.look(resource).status == 404; }));
    check_problem(bob.release(resource, "worker-1"), 404, "not-found");
    check_problem(bob.release(resource, "worker-2"), 404, "not-found");
}

BOOST_AUTO_TEST_CASE(post_release_does_as_delete) {
    check_problem(bob.post_release(resource, "worker-1"), 404, "not-found");
    const auto token = granted("worker-1", ttl).token();
    check_problem(bob.post_release(resource, "worker-2"), 403, "forbidden");
    check_problem(bob.post_release(resource, "worker-1", token + 1), 403, "forbidden");
    const reply released = bob.post_release(resource, "worker-1", token);
    BOOST_TEST(released.status == 204, released.text());
    BOOST_TEST(outside_the_contract(released) == "");
    check_problem(bob.post_release(resource, "worker-1", token), 404, "not-found");
}

BOOST_AUTO_TEST_CASE(renew_keeps_token_and_beginning_and_moves_the_end) {
    const auto lease = granted("worker-1", 5).lease();

    const reply longer = bob.renew(resource, "worker-1", 100, lease.token);
    BOOST_REQUIRE_MESSAGE(longer.status == 200, longer.text());
    BOOST_TEST(outside_the_contract(longer) == "");
    BOOST_TEST(longer.token() == lease.token);
    BOOST_TEST(longer.lease().acquired_at == lease.acquired_at);
    BOOST_TEST(longer.lease().expires_at > lease.expires_at);
    BOOST_TEST(longer.lease().expires_in > 5s);
    BOOST_TEST(longer.lease().expires_in <= 100s);

    // The end is clock + TTL: a shorter one shortens, and nothing adds up.
    const reply shorter = alice.renew(resource, "worker-1", 10);
    BOOST_REQUIRE_MESSAGE(shorter.status == 200, shorter.text());
    BOOST_TEST(shorter.lease().expires_in <= 10s);
    BOOST_TEST(shorter.lease().expires_at < longer.lease().expires_at);
    BOOST_TEST(length_us(shorter.lease()) >= 10'000'000);
    check_same(bob.look(resource).lease(), shorter.lease());
}

BOOST_AUTO_TEST_CASE(renew_by_others_or_of_nothing) {
    check_problem(bob.renew(resource, "worker-1", ttl), 404, "not-found");
    const auto lease = granted("worker-1", 1).lease();
    check_problem(bob.renew(resource, "worker-2", ttl), 403, "forbidden");
    check_problem(bob.renew(resource, "worker-1", ttl, lease.token + 1), 403, "forbidden");
    check_same(bob.look(resource).lease(), lease);
    BOOST_TEST(wait_until(5s, [&] { return bob.look(resource).status == 404; }));
    check_problem(bob.renew(resource, "worker-1", ttl), 404, "not-found");
    check_problem(bob.renew(resource, "worker-1", ttl, lease.token), 404, "not-found");
    BOOST_TEST(bob.look(resource).status == 404);
}

BOOST_AUTO_TEST_CASE(the_holder_may_acquire_again) {
    const auto first = granted("worker-1", ttl).lease();
    const auto second = bob.acquire(resource, "worker-1", 30).lease();

    BOOST_TEST(second.token > first.token);
    BOOST_TEST(second.acquired_at > first.acquired_at);
    BOOST_TEST(length_us(second) == 30'000'000);
    check_same(alice.look(resource).lease(), second);
    check_problem(alice.release(resource, "worker-1", first.token), 403, "forbidden");
    check_problem(alice.renew(resource, "worker-1", ttl, first.token), 403, "forbidden");
}

BOOST_AUTO_TEST_CASE(a_key_repeated_at_another_node_gets_the_same_grant) {
    const auto lease = granted("worker-1", ttl, "key-1").lease();

    const reply replayed = bob.acquire(resource, "worker-1", 5, "key-1");
    BOOST_REQUIRE_MESSAGE(replayed.status == 200 && replayed.acquired(), replayed.text());
    BOOST_TEST(outside_the_contract(replayed) == "");
    check_same(replayed.lease(), lease);  // the TTL of the replay is ignored
    check_same(alice.look(resource).lease(), lease);

    const auto renewed = alice.renew(resource, "worker-1", 3600, lease.token).lease();
    check_same(bob.acquire(resource, "worker-1", ttl, "key-1").lease(), renewed);
}

BOOST_AUTO_TEST_CASE(a_key_sent_to_both_nodes_at_once_makes_one_grant) {
    constexpr int rounds = 60;
    std::vector<std::string> resources;
    for (int i = 0; i < rounds; ++i)
        resources.push_back(fresh_name("twice"));
    std::array<std::vector<reply>, 4> replies;
    std::barrier start(4);

    in_parallel(4, [&](std::size_t which) {
        shared_nodes& nodes = shared_nodes::instance();
        lock_client client((which % 2 ? nodes.first : nodes.second).port());
        for (const std::string& each : resources) {
            start.arrive_and_wait();
            replies[which].push_back(client.acquire(each, "worker-1", ttl, "key-1"));
        }
    });

    for (std::size_t round = 0; round < rounds; ++round)
        for (const auto& of_one : replies) {
            const reply& each = of_one[round];
            BOOST_TEST_REQUIRE((each.status == 200 && each.acquired()), each.text());
            check_same(each.lease(), replies[0][round].lease());
        }
}

BOOST_AUTO_TEST_CASE(another_key_or_none_makes_a_new_grant) {
    const auto first = granted("worker-1", ttl, "key-1").token();
    const auto second = granted("worker-1", ttl, "key-2").token();
    BOOST_TEST(second > first);
    // key-1 belongs to a grant that was replaced.
    const auto third = granted("worker-1", ttl, "key-1").token();
    BOOST_TEST(third > second);
    // Byte for byte.
    const auto fourth = granted("worker-1", ttl, "KEY-1").token();
    BOOST_TEST(fourth > third);
    // A grant without key clears the key.
    const auto fifth = granted("worker-1", ttl).token();
    BOOST_TEST(fifth > fourth);
    const auto sixth = granted("worker-1", ttl, "KEY-1").token();
    BOOST_TEST(sixth > fifth);
    BOOST_TEST(bob.acquire(resource, "worker-1", ttl, "KEY-1").token() == sixth);
}

BOOST_AUTO_TEST_CASE(the_key_of_an_ended_grant_makes_a_new_one) {
    const auto released = granted("worker-1", ttl, "key-1").token();
    BOOST_TEST(bob.release(resource, "worker-1").status == 204);
    const auto expired = granted("worker-1", 1, "key-1").token();
    BOOST_TEST(expired > released);
    BOOST_TEST(wait_until(5s, [&] { return bob.look(resource).status == 404; }));
    BOOST_TEST(granted("worker-1", ttl, "key-1").token() > expired);
}

BOOST_AUTO_TEST_CASE(a_key_gives_nothing_to_another_owner) {
    const auto lease = granted("worker-1", ttl, "key-1").lease();
    const reply refused = bob.acquire(resource, "worker-2", ttl, "key-1");
    BOOST_TEST((refused.status == 200 && !refused.acquired()), refused.text());
    check_same(bob.look(resource).lease(), lease);
}

BOOST_AUTO_TEST_CASE(bad_keys_are_400_on_an_acquire_and_ignored_elsewhere) {
    const std::string body = R"({"owner":"worker-1","ttl_seconds":60})";
    const holdfast::test::http_client::header_list twice{{"Idempotency-Key", "a"}, {"Idempotency-Key", "a"}};
    check_problem(bob.request("POST", path, body, twice), 400, "bad-request");
    for (const std::string& bad :
         {std::string(256, 'k'), std::string(""), std::string("k\xc3\xa9"), std::string("a b")})
        check_problem(bob.request("POST", path, body, {{"Idempotency-Key", bad}}), 400, "bad-request");
    BOOST_TEST(bob.look(resource).status == 404);

    BOOST_TEST(bob.request("POST", path, body, {{"Idempotency-Key", std::string(255, '~')}}).acquired());
    BOOST_TEST(bob.request("GET", path, "", twice).status == 200);
    BOOST_TEST(bob.request("POST", path + "/renew", body, twice).status == 200);
    BOOST_TEST(bob.request("DELETE", path, R"({"owner":"worker-1"})", twice).status == 204);
}

BOOST_AUTO_TEST_CASE(names_are_decoded_once_and_compared_byte_for_byte) {
    const std::vector<std::string> names{"a/b",    "renew",      "release",    ".",     "..",    "a+b", "a b",
                                         "a%2Fb",  "\u00e9",     "e\u0301",    "case",  "CASE",  " x ", "x",
                                         "\u0130", "\U0001f512", "payment:42", "a?b#c", "queue", "%"};
    for (const std::string& name : names) {
        const reply grant = alice.acquire(name, "owner of <" + name + ">", ttl);
        BOOST_REQUIRE_MESSAGE(grant.status == 200 && grant.acquired(), name << ": " << grant.text());
        BOOST_TEST(grant.lease().resource == name);
    }
    for (const std::string& name : names) {
        BOOST_TEST(bob.look(name).lease().owner == "owner of <" + name + ">");
        BOOST_TEST(bob.renew(name, "owner of <" + name + ">", ttl).status == 200);
        BOOST_TEST(bob.post_release(name, "owner of <" + name + ">").status == 204);
    }
    // What needs no escape may be written plainly, and a query changes nothing.
    BOOST_TEST(alice.request("POST", "/locks/a+b?x=1&y", R"({"owner":"w","ttl_seconds":60})").status == 200);
    BOOST_TEST(bob.look("a+b").status == 200);
    BOOST_TEST(bob.look("a b").status == 404);
    BOOST_TEST(bob.get("/locks/%61%2B%62?").status == 200);
}

BOOST_AUTO_TEST_CASE(white_space_around_an_owner_does_not_count) {
    const auto lease = granted(" \tworker-1\r\n", ttl).lease();
    BOOST_TEST(lease.owner == "worker-1");
    BOOST_TEST(bob.release(resource, "worker-1  ").status == 204);
    // Only ASCII white space, and only at the ends.
    BOOST_TEST(granted("\u00a0w w\u00a0", ttl).lease().owner == "\u00a0w w\u00a0");
}

BOOST_AUTO_TEST_CASE(all_faulty_fields_are_told_at_once) {
    using errors = std::set<std::pair<std::string, std::string>>;
    const auto told = [](const reply& reply) {
        BOOST_TEST(reply.status == 422, reply.text());
        const auto list = errors_of(reply);
        return errors(list.begin(), list.end());
    };
    BOOST_TEST((told(bob.request("POST", path, "{}")) == errors{{"owner", "required"}, {"ttl_seconds", "required"}}));
    BOOST_TEST((told(bob.request("POST", path)) == errors{{"owner", "required"}, {"ttl_seconds", "required"}}));
    BOOST_TEST((told(bob.request("DELETE", path)) == errors{{"owner", "required"}}));
    BOOST_TEST((told(bob.request("POST", "/locks/" + std::string(256, 'n') + "/renew",
                                 R"({"owner":7,"ttl_seconds":0,"fencing_token":-1,"colour":"red"})")) ==
                errors{{"resource", "too_long"},
                       {"owner", "invalid"},
                       {"ttl_seconds", "out_of_range"},
                       {"fencing_token", "out_of_range"},
                       {"colour", "unknown"}}));
    const auto repeated = told(bob.request("POST", path, R"({"owner":"a","owner":"b","ttl_seconds":1})"));
    BOOST_TEST((repeated == errors{{"owner", "repeated"}}));
}

BOOST_AUTO_TEST_CASE(health_and_readiness) {
    for (const std::string target : {"/healthz", "/readyz"}) {
        const reply answer = alice.get(target);
        BOOST_TEST(answer.status == 200, answer.text());
        BOOST_TEST(answer.json.is_object(), answer.text());
    }
}

BOOST_AUTO_TEST_CASE(the_contract_is_served_as_a_document) {
    const reply document = bob.get("/openapi.json");
    BOOST_REQUIRE_MESSAGE(document.status == 200 && document.json.is_object(), document.text());
    BOOST_TEST(document.json.as_object().at("paths").as_object().contains("/locks/{resource}"));
}

BOOST_AUTO_TEST_CASE(each_problem_explains_itself) {
    for (const std::string name :
         {"invalid-json", "bad-request", "forbidden", "not-found", "method-not-allowed", "request-timeout",
          "payload-too-large", "uri-too-long", "headers-too-large", "unsupported-media-type", "expectation-failed",
          "validation-failed", "internal-error", "unavailable", "overloaded", "outcome-unknown"}) {
        const reply page = bob.get("/problems/" + name);
        BOOST_TEST(page.status == 200, name << ": " << page.text());
        BOOST_TEST(!page.answer.body.empty());
    }
    check_problem(bob.get("/problems/none-such"), 404, "not-found");
    // The type of any problem leads to its page.
    BOOST_TEST(bob.get("/problems/" + bob.get("/nowhere").problem()).status == 200);
}

BOOST_AUTO_TEST_CASE(unknown_paths_and_methods) {
    for (const std::string target : {"/", "/locks", "/locks/", "/locks//", "/locks/a/b", "/locks/a/renew/x", "/Locks/a",
                                     "/locks//renew", "/healthz/", "/problems/"})
        check_problem(bob.request("GET", target), 404, "not-found");

    const std::vector<std::pair<std::string, std::string>> wrong_methods{
        {"PUT", path},        {"PATCH", path}, {"GET", path + "/renew"},   {"DELETE", path + "/release"},
        {"POST", "/healthz"}, {"BREW", path},  {"DELETE", "/openapi.json"}};
    for (const auto& [method, target] : wrong_methods) {
        const reply refused = bob.request(method, target);
        check_problem(refused, 405, "method-not-allowed");
        BOOST_TEST(!refused.answer.header("Allow").empty());
    }
}

BOOST_AUTO_TEST_CASE(head_and_options) {
    granted("worker-1", ttl);
    const reply looked = bob.look(resource);
    const reply head = bob.request("HEAD", path);
    BOOST_TEST(head.status == 200);
    BOOST_TEST(head.answer.body == "");
    BOOST_TEST(head.answer.header("Content-Type") == "application/json");
    BOOST_TEST(bob.request("HEAD", "/locks/" + fresh_name("absent")).status == 404);
    BOOST_TEST(bob.request("HEAD", "/healthz").status == 200);

    const reply options = bob.request("OPTIONS", path);
    BOOST_TEST(options.status == 204);
    for (const char* method : {"GET", "HEAD", "POST", "DELETE", "OPTIONS"})
        BOOST_TEST(options.answer.header("Allow").find(method) != std::string::npos, options.answer.header("Allow"));
    // The connection is still in step.
    check_same(bob.look(resource).lease(), looked.lease());
}

BOOST_AUTO_TEST_CASE(content_types) {
    const std::string body = R"({"owner":"worker-1","ttl_seconds":60})";
    check_problem(bob.request("POST", path, body, {{"Content-Type", "text/plain"}}), 415, "unsupported-media-type");
    auto client = holdfast::test::http_client::connect("127.0.0.1", shared_nodes::instance().first.port());
    client.send("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                body);
    BOOST_TEST(client.read().status == 415);
    BOOST_TEST(bob.look(resource).status == 404);
    BOOST_TEST(bob.request("POST", path, body, {{"Content-Type", "Application/JSON; charset=utf-8"}}).acquired());

    check_problem(bob.request("DELETE", path, R"({"owner":"worker-1"})", {{"Content-Type", "text/plain"}}), 415,
                  "unsupported-media-type");
    // A DELETE may leave the type out.
    const std::string owner = R"({"owner":"worker-1"})";
    client.send("DELETE " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(owner.size()) +
                "\r\n\r\n" + owner);
    BOOST_TEST(client.read().status == 204);
}

BOOST_AUTO_TEST_CASE(expectations) {
    const std::string body = R"({"owner":"worker-1","ttl_seconds":60})";
    check_problem(bob.request("POST", path, body, {{"Expect", "a-miracle"}}), 417, "expectation-failed");

    auto client = holdfast::test::http_client::connect("127.0.0.1", shared_nodes::instance().first.port());
    client.send("POST " + path +
                " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n");
    BOOST_TEST(client.read_any().status == 100);
    client.send(body);
    BOOST_TEST(client.read().status == 200);
    BOOST_TEST(bob.look(resource).status == 200);
}

BOOST_AUTO_TEST_CASE(a_chunked_body_is_taken) {
    auto client = holdfast::test::http_client::connect("127.0.0.1", shared_nodes::instance().first.port());
    client.send("POST " + path +
                " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                "9\r\n{\"owner\":\r\n14\r\n\"worker-1\",\"ttl_seco\r\na\r\nnds\":  60}\r\n0\r\n\r\n");
    const auto answer = client.read();
    BOOST_TEST(answer.status == 200, answer.body);
    BOOST_TEST(bob.look(resource).lease().owner == "worker-1");
}

BOOST_AUTO_TEST_CASE(pipelined_requests_are_answered_in_order) {
    auto client = holdfast::test::http_client::connect("127.0.0.1", shared_nodes::instance().first.port());
    using holdfast::test::http_client;
    constexpr int count = 40;
    std::string all;
    for (int i = 0; i < count; ++i) {
        const std::string target = path + "-" + std::to_string(i);
        all += http_client::format("POST", target, R"({"owner":"w","ttl_seconds":60})", {});
        all += http_client::format("GET", target, "", {});
        all += http_client::format("HEAD", target, "", {});
        all += http_client::format("DELETE", target, R"({"owner":"w"})", {});
    }
    BOOST_TEST(client.send(all));
    for (int i = 0; i < count; ++i) {
        const std::string name = resource + "-" + std::to_string(i);
        for (const char* method : {"POST", "GET"}) {
            const auto answer = client.read(method);
            BOOST_TEST_REQUIRE(answer.status == 200, answer.body);
            BOOST_TEST_REQUIRE(answer.body.find('"' + name + '"') != std::string::npos, answer.body);
        }
        BOOST_TEST_REQUIRE(client.read("HEAD").status == 200);
        BOOST_TEST_REQUIRE(client.read("DELETE").status == 204);
    }
    BOOST_TEST(client.silent_for(50ms));
}

BOOST_AUTO_TEST_CASE(http_1_0_is_answered_as_such) {
    auto client = holdfast::test::http_client::connect("127.0.0.1", shared_nodes::instance().first.port());
    client.send("GET /healthz HTTP/1.0\r\n\r\n");
    const auto answer = client.read();
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(answer.version == "HTTP/1.0");
    BOOST_TEST(client.closed_within(5s));

    auto keeping = holdfast::test::http_client::connect("127.0.0.1", shared_nodes::instance().first.port());
    for (int i = 0; i < 2; ++i) {
        keeping.send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        BOOST_TEST(keeping.read().header("Connection") == "keep-alive");
    }
}

BOOST_AUTO_TEST_SUITE_END()
