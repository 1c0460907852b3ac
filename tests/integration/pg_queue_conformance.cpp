#include "support/pg_fixture.hpp"
#include "support/wait_queue_conformance.hpp"

#include <algorithm>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;

class pg_queue_node final : public tests::queue_node {
public:
    explicit pg_queue_node(const pg::database_settings& settings) : database_(settings) {
        database_.must_know_itself();
    }

    tests::store_under_test& leases() override { return database_; }
    store::wait_queue& queue() override { return database_.queue(); }
    bool hears_of(const domain::place& place) override {
        const bool heard = database_.run_until(2s, [&] {
            const auto& woken = database_.woken();
            return std::find(woken.begin() + heard_, woken.end(), place.number()) != woken.end();
        });
        heard_ = static_cast<std::ptrdiff_t>(database_.woken().size());
        return heard;
    }
    std::vector<domain::surveyed_place> survey() override {
        // The next but one: the next may have begun already.
        const auto wanted = database_.surveys() + 2;
        BOOST_REQUIRE(database_.run_until(5s, [&] { return database_.surveys() >= wanted; }));
        return database_.surveyed();
    }
    void pass(std::chrono::milliseconds length) { database_.run_for(length); }
    void stop() { database_.stop(); }

private:
    tests::node_database database_;
    std::ptrdiff_t heard_ = 0;
};

pg::database_settings settings_with_few_places() {
    auto settings = tests::fresh_settings();
    settings.places_per_resource_max = tests::queue_under_test::places_max;
    return settings;
}

class pg_queue_under_test final : public tests::queue_under_test {
public:
    tests::queue_node& here() override { return here_; }
    tests::queue_node& there() override { return there_; }
    void kill_there() override { there_.stop(); }
    void pass(std::chrono::milliseconds length) override { here_.pass(length); }

private:
    pg::database_settings settings_ = settings_with_few_places();
    pg_queue_node here_{settings_};
    pg_queue_node there_{settings_};
};

std::unique_ptr<tests::queue_under_test> make_queue_under_test() {
    return std::make_unique<pg_queue_under_test>();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pg_queue_conformance)
HOLDFAST_WAIT_QUEUE_CONFORMANCE()
BOOST_AUTO_TEST_SUITE_END()
