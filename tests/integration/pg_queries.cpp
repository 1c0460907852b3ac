// The statements themselves, against the migrated schema.
#include "holdfast/pg/connection.hpp"
#include "holdfast/pg/migrate.hpp"
#include "holdfast/pg/sql_backend.hpp"

#include "support/pg_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <set>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using pg::query;

constexpr std::int64_t never_late = 9'000'000'000'000'000;

struct fixture {
    explicit fixture(pg::database_settings with = tests::fresh_settings())
        : settings(std::move(with)), texts(settings.schema) {
        pg::migrate(settings);
        session.emplace(settings, texts, watch);
        session->prepare({query::acquire_fast, query::acquire_slow,   query::renew_fast,     query::renew_slow,
                          query::release_fast, query::release_slow,   query::restamp,        query::look,
                          query::probe,        query::analyze,        query::sweep,          query::queue,
                          query::announce,     query::draw_node,      query::beat,           query::survey,
                          query::tidy_queue,   query::schema_version, query::advance_tokens, query::settle_memory,
                          query::pass_on});
    }

    /// From "o" to "p" for 60 s.
    std::string pass_on(const std::string& name, const std::string& token = "-1", const std::string& owner = "o",
                        const std::string& limit = "9000000000000000") {
        return session
            ->run(query::pass_on, {"{" + name + "}", "{" + owner + "}", "{" + token + "}", "{p}", "{60}", "{key}",
                                   "{f}", "{" + limit + "}"})
            .at(0)["verdict"]
            .as<std::string>();
    }

    pqxx::result acquire(const std::string& resources, const std::string& owners, const std::string& ttls,
                         const std::string& keys, const std::string& limits, query which = query::acquire_fast) {
        const std::string returnable = "{}";  // none of them
        return session->run(which, {resources, owners, ttls, keys, limits, least(limits), "50", returnable});
    }

    static std::string least(const std::string& limits) {
        std::int64_t result = never_late;
        for (std::size_t at = 1; at < limits.size(); at = limits.find_first_of(",}", at) + 1)
            result = std::min<std::int64_t>(result, std::stoll(limits.substr(at)));
        return std::to_string(result);
    }

    std::string sql(const std::string& text) { return tests::run_sql(settings, text); }

    pg::database_settings settings;
    pg::query_texts texts;
    pg::socket_watch watch;
    std::optional<pg::connection> session;
};

const std::string three_limits = "{9000000000000000,9000000000000000,9000000000000000}";
const std::string one_limit = "{9000000000000000}";

std::string verdict(const pqxx::result& result) {
    return result.at(0)["verdict"].as<std::string>();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pg_queries)

BOOST_AUTO_TEST_CASE(every_query_file_is_prepared_against_the_migrated_schema) {
    fixture f;  // prepares the ones with a name in the code
    std::set<std::string_view> texts;
    for (std::size_t which = 0; which < pg::query_count; ++which)
        texts.insert(f.texts.text(static_cast<query>(which)));
    BOOST_TEST(texts.size() == pg::query_count);
}

BOOST_AUTO_TEST_CASE(three_rows_in_one_statement_get_three_tokens_and_exact_ttls) {
    fixture f;
    std::set<std::int64_t> tokens;
    std::int64_t last = 0;
    for (int round = 0; round < 3; ++round) {  // first on the insert path, then on the update path
        const auto result = f.acquire("{a,b,c}", "{o,o,o}", "{1,86400,31536000}", R"({"","",""})", three_limits);
        BOOST_REQUIRE(result.size() == 3);
        for (const auto& row : result) {
            BOOST_TEST(row["verdict"].as<std::string>() == "granted");
            tokens.insert(row["fencing_token"].as<std::int64_t>());
            BOOST_TEST(row["fencing_token"].as<std::int64_t>() > last);
        }
        last = *tokens.rbegin();
        BOOST_TEST(f.sql("SELECT string_agg((extract(epoch FROM expires_at - acquired_at))::bigint::text, ',' ORDER BY "
                         "resource) FROM {schema}.distributed_locks") == "1,86400,31536000");
    }
    BOOST_TEST(tokens.size() == 9u);
}

BOOST_AUTO_TEST_CASE(a_ttl_of_days_is_exact_in_every_time_zone) {
    auto settings = tests::fresh_settings();
    const auto database = tests::postgres_cluster::shared().create_database();
    settings.url = tests::postgres_cluster::shared().url(database);
    // Half a year is 183 days, with a change of daylight saving time among them on any date.
    tests::postgres_cluster::shared().psql("ALTER DATABASE \"" + database + "\" SET timezone = 'Europe/Berlin'");
    fixture f(settings);
    for (int round = 0; round < 2; ++round) {
        const auto result = f.acquire("{a}", "{o}", "{15811200}", R"({""})", one_limit);
        BOOST_TEST(result[0]["expires_at_us"].as<std::int64_t>() - result[0]["acquired_at_us"].as<std::int64_t>() ==
                   15'811'200'000'000);
    }
}

BOOST_AUTO_TEST_CASE(late_writes_do_nothing) {
    fixture f;
    f.acquire("{mine}", "{o}", "{30}", R"({""})", one_limit);
    const auto before = f.sql("TABLE {schema}.distributed_locks");

    for (const auto which : {query::acquire_fast, query::acquire_slow}) {
        BOOST_TEST(verdict(f.acquire("{absent}", "{o}", "{30}", R"({""})", "{1000000}", which)) == "late");
        BOOST_TEST(verdict(f.acquire("{mine}", "{o}", "{30}", R"({""})", "{1000000}", which)) == "late");
    }
    for (const auto which : {query::renew_fast, query::renew_slow})
        BOOST_TEST(verdict(f.session->run(which, {"{mine}", "{o}", "{60}", "{-1}", "{1000000}", "50"})) == "late");
    for (const auto which : {query::release_fast, query::release_slow})
        BOOST_TEST(verdict(f.session->run(which, {"{mine}", "{o}", "{-1}", "{1000000}", "50"})) == "late");
    BOOST_TEST(verdict(f.session->run(query::restamp, {"{mine}", "{o}", "{30}", "{1}", "{1000000}", "50"})) ==
               "refused");
    BOOST_TEST(f.pass_on("mine", "-1", "o", "1000000") == "apart");
    BOOST_TEST(f.sql("TABLE {schema}.distributed_locks") == before);
}

BOOST_AUTO_TEST_CASE(a_lease_that_is_passed_on_is_a_new_grant) {
    fixture f;
    f.acquire("{a,b}", "{o,o}", "{30,30}", R"({"k","k"})", "{9000000000000000,9000000000000000}");
    const auto passed = f.session->run(query::pass_on, {"{a,b}", "{o,o}", "{-1,-1}", "{p,o}", "{60,86400}",
                                                        R"({"","k"})", "{f,t}", "{9000000000000000,9000000000000000}"});
    BOOST_REQUIRE(passed.size() == 2);
    for (const auto& row : passed) {
        BOOST_TEST(row["verdict"].as<std::string>() == "passed");
        BOOST_TEST(row["fencing_token"].as<std::int64_t>() > 2);
        BOOST_TEST(row["expires_at_us"].as<std::int64_t>() - row["acquired_at_us"].as<std::int64_t>() ==
                   (row["ordinal"].as<int>() == 1 ? 60'000'000 : 86'400'000'000));
        BOOST_TEST(row["clock_us"].as<std::int64_t>() - row["acquired_at_us"].as<std::int64_t>() >= 0);
    }
    BOOST_TEST(f.sql("SELECT string_agg(concat_ws(' ', resource, owner, idempotency_key, released, in_delivery, "
                     "offered_place, places), ',' ORDER BY resource) FROM {schema}.distributed_locks") ==
               "a p f 0,b o k f 0 0");
    BOOST_TEST(f.sql("SELECT count(DISTINCT fencing_token) FROM {schema}.distributed_locks") == "2");
}

BOOST_AUTO_TEST_CASE(only_the_owners_own_live_lease_that_nobody_waits_for_is_passed_on) {
    fixture f;
    BOOST_TEST(f.pass_on("absent") == "apart");
    f.acquire("{a}", "{o}", "{30}", R"({""})", one_limit);
    const std::string token = f.sql("SELECT fencing_token FROM {schema}.distributed_locks");
    const auto refuses = [&](const std::string& why, const auto& attempt) {
        const std::string before = f.sql("TABLE {schema}.distributed_locks");
        BOOST_TEST(attempt() == "apart", why);
        BOOST_TEST(f.sql("TABLE {schema}.distributed_locks") == before, why);
    };
    refuses("another owner's", [&] { return f.pass_on("a", "-1", "x"); });
    refuses("another token", [&] { return f.pass_on("a", "0"); });
    const auto with = [&](const std::string& state, const std::string& back) {
        f.sql("UPDATE {schema}.distributed_locks SET " + state);
        refuses(state, [&] { return f.pass_on("a"); });
        f.sql("UPDATE {schema}.distributed_locks SET " + back);
    };
    with("expires_at = clock_timestamp()", "expires_at = clock_timestamp() + interval '30 s'");
    with("released = true", "released = false");
    with("places = 1", "places = 0");
    {
        tests::stranger stranger(f.settings);
        stranger.run("BEGIN");
        stranger.run("SELECT 1 FROM {schema}.distributed_locks FOR SHARE");
        refuses("locked", [&] { return f.pass_on("a"); });
    }
    BOOST_TEST(f.pass_on("a", token) == "passed");
}

BOOST_AUTO_TEST_CASE(what_becomes_late_before_its_row_is_written_is_not_passed_on) {
    fixture f;
    f.acquire("{a,b,c}", "{o,o,o}", "{30,30,30}", R"({"","",""})", three_limits);
    f.sql(
        "CREATE FUNCTION {schema}.dawdle() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_sleep(0.6); RETURN NEW; END'; "
        "CREATE TRIGGER dawdle BEFORE INSERT ON {schema}.distributed_locks FOR EACH ROW "
        "WHEN (NEW.resource = 'b') EXECUTE FUNCTION {schema}.dawdle()");
    const std::string soon =
        f.sql("SELECT (date_part('epoch', clock_timestamp() + interval '0.3 s') * 1000000)::bigint");
    const auto passed =
        f.session->run(query::pass_on, {"{a,b,c}", "{o,o,o}", "{-1,-1,-1}", "{p,p,p}", "{60,60,60}", R"({"","",""})",
                                        "{f,f,f}", "{9000000000000000," + soon + ",9000000000000000}"});
    for (const auto& row : passed)
        BOOST_TEST(row["verdict"].as<std::string>() == (row["ordinal"].as<int>() == 2 ? "apart" : "passed"));
    BOOST_TEST(f.sql("SELECT owner FROM {schema}.distributed_locks WHERE resource = 'b'") == "o");
}

BOOST_AUTO_TEST_CASE(each_row_of_a_statement_has_its_own_limit) {
    fixture f;
    for (const char* expected : {"insert path", "update path"}) {
        const auto result = f.acquire("{a,b}", "{o,o}", "{30,30}", R"({"",""})", "{1000000,9000000000000000}");
        BOOST_TEST_CONTEXT(expected) {
            for (const auto& row : result)
                BOOST_TEST(row["verdict"].as<std::string>() == (row["ordinal"].as<int>() == 1 ? "late" : "granted"));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_locked_row_is_busy_and_delays_nobody_else) {
    fixture f;
    f.acquire("{a,b}", "{o,o}", "{30,30}", R"({"",""})", "{9000000000000000,9000000000000000}");
    tests::stranger stranger(f.settings);
    stranger.run("BEGIN");
    stranger.run("SELECT 1 FROM {schema}.distributed_locks WHERE resource = 'a' FOR UPDATE");

    const auto start = std::chrono::steady_clock::now();
    const auto acquired = f.acquire("{a,b,c}", "{o,o,o}", "{30,30,30}", R"({"","",""})", three_limits);
    const auto renewed = f.session->run(
        query::renew_fast, {"{a,b}", "{o,o}", "{30,30}", "{-1,-1}", "{9000000000000000,9000000000000000}", "50"});
    const auto released =
        f.session->run(query::release_fast, {"{a,b}", "{o,o}", "{-1,-1}", "{9000000000000000,9000000000000000}", "50"});
    BOOST_TEST((std::chrono::steady_clock::now() - start < 1s));
    for (const auto& result : {acquired, renewed, released})
        for (const auto& row : result)
            BOOST_TEST((row["verdict"].as<std::string>() == "busy") == (row["ordinal"].as<int>() == 1));
}

BOOST_AUTO_TEST_CASE(a_refusal_reads_the_row_and_leaves_it_alone) {
    fixture f;
    const auto locker = [&] { return f.sql("SELECT xmax FROM {schema}.distributed_locks WHERE resource = 'a'"); };
    // The row inserted, then updated, then passed on.
    for (int grant = 0; grant < 3; ++grant) {
        if (grant < 2)
            f.acquire("{a}", "{o}", "{30}", R"({""})", one_limit);
        else
            f.session->run(query::pass_on, {"{a}", "{o}", "{-1}", "{o}", "{30}", R"({""})", "{f}", one_limit});
        const std::string before = locker();
        const auto refused = f.acquire("{a}", "{p}", "{30}", R"({""})", one_limit);
        BOOST_TEST(verdict(refused) == "held");
        BOOST_TEST(refused.at(0)["holder"].as<std::string>() == "o");
        BOOST_TEST(locker() == before);
    }
}

const std::string lock_row = "SELECT 1 FROM {schema}.distributed_locks WHERE resource = 'a' FOR ";
const std::string write_row = "UPDATE {schema}.distributed_locks SET released = true WHERE resource = 'a'";

BOOST_AUTO_TEST_CASE(what_is_held_is_busy_all_the_same_while_somebody_has_the_row_locked) {
    const std::vector<std::vector<std::string>> ways{
        {lock_row + "UPDATE"},
        {lock_row + "SHARE"},
        {write_row},
        {"SAVEPOINT one", lock_row + "UPDATE"},
        {"SAVEPOINT one", lock_row + "UPDATE", "RELEASE SAVEPOINT one"},
        {"SAVEPOINT one", write_row},
    };
    fixture f;
    f.acquire("{a}", "{o}", "{30}", R"({""})", one_limit);
    tests::stranger stranger(f.settings), other(f.settings);
    const auto judged = [&] {
        f.sql("SELECT txid_current()");  // A transaction ends: the locker is not the newest any more.
        return verdict(f.acquire("{a}", "{p}", "{30}", R"({""})", one_limit));
    };
    for (const auto& way : ways) {
        stranger.run("BEGIN");
        stranger.run("SELECT txid_current()");
        for (const std::string& step : way)
            stranger.run(step);
        BOOST_TEST(judged() == "busy", way.back());
        stranger.run("ROLLBACK");
        BOOST_TEST(judged() == "held", way.back());
    }
    for (tests::stranger* each : {&stranger, &other}) {
        each->run("BEGIN");
        each->run(lock_row + "SHARE");
    }
    BOOST_TEST(judged() == "busy");
    stranger.run("COMMIT");
    BOOST_TEST(judged() == "busy");
    other.run("COMMIT");
    BOOST_TEST(judged() == "held");
}

BOOST_AUTO_TEST_CASE(the_lock_limit_is_inside_the_statement_and_leaves_no_trace) {
    fixture f;
    f.acquire("{a}", "{o}", "{30}", R"({""})", one_limit);
    tests::stranger stranger(f.settings);
    stranger.run("BEGIN");
    stranger.run("SELECT 1 FROM {schema}.distributed_locks WHERE resource = 'a' FOR UPDATE");
    const auto start = std::chrono::steady_clock::now();
    const auto is_lock_timeout = [](const pg::statement_error& error) { return error.sqlstate() == "55P03"; };
    BOOST_CHECK_EXCEPTION(f.acquire("{a}", "{o}", "{30}", R"({""})", one_limit, query::acquire_slow),
                          pg::statement_error, is_lock_timeout);
    BOOST_CHECK_EXCEPTION(f.session->run(query::renew_slow, {"{a}", "{o}", "{30}", "{-1}", one_limit, "50"}),
                          pg::statement_error, is_lock_timeout);
    BOOST_CHECK_EXCEPTION(f.session->run(query::release_slow, {"{a}", "{o}", "{-1}", one_limit, "50"}),
                          pg::statement_error, is_lock_timeout);
    BOOST_TEST((std::chrono::steady_clock::now() - start < 2s));
    BOOST_TEST(!f.session->broken());
    pqxx::nontransaction work(f.session->raw());
    BOOST_TEST(std::string(work.exec("SHOW lock_timeout")[0][0].c_str()) == "0");
}

BOOST_AUTO_TEST_CASE(a_released_lease_stays_ended_when_the_clock_steps_backward) {
    fixture f;
    f.acquire("{a}", "{o}", "{3600}", R"({""})", one_limit);
    f.session->run(query::release_fast, {"{a}", "{o}", "{-1}", one_limit, "50"});
    // A clock that steps back by half an hour makes the recorded end lie in the future.
    f.sql("UPDATE {schema}.distributed_locks SET expires_at = expires_at + interval '30 min'");

    BOOST_TEST(verdict(f.session->run(query::look, {"{a}"})) == "not_found");
    BOOST_TEST(verdict(f.session->run(query::renew_fast, {"{a}", "{o}", "{30}", "{-1}", one_limit, "50"})) ==
               "not_found");
    BOOST_TEST(verdict(f.session->run(query::release_fast, {"{a}", "{o}", "{-1}", one_limit, "50"})) == "not_found");
    BOOST_TEST(verdict(f.acquire("{a}", "{other}", "{30}", R"({""})", one_limit)) == "granted");
    BOOST_TEST(verdict(f.session->run(query::look, {"{a}"})) == "found");
}

BOOST_AUTO_TEST_CASE(an_outdated_idea_of_the_clock_costs_one_repetition) {
    fixture f;
    pg::database_clock clock;
    tests::recording_journal journal;
    pg::sql_backend backend(f.settings, f.texts, clock, f.watch, journal);
    f.session.reset();
    BOOST_REQUIRE(backend.connect());
    const auto now = std::chrono::steady_clock::now();
    clock.read(1'000'000, now, now);  // The database's clock has stepped forward by half a century.

    const pg::command what = domain::acquire_command(tests::resource("a"), tests::owner("o"), tests::seconds(30));
    const pg::request request{&what, now + 5s};
    const auto replies = backend.run({&request, 1}, pg::lane::fast, 50ms);
    BOOST_REQUIRE(replies.size() == 1u);
    const auto& answer = std::get<pg::carried_out>(replies[0]).answer;
    BOOST_REQUIRE(answer);
    BOOST_TEST((std::get<domain::acquire_outcome>(*answer).result() == domain::acquire_result::granted));
    BOOST_TEST(*clock.at(now) > 1'700'000'000'000'000);
}

BOOST_AUTO_TEST_CASE(only_the_guilty_row_of_a_batch_fails) {
    fixture f;
    f.sql("ALTER TABLE {schema}.distributed_locks ADD CHECK (resource <> 'guilty')");
    pg::database_clock clock;
    tests::recording_journal journal;
    pg::sql_backend backend(f.settings, f.texts, clock, f.watch, journal);
    f.session.reset();
    BOOST_REQUIRE(backend.connect());

    std::vector<pg::command> commands;
    std::vector<pg::request> requests;
    for (const char* name : {"a", "guilty", "z"})
        commands.push_back(domain::acquire_command(tests::resource(name), tests::owner("o"), tests::seconds(30)));
    for (const auto& command : commands)
        requests.push_back({&command, std::chrono::steady_clock::now() + 5s});
    const auto replies = backend.run(requests, pg::lane::fast, 50ms);
    BOOST_TEST(std::get<pg::carried_out>(replies[0]).answer.has_value());
    BOOST_TEST((std::get<pg::carried_out>(replies[1]).answer.error() == domain::errc::internal));
    BOOST_TEST(std::get<pg::carried_out>(replies[2]).answer.has_value());
    BOOST_TEST(journal.count("statement_failed") == 1u);
}

BOOST_AUTO_TEST_CASE(a_lost_session_is_never_opened_again_in_silence) {
    fixture f;
    pqxx::result pid;
    {
        pqxx::nontransaction work(f.session->raw());
        pid = work.exec("SELECT pg_backend_pid()");
    }
    BOOST_TEST(f.session->quiet());
    f.sql("SELECT pg_terminate_backend(" + std::string(pid[0][0].c_str()) + ", 5000)");
    BOOST_TEST(!f.session->quiet());
    for (int attempt = 0; attempt < 3; ++attempt)
        BOOST_CHECK_THROW(f.session->run(query::look, {"{a}"}), pg::statement_error);
    BOOST_TEST(f.session->broken());
    BOOST_TEST(!f.session->quiet());
}

BOOST_AUTO_TEST_CASE(the_table_repeats_the_limits_of_the_contract) {
    fixture f;
    const auto refused = [&](const std::string& resource, const std::string& owner, const std::string& key,
                             const std::string& token) {
        tests::stranger stranger(f.settings);
        try {
            stranger.run(
                "INSERT INTO {schema}.distributed_locks (resource, owner, idempotency_key, acquired_at, expires_at, "
                "fencing_token) VALUES (" +
                resource + "," + owner + "," + key + ", now(), now()," + token + ")");
        } catch (const pqxx::sql_error& error) {
            return error.sqlstate() == "23514" || error.sqlstate() == "23502";
        }
        return false;
    };
    BOOST_TEST(!refused("repeat('r', 255)", "repeat('o', 255)", "repeat('k', 255)", "9007199254740991"));
    BOOST_TEST(refused("repeat('r', 256)", "'o'", "NULL", "1"));
    BOOST_TEST(refused("repeat('\u00e4', 128)", "'o'", "NULL", "1"));
    BOOST_TEST(refused("''", "'o'", "NULL", "1"));
    BOOST_TEST(refused("E'a\\x1f'", "'o'", "NULL", "1"));
    BOOST_TEST(refused("E'a\\x7f'", "'o'", "NULL", "1"));
    BOOST_TEST(refused("NULL", "'o'", "NULL", "1"));
    BOOST_TEST(refused("'a'", "repeat('o', 256)", "NULL", "1"));
    BOOST_TEST(refused("'a'", "''", "NULL", "1"));
    BOOST_TEST(refused("'a'", "E'o\\n'", "NULL", "1"));
    BOOST_TEST(refused("'a'", "'o'", "''", "1"));
    BOOST_TEST(refused("'a'", "'o'", "'k k'", "1"));
    BOOST_TEST(refused("'a'", "'o'", "repeat('k', 256)", "1"));
    BOOST_TEST(refused("'a'", "'o'", "NULL", "0"));
    BOOST_TEST(refused("'a'", "'o'", "NULL", "9007199254740992"));
}

BOOST_AUTO_TEST_SUITE_END()
