// Many clients over two nodes on few resources; every grant is written down and judged afterwards.

#include "support/shared_nodes.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <random>
#include <thread>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;

/// One client's life: take a lock, hold it for a while, renew it or not, give it back, forget it or lose it.
class restless_client {
public:
    restless_client(std::size_t number, const std::vector<std::string>& resources, lease_recorder& recorder,
                    std::atomic<int>& failures)
        : random_(static_cast<unsigned>(number) + 1), resources_(resources), failures_(failures), recorder_(recorder) {
        begin_anew();
    }

    void run_until(std::chrono::steady_clock::time_point end) {
        while (std::chrono::steady_clock::now() < end) {
            client_->move_to(port());
            use(resources_[below(resources_.size())]);
        }
    }

private:
    std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
    std::uint16_t port() {
        shared_nodes& nodes = shared_nodes::instance();
        return (below(2) ? nodes.first : nodes.second).port();
    }
    /// A process that died comes back under another name: what it held runs out.
    void begin_anew() { client_.emplace(port(), fresh_name("client"), recorder_); }
    void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(below(40))); }

    void use(const std::string& resource) {
        const auto ttl = static_cast<std::int64_t>(1 + below(2));
        const reply grant = counted(client_->acquire(resource, ttl, below(4) ? "" : fresh_name("key")));
        if (grant.status != 200 || !grant.acquired()) return rest();
        rest();
        const std::int64_t token = grant.token();
        switch (below(10)) {
            case 0:  // gone without a word
                return begin_anew();
            case 1:  // the same owner again: an older token is fenced off
                counted(client_->acquire(resource, ttl));
                return;
            case 2:
                counted(client_->renew(resource, ttl, token));
                counted(client_->look(resource));
                rest();
                break;
            default:
                break;
        }
        counted(client_->release(resource, token));
    }

    const reply& counted(const reply& reply) {
        if (reply.status == 0 || reply.status >= 500) ++failures_;
        return reply;
    }

    std::mt19937 random_;
    const std::vector<std::string>& resources_;
    std::atomic<int>& failures_;
    lease_recorder& recorder_;
    std::optional<recorded_client> client_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(load)

BOOST_AUTO_TEST_CASE(many_clients_on_few_resources_over_two_nodes) {
    shared_nodes::instance();
    std::vector<std::string> resources;
    for (int i = 0; i < 6; ++i)
        resources.push_back(fresh_name("shared"));
    lease_recorder recorder;
    std::atomic<int> failures = 0;
    const auto end = std::chrono::steady_clock::now() + 20s;

    in_parallel(24, [&](std::size_t number) { restless_client(number, resources, recorder, failures).run_until(end); });

    for (const std::string& violation : recorder.violations())
        BOOST_ERROR(violation);
    BOOST_TEST(failures == 0);
    BOOST_TEST_MESSAGE(recorder.grants() << " grants");
    BOOST_TEST(recorder.grants() > 200);
}

// The judge himself: each kind of wrong that it is there to find.

namespace {

struct judged_history {
    lease_recorder recorder;
    const lease_recorder::moment start = lease_recorder::clock::now();

    /// Times in milliseconds from the start; the lease's written times agree with the client's.
    void grant(const std::string& owner, std::int64_t token, int sent, int received, int ttl) {
        recorder.granted(lease(owner, token, sent, sent + ttl, ttl), span(sent, received));
    }
    static lease_recorder::lease lease(const std::string& owner, std::int64_t token, int from, int until, int left) {
        return {"r", owner, token, written(from), written(until), std::chrono::milliseconds(left)};
    }
    lease_recorder::span span(int sent, int received) const { return {at(sent), at(received)}; }
    lease_recorder::moment at(int ms) const { return start + std::chrono::milliseconds(ms); }
    static std::string written(int ms) { return std::to_string(1'000'000 + ms); }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(the_recorder_accepts_leases_one_after_the_other, judged_history) {
    grant("a", 1, 0, 10, 1000);
    recorder.ended("r", "a", at(500));
    grant("b", 2, 510, 520, 1000);
    recorder.renewed(lease("b", 2, 510, 2500, 1500), span(1000, 1010));
    grant("b", 3, 1100, 1120, 400);
    grant("a", 5, 1500, 1510, 100);
    BOOST_TEST(recorder.violations().empty());
    BOOST_TEST(recorder.grants() == 4u);
}

BOOST_FIXTURE_TEST_CASE(the_recorder_finds_two_holders, judged_history) {
    grant("a", 1, 0, 10, 1000);
    grant("b", 2, 500, 510, 1000);
    BOOST_TEST(!recorder.violations().empty());
}

BOOST_FIXTURE_TEST_CASE(the_recorder_finds_a_grant_within_a_renewed_lease, judged_history) {
    grant("a", 1, 0, 10, 1000);
    recorder.renewed(lease("a", 1, 0, 1900, 1000), span(900, 910));
    grant("b", 2, 1500, 1510, 1000);
    BOOST_TEST(!recorder.violations().empty());
}

BOOST_FIXTURE_TEST_CASE(the_recorder_finds_tokens_that_fall_or_repeat, judged_history) {
    grant("a", 2, 0, 10, 100);
    grant("b", 1, 500, 510, 100);
    BOOST_TEST(!recorder.violations().empty());
    lease_recorder twice;
    twice.granted(lease("a", 1, 0, 100, 100), span(0, 10));
    twice.granted(lease("b", 1, 500, 600, 100), span(500, 510));
    BOOST_TEST(!twice.violations().empty());
}

BOOST_FIXTURE_TEST_CASE(the_recorder_finds_written_leases_that_overlap, judged_history) {
    // By the clients' clocks the first could be over; by the database's it was not, and nobody ended it.
    recorder.granted(lease("a", 1, 0, 1000, 100), span(0, 10));
    recorder.granted(lease("b", 2, 900, 1900, 1000), span(900, 910));
    BOOST_TEST(!recorder.violations().empty());
}

BOOST_AUTO_TEST_SUITE_END()
