#include "holdfast/store/memory_store.hpp"

#include "support/lease_store_conformance.hpp"

namespace {

using namespace holdfast;

/// The memory store under a clock that moves by a microsecond a reading, and otherwise only when told to.
class memory_store_under_test final : public tests::store_under_test {
public:
    store::lease_store& store() override { return store_; }
    boost::asio::io_context& context() override { return context_; }
    void pass(std::chrono::milliseconds length) override { now_ += length; }

private:
    boost::asio::io_context context_;
    domain::timestamp now_{std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)};
    store::memory_store store_{[this] { return now_ += std::chrono::microseconds(1); }};
};

std::unique_ptr<tests::store_under_test> make_store_under_test() {
    return std::make_unique<memory_store_under_test>();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(memory_store_conformance)
HOLDFAST_LEASE_STORE_CONFORMANCE()
BOOST_AUTO_TEST_SUITE_END()
