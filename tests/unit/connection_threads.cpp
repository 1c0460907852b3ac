// Threads, queue and bridge against a backend that keeps its leases in memory. No database; made for the thread
// sanitizer.
#include "holdfast/pg/connection_threads.hpp"

#include "holdfast/store/memory_store.hpp"

#include "support/lease_store_conformance.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/test/unit_test.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <random>
#include <set>
#include <thread>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using domain::errc;
using pg::answer;
using std::chrono::steady_clock;
using tests::owner;
using tests::resource;
using tests::seconds;

class silent_journal final : public domain::journal {
public:
    void write(domain::log_level, std::string_view, std::initializer_list<domain::log_field>) noexcept override {}
};

/// What all fake sessions share: the "database", and how it misbehaves.
struct fake_database {
    std::atomic<bool> reachable{true};
    std::atomic<bool> stuck{false};  ///< Statements hang until their socket is shut down.
    std::atomic<int> delay_us{0};
    std::atomic<int> statements{0};
    std::atomic<int> rows{0};
    std::atomic<int> generation{0};  ///< Raised to cut all sessions.

    std::atomic<int> broken_rules{0};  ///< Boost.Test's macros are for the main thread only.
    void expect(bool kept) { broken_rules += kept ? 0 : 1; }

    std::mutex mutex;
    std::map<std::string, int> carried_out;  ///< How often a command to the resource came to a session.
    void rows_by_resource(const pg::command& command) {
        const std::scoped_lock lock(mutex);
        ++carried_out[pg::resource_of(command)];
    }
    std::map<std::string, std::string> holders;
    std::set<std::string> under_way;  ///< Writes of two threads on one resource at a time are a bug.
    std::set<std::string> locked;     ///< Rows that a stranger has locked.
    std::set<std::string> apart;      ///< Leases that cannot be passed on.
};

class fake_session final : public pg::backend {
public:
    fake_session(fake_database& database, pg::socket_watch& watch) : database_(database), watch_(watch) {}
    ~fake_session() override { close(); }

    bool connect() override {
        close();
        if (!database_.reachable.load()) return false;
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets_) != 0) return false;
        watch_.attach(sockets_[0]);
        generation_ = database_.generation.load();
        return true;
    }

    bool usable() override { return sockets_[0] >= 0 && generation_ == database_.generation.load(); }

    std::vector<pg::reply> run(std::span<const pg::request> requests, pg::lane, std::chrono::milliseconds) override {
        ++database_.statements;
        database_.rows += static_cast<int>(requests.size());
        const auto kind = pg::kind_of(*requests.front().what);
        const bool write = kind != store::command_kind::look;
        const bool in_pairs = kind == store::command_kind::release && requests.size() > 1 &&
                              pg::kind_of(*requests[1].what) == store::command_kind::acquire;
        if (write) enter(requests);
        if (const int delay_us = database_.delay_us.load())
            std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
        bool lost = false;
        if (database_.stuck.load()) {
            char byte;
            while (::recv(sockets_[0], &byte, 1, 0) > 0) {
            }
            lost = true;
        }
        std::vector<pg::reply> replies;
        for (std::size_t row = 0; row < requests.size(); ++row) {
            const pg::request& each = requests[row];
            const bool second = in_pairs && row % 2 == 1;
            database_.expect(pg::kind_of(*each.what) == (second ? store::command_kind::acquire : kind));
            if (in_pairs && goes_apart(*each.what)) {
                replies.emplace_back(pg::apart());
                continue;
            }
            replies.push_back(lost ? pg::reply(answer(write ? errc::outcome_unknown : errc::unavailable))
                                   : judge(*each.what));
            database_.rows_by_resource(*each.what);
        }
        if (write) leave(requests);
        if (lost) close();
        return replies;
    }

private:
    void close() {
        watch_.detach();
        for (int& socket : sockets_) {
            if (socket >= 0) ::close(socket);
            socket = -1;
        }
    }

    bool goes_apart(const pg::command& command) {
        const std::scoped_lock lock(database_.mutex);
        return database_.apart.count(pg::resource_of(command)) > 0 ||
               database_.locked.count(pg::resource_of(command)) > 0;
    }

    void enter(std::span<const pg::request> requests) {
        const std::scoped_lock lock(database_.mutex);
        const pg::command* last = nullptr;
        for (const pg::request& each : requests) {
            const std::string& name = pg::resource_of(*each.what);
            const bool is_pair = last && pg::resource_of(*last) == name;
            database_.expect(is_pair || !last || pg::resource_of(*last) < name);
            database_.expect(database_.under_way.insert(name).second != is_pair);
            if (is_pair)
                database_.expect(pg::kind_of(*last) == store::command_kind::release &&
                                 pg::kind_of(*each.what) == store::command_kind::acquire);
            last = each.what;
        }
    }

    void leave(std::span<const pg::request> requests) {
        const std::scoped_lock lock(database_.mutex);
        for (const pg::request& each : requests)
            database_.under_way.erase(pg::resource_of(*each.what));
    }

    pg::reply judge(const pg::command& command) {
        const std::scoped_lock lock(database_.mutex);
        const std::string& name = pg::resource_of(command);
        if (const auto* acquire = std::get_if<domain::acquire_command>(&command)) {
            if (database_.locked.count(name)) return pg::row_busy();
            const auto [holder, free] = database_.holders.try_emplace(name, acquire->owner().text());
            if (!free && holder->second != acquire->owner().text())
                return answer(domain::acquire_outcome::held(std::chrono::milliseconds(1)));
            domain::lock grant(acquire->resource(), acquire->owner(), {}, domain::timestamp(1ms), 1ms, tests::token(1));
            return pg::carried_out(answer(domain::acquire_outcome::granted(grant)), store::standing::held(grant, {}));
        }
        if (std::get_if<domain::release_command>(&command)) {
            if (database_.locked.count(name)) return pg::row_busy();
            return answer(database_.holders.erase(name) ? domain::release_result::released
                                                        : domain::release_result::not_found);
        }
        if (std::get_if<domain::renew_command>(&command)) return answer(domain::renew_outcome::not_found());
        return answer(domain::look_outcome::not_found());
    }

    fake_database& database_;
    pg::socket_watch& watch_;
    int sockets_[2] = {-1, -1};
    int generation_ = -1;
};

struct fixture {
    explicit fixture(pg::thread_settings settings = {}) {
        settings.reconnect_backoff_max = 50ms;
        threads = std::make_unique<pg::connection_threads>(
            context.get_executor(), settings,
            [this](pg::socket_watch& watch) { return std::make_unique<fake_session>(database, watch); }, journal);
        threads->start();
    }
    ~fixture() {
        stop(1s);
        BOOST_TEST(database.broken_rules.load() == 0);
    }

    void stop(std::chrono::milliseconds limit) {
        if (!threads) return;
        bool ended = false;
        boost::asio::co_spawn(context, threads->stop(limit), [&](std::exception_ptr) { ended = true; });
        run_until([&] { return ended; });
        threads.reset();
    }

    template <class Condition>
    bool run_until(Condition condition, std::chrono::milliseconds limit = 10s) {
        const auto end = steady_clock::now() + limit;
        while (!condition() && steady_clock::now() < end) {
            if (context.stopped()) context.restart();
            context.run_one_for(5ms);
        }
        return condition();
    }

    void connect() {
        BOOST_REQUIRE(run_until([&] { return threads->connected(); }));
    }

    /// What became of one command.
    struct fate {
        bool ended = false;
        boost::system::error_code code;
        std::optional<answer> result;
        steady_clock::time_point at;

        bool failed_with(errc why) const { return ended && !code && result && !*result && result->error() == why; }
    };

    fate& run(pg::command command, std::chrono::milliseconds budget,
              boost::asio::cancellation_signal* signal = nullptr) {
        fate& each = fates.emplace_back();
        auto handler = [this, &each](boost::system::error_code code, answer result) {
            BOOST_REQUIRE(!each.ended);  // once
            BOOST_TEST((std::this_thread::get_id() == io_thread));
            each.ended = true;
            each.code = code;
            each.result.emplace(std::move(result));
            each.at = steady_clock::now();
        };
        const auto until = steady_clock::now() + budget;
        if (signal)
            threads->async_run(std::move(command), until, boost::asio::bind_cancellation_slot(signal->slot(), handler));
        else
            threads->async_run(std::move(command), until, handler);
        return each;
    }

    static pg::command acquire(const std::string& name, const std::string& who = "alice") {
        return domain::acquire_command(resource(name), owner(who), seconds(30));
    }
    static pg::command release(const std::string& name) {
        return domain::release_command(resource(name), owner("alice"));
    }
    static pg::command look(const std::string& name) { return domain::look_command(resource(name)); }

    bool all_ended() const {
        return std::all_of(fates.begin(), fates.end(), [](const fate& each) { return each.ended; });
    }

    std::thread::id io_thread = std::this_thread::get_id();
    boost::asio::io_context context{1};
    silent_journal journal;
    fake_database database;
    std::unique_ptr<pg::connection_threads> threads;
    std::deque<fate> fates;
};

pg::thread_settings one_thread() {
    pg::thread_settings settings;
    settings.fast_threads = 1;
    settings.slow_threads = 1;
    return settings;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(connection_threads)

BOOST_AUTO_TEST_CASE(answers_each_command_once_on_the_io_thread) {
    fixture f;
    f.connect();
    for (int each = 0; each < 200; ++each)
        f.run(fixture::acquire("r" + std::to_string(each)), 5s);
    for (int each = 0; each < 200; ++each)
        f.run(fixture::look("r" + std::to_string(each % 10)), 5s);
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }));
    for (const auto& fate : f.fates)
        BOOST_TEST(fate.result->has_value());
}

BOOST_AUTO_TEST_CASE(commands_pile_up_while_a_thread_is_busy_and_go_as_one_batch) {
    fixture f(one_thread());
    f.connect();
    f.database.delay_us = 200'000;
    f.run(fixture::acquire("first"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    for (int each = 0; each < 100; ++each)
        f.run(fixture::acquire("r" + std::to_string(each)), 5s);
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }));
    BOOST_TEST(f.database.statements.load() == 2);
    BOOST_TEST(f.database.rows.load() == 101);
}

BOOST_AUTO_TEST_CASE(those_who_waited_behind_a_grant_are_refused_with_it) {
    fixture f(one_thread());
    f.connect();
    f.database.delay_us = 200'000;
    f.run(fixture::acquire("other"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    auto& granted = f.run(fixture::acquire("hot", "first"), 5s);
    for (int each = 0; each < 20; ++each)
        f.run(fixture::acquire("hot", "rival" + std::to_string(each)), 5s);
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }));

    BOOST_TEST(f.database.carried_out["hot"] == 1);
    for (std::size_t each = 1; each < f.fates.size(); ++each) {
        const auto& outcome = std::get<domain::acquire_outcome>(f.fates[each].result->value());
        BOOST_TEST((outcome.result() == domain::acquire_result::granted) == (&f.fates[each] == &granted));
    }
}

BOOST_AUTO_TEST_CASE(who_asks_while_the_batch_is_under_way_does_not_follow_it) {
    fixture f(one_thread());
    f.connect();
    f.database.delay_us = 200'000;
    f.run(fixture::acquire("hot", "first"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    f.run(fixture::acquire("hot", "rival"), 5s);
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }));
    BOOST_TEST(f.database.carried_out["hot"] == 2);
}

BOOST_AUTO_TEST_CASE(a_release_and_the_acquire_behind_it_go_as_one_and_who_waited_follows) {
    fixture f(one_thread());
    f.connect();
    auto& first = f.run(fixture::acquire("hot", "alice"), 5s);
    BOOST_TEST(f.run_until([&] { return first.ended; }));
    f.database.delay_us = 200'000;
    f.run(fixture::acquire("other"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 2; }));
    auto& released = f.run(fixture::release("hot"), 5s);
    auto& granted = f.run(fixture::acquire("hot", "bob"), 5s);
    auto& refused = f.run(fixture::acquire("hot", "carol"), 5s);
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }));
    BOOST_TEST(f.database.statements.load() == 3);
    BOOST_TEST((std::get<domain::release_result>(released.result->value()) == domain::release_result::released));
    BOOST_TEST(
        (std::get<domain::acquire_outcome>(granted.result->value()).result() == domain::acquire_result::granted));
    BOOST_TEST((std::get<domain::acquire_outcome>(refused.result->value()).result() == domain::acquire_result::held));
}

BOOST_AUTO_TEST_CASE(a_pair_that_cannot_go_as_one_is_carried_out_one_after_the_other) {
    fixture f(one_thread());
    f.connect();
    auto& first = f.run(fixture::acquire("hot", "alice"), 5s);
    BOOST_TEST(f.run_until([&] { return first.ended; }));
    f.database.apart = {"hot"};
    f.database.delay_us = 100'000;
    f.run(fixture::acquire("other"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 2; }));
    auto& released = f.run(fixture::release("hot"), 5s);
    auto& granted = f.run(fixture::acquire("hot", "bob"), 5s);
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }));
    BOOST_TEST(f.database.statements.load() == 5);  // the pair in vain, the release, the acquire
    BOOST_TEST((std::get<domain::release_result>(released.result->value()) == domain::release_result::released));
    BOOST_TEST(
        (std::get<domain::acquire_outcome>(granted.result->value()).result() == domain::acquire_result::granted));
}

BOOST_AUTO_TEST_CASE(half_a_pair_goes_on_when_the_client_of_the_other_half_leaves) {
    for (const bool release_leaves : {true, false}) {
        fixture f(one_thread());
        f.connect();
        f.database.apart = {"hot"};
        f.database.delay_us = 100'000;
        boost::asio::cancellation_signal signal;
        f.run(fixture::acquire("other"), 5s);
        BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
        auto& release = f.run(fixture::release("hot"), 5s, release_leaves ? &signal : nullptr);
        auto& acquire = f.run(fixture::acquire("hot", "bob"), 5s, release_leaves ? nullptr : &signal);
        BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 2; }));
        signal.emit(boost::asio::cancellation_type::total);
        BOOST_TEST(f.run_until([&] { return f.all_ended(); }));
        const auto& stays = release_leaves ? acquire : release;
        BOOST_TEST(stays.result->has_value());
        BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 4; }));  // the other half too
        auto& next = f.run(fixture::acquire("hot", "carol"), 5s);
        BOOST_TEST(f.run_until([&] { return next.ended; }));
        BOOST_TEST(next.result->has_value());
    }
}

BOOST_AUTO_TEST_CASE(few_commands_go_with_the_end_of_the_batch_under_way_and_not_beside_it) {
    pg::thread_settings settings;
    settings.slow_threads = 1;
    fixture f(settings);
    f.connect();
    f.run_until([] { return false; }, 100ms);  // all four sessions are up and rest
    f.database.delay_us = 15'000;
    f.run(fixture::acquire("first"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    for (int each = 0; each < 10; ++each)
        f.run(fixture::acquire("r" + std::to_string(each)), 5s);
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }));
    BOOST_TEST(f.database.statements.load() == 2);
}

BOOST_AUTO_TEST_CASE(a_statement_that_takes_long_holds_up_nobody_else) {
    fixture f;
    f.connect();
    f.run_until([] { return false; }, 100ms);
    f.database.delay_us = 500'000;
    auto& slow = f.run(fixture::acquire("slow"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    f.database.delay_us = 0;
    for (int each = 0; each < 40; ++each) {
        auto& other = f.run(fixture::acquire("r" + std::to_string(each)), 5s);
        BOOST_REQUIRE(f.run_until([&] { return other.ended; }));
        BOOST_TEST(!slow.ended);
    }
    BOOST_TEST(f.run_until([&] { return slow.ended; }));
}

// More often than luck would have it: a resting thread looks up twice a second by itself.
BOOST_AUTO_TEST_CASE(who_comes_after_a_statement_that_takes_long_is_taken_by_another_thread) {
    fixture f;
    f.connect();
    for (int round = 0; round < 8; ++round) {
        const int before = f.database.statements.load();
        f.database.delay_us = 300'000;
        auto& slow = f.run(fixture::acquire("slow"), 5s);
        BOOST_TEST(f.run_until([&] { return f.database.statements.load() > before; }));
        f.database.delay_us = 0;
        auto& other = f.run(fixture::acquire("other"), 5s);
        BOOST_REQUIRE(f.run_until([&] { return other.ended; }));
        BOOST_TEST(!slow.ended);
        BOOST_TEST(f.run_until([&] { return slow.ended; }));
    }
}

BOOST_AUTO_TEST_CASE(without_a_connection_commands_are_unavailable_at_once) {
    fixture f;
    f.database.reachable = false;
    f.database.generation++;
    f.run_until([&] { return !f.threads->connected(); });
    BOOST_TEST(!f.threads->connected());
    auto& refused = f.run(fixture::acquire("a"), 5s);
    BOOST_TEST(!refused.ended);  // never inside the initiation
    BOOST_TEST(f.run_until([&] { return refused.ended; }, 200ms));
    BOOST_TEST(refused.failed_with(errc::unavailable));

    f.database.reachable = true;
    f.connect();
    auto& served = f.run(fixture::acquire("a"), 5s);
    BOOST_TEST(f.run_until([&] { return served.ended; }));
    BOOST_TEST(served.result->has_value());
}

BOOST_AUTO_TEST_CASE(sessions_cut_while_resting_fail_no_command) {
    fixture f;
    f.connect();
    for (int round = 0; round < 20; ++round) {
        f.database.generation++;
        for (int each = 0; each < 8; ++each)
            f.run(fixture::acquire("r" + std::to_string(each)), 5s);
        BOOST_REQUIRE(f.run_until([&] { return f.all_ended(); }));
    }
    for (const auto& fate : f.fates)
        BOOST_TEST(fate.result->has_value());
}

BOOST_AUTO_TEST_CASE(queued_commands_fail_when_the_last_connection_goes) {
    fixture f(one_thread());
    f.connect();
    f.database.delay_us = 30'000;
    auto& running = f.run(fixture::acquire("a"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    auto& queued = f.run(fixture::acquire("b"), 5s);
    f.database.reachable = false;
    f.database.generation++;
    BOOST_TEST(f.run_until([&] { return running.ended && queued.ended; }, 2s));
    BOOST_TEST(running.result->has_value());
    BOOST_TEST(queued.failed_with(errc::unavailable));
}

BOOST_AUTO_TEST_CASE(a_full_queue_is_overloaded_at_once) {
    auto settings = one_thread();
    settings.queue_max = 3;
    fixture f(settings);
    f.connect();
    f.database.delay_us = 100'000;
    f.run(fixture::acquire("first"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    for (int each = 0; each < 3; ++each)
        f.run(fixture::acquire("r" + std::to_string(each)), 5s);
    auto& refused = f.run(fixture::acquire("one more"), 5s);
    BOOST_TEST(f.run_until([&] { return refused.ended; }, 50ms));
    BOOST_TEST(refused.failed_with(errc::overloaded));
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }));
}

BOOST_AUTO_TEST_CASE(past_the_deadline_queued_running_and_looking_are_told_apart) {
    fixture f(one_thread());
    f.connect();
    f.database.stuck = true;
    auto& running = f.run(fixture::acquire("a"), 200ms);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    auto& queued = f.run(fixture::acquire("b"), 100ms);
    const auto sent = steady_clock::now();
    BOOST_TEST(f.run_until([&] { return queued.ended; }, 1s));
    BOOST_TEST(queued.failed_with(errc::overloaded));
    BOOST_TEST(!running.ended);
    BOOST_TEST(f.run_until([&] { return running.ended; }, 1s));
    BOOST_TEST(running.failed_with(errc::outcome_unknown));
    BOOST_TEST((running.at - sent < 300ms));

    // The stuck socket was shut down: the thread recovers.
    f.database.stuck = false;
    auto& later = f.run(fixture::acquire("c"), 2s);
    BOOST_TEST(f.run_until([&] { return later.ended; }));
    BOOST_TEST(later.result->has_value());
    BOOST_TEST(f.database.rows.load() == 2);  // the queued one was never sent

    f.database.stuck = true;
    auto& look = f.run(fixture::look("a"), 100ms);
    BOOST_TEST(f.run_until([&] { return look.ended; }, 1s));
    BOOST_TEST(look.failed_with(errc::unavailable));
}

BOOST_AUTO_TEST_CASE(cancelling_a_queued_command_leaves_it_without_effect) {
    fixture f(one_thread());
    f.connect();
    f.database.delay_us = 50'000;
    f.run(fixture::acquire("first"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    boost::asio::cancellation_signal signal;
    auto& cancelled = f.run(fixture::acquire("a"), 5s, &signal);
    signal.emit(boost::asio::cancellation_type::total);
    BOOST_TEST(f.run_until([&] { return cancelled.ended; }, 40ms));
    BOOST_TEST((cancelled.code == boost::asio::error::operation_aborted));
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }));
    f.stop(1s);
    BOOST_TEST(f.database.holders.count("a") == 0u);
}

BOOST_AUTO_TEST_CASE(cancelling_a_running_command_drops_its_answer) {
    fixture f(one_thread());
    f.connect();
    f.database.delay_us = 50'000;
    boost::asio::cancellation_signal signal;
    auto& cancelled = f.run(fixture::acquire("a"), 5s, &signal);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    signal.emit(boost::asio::cancellation_type::terminal);
    BOOST_TEST(f.run_until([&] { return cancelled.ended; }, 40ms));
    BOOST_TEST((cancelled.code == boost::asio::error::operation_aborted));
    auto& next = f.run(fixture::release("a"), 5s);  // waits its turn behind the one that runs on
    BOOST_TEST(f.run_until([&] { return next.ended; }));
    BOOST_TEST((std::get<domain::release_result>(**next.result) == domain::release_result::released));
}

BOOST_AUTO_TEST_CASE(partial_cancellation_is_not_understood) {
    fixture f;
    f.connect();
    boost::asio::cancellation_signal signal;
    auto& served = f.run(fixture::acquire("a"), 5s, &signal);
    signal.emit(boost::asio::cancellation_type::partial);
    BOOST_TEST(f.run_until([&] { return served.ended; }));
    BOOST_TEST(!served.code);
}

BOOST_AUTO_TEST_CASE(a_locked_row_delays_only_those_who_ask_for_it) {
    pg::thread_settings settings;
    settings.lock_timeout = 1500ms;
    fixture f(settings);
    f.connect();
    f.database.locked.insert("wedged");
    const auto start = steady_clock::now();
    for (int each = 0; each < 50; ++each)
        f.run(fixture::acquire("wedged"), 5s);
    for (int each = 0; each < 200; ++each) {
        auto& other = f.run(fixture::acquire("r" + std::to_string(each)), 5s);
        BOOST_REQUIRE(f.run_until([&] { return other.ended; }));
        BOOST_TEST(other.result->has_value());
    }
    BOOST_TEST((steady_clock::now() - start < 1200ms));
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }, 5s));
    for (int each = 0; each < 50; ++each) {
        BOOST_TEST(f.fates[static_cast<std::size_t>(each)].failed_with(errc::overloaded));
        BOOST_TEST((f.fates[static_cast<std::size_t>(each)].at - start < 4s));
    }
}

BOOST_AUTO_TEST_CASE(a_row_that_is_unlocked_in_time_is_served) {
    fixture f;
    f.connect();
    {
        const std::scoped_lock lock(f.database.mutex);
        f.database.locked.insert("busy");
    }
    auto& waiting = f.run(fixture::acquire("busy"), 5s);
    f.run_until([] { return false; }, 100ms);
    BOOST_TEST(!waiting.ended);
    {
        const std::scoped_lock lock(f.database.mutex);
        f.database.locked.clear();
    }
    BOOST_TEST(f.run_until([&] { return waiting.ended; }, 1s));
    BOOST_TEST(waiting.result->has_value());
}

BOOST_AUTO_TEST_CASE(stop_fails_the_queued_and_lets_the_running_finish) {
    fixture f(one_thread());
    f.connect();
    f.database.delay_us = 50'000;
    auto& running = f.run(fixture::acquire("a"), 5s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    auto& queued = f.run(fixture::acquire("b"), 5s);
    f.stop(1s);
    BOOST_TEST(running.result->has_value());
    BOOST_TEST(queued.failed_with(errc::unavailable));
}

BOOST_AUTO_TEST_CASE(stop_shuts_down_what_is_stuck_at_the_limit) {
    fixture f(one_thread());
    f.connect();
    f.database.stuck = true;
    auto& running = f.run(fixture::acquire("a"), 60s);
    BOOST_TEST(f.run_until([&] { return f.database.statements.load() == 1; }));
    const auto start = steady_clock::now();
    f.stop(100ms);
    BOOST_TEST((steady_clock::now() - start < 1s));
    BOOST_TEST(running.failed_with(errc::outcome_unknown));
}

BOOST_AUTO_TEST_CASE(many_commands_deadlines_cancellations_and_cuts_at_once) {
    pg::thread_settings settings;
    settings.queue_max = 300;
    settings.batch_rows_max = 16;
    settings.lock_timeout = 20ms;
    fixture f(settings);
    f.connect();
    std::mt19937 random(7);
    std::deque<boost::asio::cancellation_signal> signals;
    f.database.delay_us = 200;
    f.database.locked.insert("r3");
    const auto end = steady_clock::now() + 3s;
    std::size_t waves = 0;
    while (steady_clock::now() < end) {
        for (int each = 0; each < 60; ++each) {
            const std::string name = "r" + std::to_string(random() % 40);
            const auto budget = std::chrono::milliseconds(1 + random() % 60);
            const auto kind = random() % 4;
            auto& signal = signals.emplace_back();
            f.run(kind == 0   ? fixture::look(name)
                  : kind == 1 ? fixture::release(name)
                              : fixture::acquire(name),
                  budget, &signal);
        }
        for (int each = 0; each < 10; ++each)
            signals[signals.size() - 1 - random() % 60].emit(boost::asio::cancellation_type::total);
        if (++waves % 7 == 0) f.database.generation++;
        if (waves % 31 == 0) f.database.stuck = !f.database.stuck.load();
        f.run_until([] { return false; }, std::chrono::milliseconds(random() % 8));
    }
    f.database.stuck = false;
    BOOST_TEST(f.run_until([&] { return f.all_ended(); }, 5s));
    f.stop(1s);
    BOOST_TEST(f.all_ended());
    BOOST_TEST(f.database.under_way.size() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
