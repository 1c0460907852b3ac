#include "support/pg_fixture.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;

pg::database_settings eager_sweeper() {
    auto settings = tests::fresh_settings();
    settings.statement_timeout = 4s;
    settings.sweep_after = 40s;
    settings.sweep_interval = 1s;
    return settings;
}

void let_end(const pg::database_settings& settings, const std::string& name, const std::string& ago) {
    tests::run_sql(settings, "UPDATE {schema}.distributed_locks SET expires_at = now() - interval '" + ago +
                                 "' WHERE resource = '" + name + "'");
}

std::string rows(const pg::database_settings& settings) {
    return tests::run_sql(settings,
                          "SELECT string_agg(resource, ',' ORDER BY resource) FROM {schema}.distributed_locks");
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pg_sweep)

BOOST_AUTO_TEST_CASE(old_rows_go_young_live_and_locked_rows_stay) {
    const auto settings = eager_sweeper();
    tests::node_database node(settings);
    for (const char* name : {"live", "old", "old and locked", "young"})
        node.must_acquire(name, "alice", 600);
    tests::stranger stranger(settings);
    let_end(settings, "old and locked", "1 hour");
    stranger.run("BEGIN");
    stranger.run("SELECT 1 FROM {schema}.distributed_locks WHERE resource = 'old and locked' FOR UPDATE");
    let_end(settings, "young", "30 s");
    let_end(settings, "old", "1 hour");

    BOOST_TEST(node.run_until(3s, [&] { return rows(settings) == "live,old and locked,young"; }), rows(settings));
    node.run_for(1'200ms);  // one more sweep
    BOOST_TEST(rows(settings) == "live,old and locked,young");
    stranger.run("COMMIT");
    BOOST_TEST(node.run_until(3s, [&] { return rows(settings) == "live,young"; }), rows(settings));
}

BOOST_AUTO_TEST_CASE(tokens_grow_over_a_sweep) {
    const auto settings = eager_sweeper();
    tests::node_database node(settings);
    const auto before = node.must_acquire("a", "alice", 600);
    let_end(settings, "a", "1 hour");
    BOOST_TEST(node.run_until(3s, [&] { return rows(settings).empty(); }));
    const auto after = node.must_acquire("a", "alice", 600);
    BOOST_TEST((after.fencing_token() > before.fencing_token()));
}

BOOST_AUTO_TEST_CASE(a_table_of_many_pages_is_swept_in_steps) {
    const auto settings = eager_sweeper();
    tests::node_database node(settings);
    tests::run_sql(settings,
                   "INSERT INTO {schema}.distributed_locks (resource, owner, acquired_at, expires_at, fencing_token) "
                   "SELECT 'r' || n, repeat('o', 200), now() - interval '2 h', CASE WHEN n % 1000 = 0 THEN now() + "
                   "interval '1 h' ELSE "
                   "now() - interval '1 h' END, n FROM generate_series(1, 30000) AS n");
    BOOST_TEST(std::stoi(tests::run_sql(settings, "SELECT pg_relation_size({table}) / 8192")) > 1'024);
    const auto left = [&] { return tests::run_sql(settings, "SELECT count(*) FROM {schema}.distributed_locks"); };
    BOOST_TEST(node.run_until(15s, [&] { return left() == "30"; }), left());
    BOOST_TEST(node.database().ready());  // the probes went on
}

BOOST_AUTO_TEST_CASE(a_table_that_grows_is_not_read_whole_by_plans_made_for_a_small_one) {
    tests::node_database node(tests::fresh_settings());
    const auto look = [&] { BOOST_REQUIRE(node.finish(node.start_look("r1"))); };
    for (int each = 0; each < 40; ++each)
        look();  // until every session has settled on its plan
    tests::run_sql(node.settings(),
                   "INSERT INTO {schema}.distributed_locks (resource, owner, acquired_at, expires_at, fencing_token) "
                   "SELECT 'r' || n, 'o', now(), now() + interval '1 h', n FROM generate_series(1, 200000) AS n");
    BOOST_TEST_REQUIRE(node.run_until(10s, [&] { return node.journal().count("statistics_taken") >= 1; }));
    // Sessions report what they have read once a second.
    const auto rows_read = [&] {
        return std::stoll(tests::run_sql(node.settings(),
                                         "SELECT pg_stat_get_tuples_returned({table}::regclass) + "
                                         "sum(pg_stat_get_tuples_returned(indexrelid)) FROM pg_index "
                                         "WHERE indrelid = {table}::regclass"));
    };
    const auto before = rows_read();
    BOOST_TEST_REQUIRE(node.run_until(10s, [&] {
        look();
        return rows_read() >= before + 20;
    }));
    BOOST_TEST(rows_read() < before + 10'000);
}

BOOST_AUTO_TEST_CASE(one_node_sweeps_at_a_time) {
    const auto settings = eager_sweeper();
    tests::node_database node(settings);
    node.must_acquire("old", "alice", 600);
    tests::stranger other(settings);
    other.run("BEGIN");
    other.run("SELECT pg_advisory_xact_lock(hashtextextended('holdfast sweep " + settings.schema + "', 0))");
    node.run_for(300ms);
    let_end(settings, "old", "1 hour");
    node.run_for(2'500ms);
    BOOST_TEST(rows(settings) == "old");
    other.run("COMMIT");
    BOOST_TEST(node.run_until(3s, [&] { return rows(settings).empty(); }));
}

BOOST_AUTO_TEST_SUITE_END()
