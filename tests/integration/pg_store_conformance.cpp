#include "support/pg_fixture.hpp"

namespace {

using namespace holdfast;

std::unique_ptr<tests::store_under_test> make_store_under_test() {
    return std::make_unique<tests::node_database>(tests::fresh_settings());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pg_store_conformance)
HOLDFAST_LEASE_STORE_CONFORMANCE()
BOOST_AUTO_TEST_SUITE_END()
