#include "holdfast/store/memory_store.hpp"

#include "support/wait_queue_conformance.hpp"

#include <algorithm>

namespace {

using namespace holdfast;

/// The time that all nodes of a case live in: moves by a microsecond a reading, and otherwise only when told to.
struct told_clock {
    domain::timestamp now{std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)};
    domain::timestamp operator()() { return now += std::chrono::microseconds(1); }
};

class memory_node final : public tests::queue_node, public tests::store_under_test {
public:
    memory_node(store::memory_store& store, told_clock& clock) : store_(store), clock_(clock) {
        store::wait_queue::events events;
        events.woken = [this](std::vector<std::int64_t> places) { woken_ = std::move(places); };
        events.surveyed = [this](std::vector<domain::surveyed_place> places, auto) { surveyed_ = std::move(places); };
        store_.listen(std::move(events));
    }

    tests::store_under_test& leases() override { return *this; }
    store::wait_queue& queue() override { return store_; }
    bool hears_of(const domain::place& place) override {
        woken_.clear();
        store_.deliver();
        return std::find(woken_.begin(), woken_.end(), place.number()) != woken_.end();
    }
    std::vector<domain::surveyed_place> survey() override {
        store_.survey({});
        return surveyed_;
    }

    store::lease_store& store() override { return store_; }
    boost::asio::io_context& context() override { return context_; }
    void pass(std::chrono::milliseconds length) override { clock_.now += length; }

private:
    store::memory_store& store_;
    told_clock& clock_;
    boost::asio::io_context context_;
    std::vector<std::int64_t> woken_;
    std::vector<domain::surveyed_place> surveyed_;
};

class memory_queue_under_test final : public tests::queue_under_test {
public:
    tests::queue_node& here() override { return here_node_; }
    tests::queue_node& there() override { return there_node_; }
    void kill_there() override { there_->beats(false); }
    void pass(std::chrono::milliseconds length) override { clock_.now += length; }

private:
    told_clock clock_;
    store::memory_store here_{[this] { return clock_(); }, places_max};
    std::unique_ptr<store::memory_store> there_ = here_.another_node();
    memory_node here_node_{here_, clock_};
    memory_node there_node_{*there_, clock_};
};

std::unique_ptr<tests::queue_under_test> make_queue_under_test() {
    return std::make_unique<memory_queue_under_test>();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_queue_conformance)
HOLDFAST_WAIT_QUEUE_CONFORMANCE()
BOOST_AUTO_TEST_SUITE_END()
