#ifndef HOLDFAST_TESTS_SUPPORT_PG_FIXTURE_HPP
#define HOLDFAST_TESTS_SUPPORT_PG_FIXTURE_HPP

#include "holdfast/pg/database.hpp"

#include "support/lease_store_conformance.hpp"
#include "support/postgres_cluster.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::tests {

/// Keeps what a layer logs, for tests to count.
class recording_journal final : public domain::journal {
public:
    void write(domain::log_level level, std::string_view event,
               std::initializer_list<domain::log_field> fields) noexcept override;

    std::size_t count(std::string_view event) const;
    /// The lines of one event as "name=value name=value".
    std::vector<std::string> lines(std::string_view event) const;
    std::string all() const;

private:
    struct line {
        std::string event;
        std::string fields;
    };

    mutable std::mutex mutex_;
    std::vector<line> lines_;
};

/// Counts the leases that a release passed on.
class passing_meter final : public pg::meter {
public:
    void batch_run(store::command_kind, pg::lane, std::size_t, std::chrono::nanoseconds) noexcept override {}
    void followers_answered(std::size_t) noexcept override {}
    void passed_on(std::size_t leases) noexcept override { count_ += leases; }
    void slow_lane_entered(std::size_t) noexcept override {}
    void failed(pg::failure_class) noexcept override {}
    void reconnected() noexcept override {}
    void listens_again() noexcept override {}

    std::size_t count() const { return count_.load(); }

private:
    std::atomic<std::size_t> count_{0};
};

/// A schema name that no other case of this process uses.
std::string fresh_schema_name();

/// Settings for a fresh schema in a database of `cluster`.
pg::database_settings fresh_settings(const postgres_cluster& cluster = postgres_cluster::shared(),
                                     const std::string& database = "postgres");

/// One command on its way.
template <class Outcome>
struct pending {
    std::optional<domain::result<Outcome>> answer;
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
    std::chrono::milliseconds took{0};

    bool ended() const { return answer.has_value(); }
    bool failed_with(domain::errc why) const { return answer && !*answer && answer->error() == why; }
};

/// A node's database layer with an I/O thread's context of its own, run by the calls.
class node_database final : public store_under_test {
public:
    /// Starts and waits until it is writable, unless told not to wait.
    explicit node_database(pg::database_settings settings, bool wait = true);
    ~node_database() override;

    store::lease_store& store() override { return database_->store(); }
    boost::asio::io_context& context() override { return context_; }
    void pass(std::chrono::milliseconds length) override { run_for(length); }

    pg::database& database() { return *database_; }
    store::wait_queue& queue() { return database_->queue(); }
    /// Who this node is in the waiting lines; waits until it knows.
    domain::node_id must_know_itself();
    /// The places that this node was woken for so far, in the order of the wakes.
    const std::vector<std::int64_t>& woken() const { return woken_; }
    /// The last survey, and how many there were.
    const std::vector<domain::surveyed_place>& surveyed() const { return surveyed_; }
    std::size_t surveys() const { return surveys_; }
    const pg::database_settings& settings() const { return settings_; }
    recording_journal& journal() { return journal_; }
    /// How many leases went from a release to the acquire behind it in one statement.
    std::size_t passed_on() const { return meter_.count(); }
    const std::string& refused() const { return refused_; }

    using pending_acquire = std::shared_ptr<pending<domain::acquire_outcome>>;

    // Start a command and return at once; it goes on while the context runs.
    pending_acquire start_acquire(const std::string& name, const std::string& who, std::int64_t ttl_seconds = 30);
    std::shared_ptr<pending<domain::renew_outcome>> start_renew(const std::string& name, const std::string& who);
    std::shared_ptr<pending<domain::release_result>> start_release(const std::string& name, const std::string& who);
    std::shared_ptr<pending<domain::look_outcome>> start_look(const std::string& name);

    // Commands on waiting lines.
    std::shared_ptr<pending<domain::stand_outcome>> start_stand(const std::string& name, const std::string& who,
                                                                std::int64_t ttl_seconds = 30, bool waits = true,
                                                                const std::string& key_text = "");
    std::shared_ptr<pending<domain::claim_outcome>> start_claim(const domain::place& place, const std::string& who,
                                                                std::int64_t ttl_seconds = 30,
                                                                const std::string& key_text = "");
    std::shared_ptr<pending<domain::withdraw_outcome>> start_withdraw(const domain::place& place);
    std::shared_ptr<pending<domain::leave_outcome>> start_leave(const std::string& name, const std::string& who);
    std::shared_ptr<pending<domain::hand_over_outcome>> start_hand_over(const std::string& name,
                                                                        std::optional<domain::node_id> at = {});
    /// Given back where a token is named.
    std::shared_ptr<pending<domain::queue_release_outcome>> start_queue_release(
        const std::string& name, const std::string& who, std::optional<domain::fencing_token> given_back = std::nullopt,
        std::optional<domain::node_id> at = {});

    /// Requires that the request stands; its place.
    domain::place must_stand(const std::string& name, const std::string& who);
    /// Requires that the place is offered the lock and confirms it.
    domain::lock must_claim(const domain::place& place, const std::string& who, std::int64_t ttl_seconds = 30,
                            const std::string& key_text = "");
    /// Requires an answer.
    template <class Outcome>
    Outcome must_end(const std::shared_ptr<pending<Outcome>>& started) {
        auto answer = finish(started);
        if (!answer) throw std::runtime_error("a command failed: " + answer.error().message());
        return *std::move(answer);
    }

    /// Waits for the end of a started command, and returns its answer.
    template <class Outcome>
    domain::result<Outcome> finish(const std::shared_ptr<pending<Outcome>>& started) {
        if (!run_until(budget + std::chrono::seconds(5), [&] { return started->ended(); }))
            throw std::runtime_error("a command did not end");
        return *started->answer;
    }

    /// Runs the context for this long.
    void run_for(std::chrono::milliseconds length);
    /// Runs the context until `condition()` holds; false when it does not within `limit`.
    template <class Condition>
    bool run_until(std::chrono::milliseconds limit, Condition condition) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (!condition()) {
            if (std::chrono::steady_clock::now() >= end) return false;
            run_for(std::chrono::milliseconds(5));
        }
        return true;
    }
    bool wait_ready(std::chrono::milliseconds limit = std::chrono::milliseconds(10'000));
    void stop(std::chrono::milliseconds limit = std::chrono::milliseconds(2'000));

private:
    template <class Outcome>
    std::shared_ptr<pending<Outcome>> start(boost::asio::awaitable<domain::result<Outcome>> call);

    boost::asio::io_context context_{1};
    recording_journal journal_;
    passing_meter meter_;
    pg::database_settings settings_;
    std::string refused_;
    std::vector<std::int64_t> woken_;
    std::vector<domain::surveyed_place> surveyed_;
    std::size_t surveys_ = 0;
    std::unique_ptr<pg::database> database_;
    bool stopped_ = false;
};

/// Somebody else's session, which keeps its transaction open between the calls. In the statements {schema} stands for
/// the quoted schema of `settings`.
class stranger {
public:
    explicit stranger(const pg::database_settings& settings);
    ~stranger();

    /// Returns the first column of the first row, or nothing.
    std::string run(const std::string& text);

private:
    struct session;

    std::string schema_;
    std::unique_ptr<session> session_;
};

/// Runs SQL as the operator, with {schema} replaced by the quoted schema of `settings`.
std::string run_sql(const pg::database_settings& settings, std::string text,
                    const postgres_cluster& cluster = postgres_cluster::shared(),
                    const std::string& database = "postgres");

}  // namespace holdfast::tests

#endif
