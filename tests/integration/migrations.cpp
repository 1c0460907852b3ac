#include "holdfast/pg/migrate.hpp"
#include "holdfast/pg/queries.hpp"

#include "support/pg_fixture.hpp"
#include "support/wait_until.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <thread>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;

}  // namespace

BOOST_AUTO_TEST_SUITE(migrations)

BOOST_AUTO_TEST_CASE(the_first_run_creates_the_second_finds_nothing_to_do) {
    const auto settings = tests::fresh_settings();
    const auto first = pg::migrate(settings);
    BOOST_REQUIRE(first.applied.size() >= 1u);
    BOOST_TEST(first.applied.front() == "0001_distributed_locks");
    BOOST_TEST(first.schema_version == static_cast<int>(first.applied.size()));
    BOOST_TEST(first.warning == "");
    const auto second = pg::migrate(settings);
    BOOST_TEST(second.applied.empty());
    BOOST_TEST(second.schema_version == first.schema_version);
    BOOST_TEST(pg::schema_version(settings) == first.schema_version);
    BOOST_TEST(tests::run_sql(settings, "SELECT count(*) FROM {schema}.schema_migrations WHERE applied_at <= now()") ==
               std::to_string(first.schema_version));
}

BOOST_AUTO_TEST_CASE(five_at_once_do_it_once) {
    const auto settings = tests::fresh_settings();
    std::atomic<int> applied{0}, failed{0};
    std::mutex mutex;
    std::string reasons;
    std::vector<std::thread> nodes;
    for (int node = 0; node < 5; ++node)
        nodes.emplace_back([&] {
            try {
                applied += static_cast<int>(pg::migrate(settings).applied.size());
            } catch (const std::exception& error) {
                ++failed;
                const std::scoped_lock lock(mutex);
                reasons += error.what();
            }
        });
    for (auto& node : nodes)
        node.join();
    BOOST_TEST(failed == 0, reasons);
    BOOST_TEST(applied == pg::schema_version(settings));
}

BOOST_AUTO_TEST_CASE(who_waited_for_another_s_migration_sees_it) {
    const auto settings = tests::fresh_settings();
    tests::stranger other(settings);
    other.run("BEGIN");
    other.run("SELECT pg_advisory_xact_lock(hashtextextended('holdfast migrate " + settings.schema + "', 0))");
    std::size_t applied = 99;
    std::thread node([&] { BOOST_CHECK_NO_THROW(applied = pg::migrate(settings).applied.size()); });
    BOOST_TEST(tests::wait_until(5s, [&] {
        return tests::postgres_cluster::shared().psql(
                   "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == "1";
    }));
    other.run("CREATE SCHEMA {schema}");
    other.run("CREATE TABLE {schema}.schema_migrations (version integer PRIMARY KEY, name text NOT NULL)");
    other.run("INSERT INTO {schema}.schema_migrations VALUES (" + std::to_string(pg::known_migrations().size()) +
              ", 'by another')");
    other.run("COMMIT");
    node.join();
    BOOST_TEST(applied == 0u);
}

BOOST_AUTO_TEST_CASE(a_schema_newer_than_the_binary_is_refused) {
    const auto settings = tests::fresh_settings();
    pg::migrate(settings);
    tests::run_sql(settings, "INSERT INTO {schema}.schema_migrations (version, name) VALUES (9999, 'from the future')");
    BOOST_CHECK_THROW(pg::migrate(settings), pg::migration_refused);
    BOOST_CHECK_THROW(pg::schema_version(settings), pg::migration_refused);

    for (const bool migrate_on_start : {true, false}) {
        auto with = settings;
        with.migrate_on_start = migrate_on_start;
        tests::node_database node(with, false);
        BOOST_TEST(node.run_until(5s, [&] { return !node.refused().empty(); }));
        BOOST_TEST(node.refused().find("9999") != std::string::npos);
        BOOST_TEST(!node.database().ready());
    }
}

BOOST_AUTO_TEST_CASE(without_migrate_on_start_a_node_waits_for_the_schema) {
    auto settings = tests::fresh_settings();
    settings.migrate_on_start = false;
    tests::node_database node(settings, false);
    node.run_for(500ms);
    BOOST_TEST(!node.database().ready());
    BOOST_TEST(node.refused() == "");
    const auto refused = node.acquire({tests::resource("a"), tests::owner("o"), tests::seconds(30)});
    BOOST_TEST((refused.error() == domain::errc::unavailable));
    pg::migrate(settings);
    BOOST_TEST(node.wait_ready(3s));
    node.must_acquire("a", "o", 30);
}

BOOST_AUTO_TEST_CASE(five_nodes_start_on_an_empty_database) {
    const auto settings = tests::fresh_settings();
    std::vector<std::unique_ptr<tests::node_database>> nodes;
    for (int node = 0; node < 5; ++node)
        nodes.push_back(std::make_unique<tests::node_database>(settings, false));
    for (auto& node : nodes)
        BOOST_TEST(node->wait_ready(10s));
    std::size_t migrated = 0;
    for (auto& node : nodes)
        migrated += node->journal().count("schema_migrated");
    BOOST_TEST(migrated == static_cast<std::size_t>(pg::schema_version(settings)));
}

BOOST_AUTO_TEST_CASE(sets_the_statement_limit_of_the_role) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database();
    auto settings = tests::fresh_settings(cluster, database);
    settings.statement_timeout = 1'234ms;
    BOOST_TEST(pg::migrate(settings).warning == "");
    BOOST_TEST(cluster.psql("SHOW statement_timeout", database) == "1234ms");
    settings.statement_timeout = 2s;  // also without a migration to apply
    pg::migrate(settings);
    BOOST_TEST(cluster.psql("SHOW statement_timeout", database) == "2s");
}

BOOST_AUTO_TEST_CASE(a_short_statement_limit_does_not_cut_a_migration_short) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database();
    cluster.psql("ALTER DATABASE \"" + database + "\" SET statement_timeout = 300");
    const auto settings = tests::fresh_settings(cluster, database);
    tests::stranger other(settings);  // another node migrates, for longer than that
    other.run("BEGIN");
    other.run("SELECT pg_advisory_xact_lock(hashtextextended('holdfast migrate " + settings.schema + "', 0))");
    std::thread node([&] { BOOST_CHECK_NO_THROW(pg::migrate(settings)); });
    std::this_thread::sleep_for(800ms);
    other.run("COMMIT");
    node.join();
    BOOST_TEST(pg::schema_version(settings) >= 1);
}

BOOST_AUTO_TEST_CASE(a_schema_owned_by_somebody_without_rights_on_the_database_works) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database();
    auto settings = tests::fresh_settings(cluster, database);
    const std::string role = "guest_" + database;
    cluster.psql("CREATE ROLE \"" + role + "\" LOGIN; REVOKE CREATE ON DATABASE \"" + database +
                     "\" FROM PUBLIC; CREATE SCHEMA \"" + settings.schema + "\" AUTHORIZATION \"" + role + "\"",
                 database);
    settings.url = "host=127.0.0.1 port=" + std::to_string(cluster.port()) + " dbname=" + database + " user=" + role;
    BOOST_TEST(pg::migrate(settings).applied.size() >= 1u);
}

BOOST_AUTO_TEST_CASE(a_database_in_another_encoding_is_refused) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    BOOST_CHECK_THROW(pg::migrate(tests::fresh_settings(cluster, database)), pg::migration_refused);
}

BOOST_AUTO_TEST_CASE(another_default_isolation_is_refused) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database();
    cluster.psql("ALTER DATABASE \"" + database + "\" SET default_transaction_isolation = 'repeatable read'");
    tests::node_database node(tests::fresh_settings(cluster, database), false);
    BOOST_TEST(node.run_until(5s, [&] { return !node.refused().empty(); }));
    BOOST_TEST(node.refused().find("isolation") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(under_an_icu_collation_names_are_still_compared_byte_for_byte) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database(
        "LOCALE_PROVIDER icu ICU_LOCALE 'und-u-ks-level1' LOCALE 'C' ENCODING 'UTF8' TEMPLATE template0");
    tests::node_database node(tests::fresh_settings(cluster, database));
    tests::conformance::resources_are_told_apart_byte_for_byte(node);
}

BOOST_AUTO_TEST_CASE(any_schema_name_will_do) {
    auto settings = tests::fresh_settings();
    settings.schema = "it's \"quoted\" \\ {schema} " + settings.schema;
    tests::node_database node(settings);
    node.must_acquire("a", "o", 30);
    BOOST_TEST(node.is_held("a"));

    settings.schema = std::string(64, 's');
    BOOST_CHECK_THROW(pg::migrate(settings), pg::migration_refused);
}

BOOST_AUTO_TEST_CASE(advanced_tokens_lie_beyond_all_that_a_backup_forgot) {
    const auto settings = tests::fresh_settings();
    tests::node_database node(settings);
    const auto before = node.must_acquire("a", "o", 30).fencing_token().number();
    // A restore from a backup whose sequence is behind its table.
    tests::run_sql(
        settings,
        "ALTER SEQUENCE {schema}.fencing_tokens RESTART; UPDATE {schema}.distributed_locks SET fencing_token = 5000");
    const auto report = pg::advance_tokens(settings);
    BOOST_TEST(report.previous_token == 5000);
    BOOST_TEST(report.next_token == 1'000'000'005'000);
    const auto after = node.must_acquire("a", "o", 30).fencing_token().number();
    BOOST_TEST(after >= report.next_token);
    BOOST_TEST(after > before);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_done_is_said_in_one_line) {
    auto settings = tests::fresh_settings();
    BOOST_CHECK_THROW(pg::advance_tokens(settings), pg::migration_error);
    settings.url = "postgresql://holdfast@127.0.0.1:1/postgres";
    try {
        pg::migrate(settings);
        BOOST_TEST(false);
    } catch (const pg::migration_error& error) {
        BOOST_TEST(std::string(error.what()).find('\n') == std::string::npos);
    }
    settings.url = "postgresql://user:secret@host:port:port/";
    try {
        pg::migrate(settings);
        BOOST_TEST(false);
    } catch (const pg::migration_error& error) {
        BOOST_TEST(std::string(error.what()).find("secret") == std::string::npos);
    }
}

BOOST_AUTO_TEST_SUITE_END()
