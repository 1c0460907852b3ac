// How many rows the statements read, whatever the statistics say that the tables hold.
#include "holdfast/pg/migrate.hpp"
#include "holdfast/pg/queries.hpp"

#include "support/pg_fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>

namespace {

using namespace holdfast;
using pg::query;

constexpr const char* far = "'{9000000000000000,9000000000000000}'";

struct call {
    query which;
    std::string arguments;
};

std::ostream& operator<<(std::ostream& out, const call& each) {
    return out << pg::query_name(each.which);
}

// Two names that have rows, asked for by their owner and by somebody else.
const std::string acquires =
    std::string("'{r1,r2}', '{o,x}', '{30,30}', '{\"\",\"\"}', ") + far + ", '9000000000000000', '50', '{}'";
const std::string renewals = std::string("'{r1,r2}', '{o,x}', '{30,30}', '{-1,-1}', ") + far + ", '50'";
const std::string releases = std::string("'{r1,r2}', '{o,x}', '{-1,-1}', ") + far + ", '50'";
const std::string passes =
    std::string("'{r1,r2}', '{o,x}', '{-1,-1}', '{p,p}', '{30,30}', '{\"\",\"\"}', '{f,f}', ") + far;
const std::string restamps = std::string("'{r1,r2}', '{o,x}', '{30,30}', '{1,2}', ") + far + ", '50'";

const std::vector<call> calls{
    {query::acquire_fast, acquires},
    {query::acquire_slow, acquires},
    {query::renew_fast, renewals},
    {query::renew_slow, renewals},
    {query::release_fast, releases},
    {query::release_slow, releases},
    {query::pass_on, passes},
    {query::restamp, restamps},
    {query::look, "'{r1,nobody}'"},
    {query::survey, "'1'"},
    {query::queue,
     "'{leave}', '{r1}', '{o}', '{0}', '{\"\"}', '{-1}', '{0}', '{0}', '{-1}', '{9000000000000000}', "
     "'10', 'false', '50'"},
};

constexpr int rows = 20'000;
constexpr int waiters = 200;  ///< All on node 1, for one of the names.

struct fixture {
    fixture() : settings(tests::fresh_settings()), texts(settings.schema) {
        pg::migrate(settings);
        stranger.emplace(settings);
        sql("INSERT INTO {schema}.waiters (place, node, attachment, ttl_seconds, resource, owner) "
            "SELECT n, 1, n, 30, 'r1', 'x' || n FROM generate_series(1, " +
            std::to_string(waiters) + ") AS n");
        sql("ANALYZE {schema}.waiters");
    }

    std::string sql(const std::string& text) { return tests::run_sql(settings, text); }

    /// Rows named r1, r2 …, all of them held by "o".
    void fill() {
        stranger->run(
            "INSERT INTO {schema}.distributed_locks (resource, owner, acquired_at, expires_at, "
            "fencing_token) SELECT 'r' || n, 'o', now(), now() + interval '1 h', n FROM generate_series(1, " +
            std::to_string(rows) + ") AS n");
    }

    /// How many rows of the table of locks the statement reads, in whatever way.
    int rows_read(const call& each) {
        tests::stranger session(settings);
        session.run("SET plan_cache_mode = force_generic_plan");
        session.run("PREPARE it AS\n" + std::string(texts.text(each.which)));
        session.run("BEGIN");
        session.run("EXECUTE it(" + each.arguments + ")");
        return std::stoi(
            session.run("SELECT pg_stat_get_xact_tuples_returned({table}::regclass) + "
                        "sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_index "
                        "WHERE indrelid = {table}::regclass"));
    }

    pg::database_settings settings;
    pg::query_texts texts;
    std::optional<tests::stranger> stranger;
};

constexpr int few = waiters + 20;  ///< A row a waiter, and two names that are looked up in a few places of a statement.

}  // namespace

BOOST_AUTO_TEST_SUITE(pg_plans)

BOOST_DATA_TEST_CASE_F(fixture, statements_find_rows_by_name_when_statistics_are_right,
                       boost::unit_test::data::make(calls), each) {
    fill();
    sql("ANALYZE {schema}.distributed_locks");
    BOOST_TEST(rows_read(each) <= few);
}

BOOST_DATA_TEST_CASE_F(fixture, statements_find_rows_by_name_when_statistics_were_taken_during_a_long_load,
                       boost::unit_test::data::make(calls), each) {
    stranger->run("BEGIN");
    fill();
    sql("ANALYZE {schema}.distributed_locks");
    stranger->run("COMMIT");
    BOOST_REQUIRE(sql("SELECT relpages > 300 AND reltuples = 0 FROM pg_class WHERE oid = {table}::regclass") == "t");
    BOOST_TEST(rows_read(each) <= few);
}

BOOST_DATA_TEST_CASE_F(fixture, statements_find_rows_by_name_in_a_table_that_was_emptied_and_filled_again,
                       boost::unit_test::data::make(calls), each) {
    fill();
    sql("DELETE FROM {schema}.distributed_locks");
    sql("VACUUM ANALYZE {schema}.distributed_locks");
    fill();
    BOOST_REQUIRE(sql("SELECT relpages > 300 AND reltuples = 0 FROM pg_class WHERE oid = {table}::regclass") == "t");
    BOOST_TEST(rows_read(each) <= few);
}

BOOST_AUTO_TEST_SUITE_END()
