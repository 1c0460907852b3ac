#include "holdfast/pg/sql_backend.hpp"

#include "holdfast/pg/error_class.hpp"
#include "holdfast/pg/lease_columns.hpp"
#include "holdfast/pg/queue_rows.hpp"
#include "holdfast/pg/result_row.hpp"
#include "holdfast/pg/text_array.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <numeric>
#include <string>

namespace holdfast::pg {

using namespace domain;
using std::chrono::steady_clock;

namespace {

/// A grant whose stamp was older than this when its row was written had to wait for a rival that rolled back.
constexpr std::int64_t stamp_age_us_max = 5'000;

/// More repetitions than this inside one deadline mean that the row is fought over: overloaded.
constexpr int rounds_max = 16;

}  // namespace

/// One call of run(): the replies so far, and the rows that must be asked again.
class sql_backend::batch_run {
public:
    batch_run(sql_backend& owner, std::span<const request> requests, pg::lane lane, std::chrono::milliseconds lock_wait)
        : owner_(owner),
          requests_(requests),
          kind_(kind_of(*requests.front().what)),
          lane_(lane),
          lock_wait_(std::to_string(lock_wait.count())),
          done_(requests.size()),
          times_late_(requests.size()),
          touched_(requests.size()) {}

    std::vector<reply> replies() {
        if (in_pairs()) pass_on_pairs();
        for (int round = 0; round < rounds_max; ++round) {
            const rows open = open_rows();
            if (open.empty()) break;
            attempt(open);
        }
        fail(unanswered(all_rows()), errc::overloaded);
        std::vector<reply> replies;
        for (auto& each : done_)
            replies.push_back(std::move(*each));
        return replies;
    }

private:
    using rows = std::vector<std::size_t>;

    /// A grant read from its row, before it is known to be fresh enough.
    struct grant {
        std::size_t row;
        lease_columns lease;
        std::int64_t token;
        std::int64_t stamp_age_us;
        bool is_awaited;
    };

    template <class Command>
    const Command& get(std::size_t row) const {
        return std::get<Command>(*requests_[row].what);
    }

    void answer_row(std::size_t row, carried_out with) { done_[row].emplace(std::move(with)); }

    /// What a refusal was read from. Not known when the lease ended between the judgement and this reading.
    static std::optional<store::standing> held_by(const resource_name& resource, const lease_columns& lease,
                                                  const result_row& columns) {
        if (lease.left_us() <= 0) return std::nullopt;
        auto holder = owner_name::parse(columns.text(column::holder));
        if (!holder) throw std::logic_error("an owner in the database is no owner name");
        lock held = lease.as_lock(resource, std::move(*holder), columns.number(column::fencing_token));
        return store::standing::held(std::move(held), as_timestamp(lease.clock_us));
    }

    /// A row that was granted before, and could not be answered, is no row without effect.
    void fail(const rows& which, errc why) {
        for (const std::size_t row : which)
            answer_row(row, {answer(touched_[row] ? errc::outcome_unknown : why)});
    }

    /// The slow lane takes them one at a time, so waiting for the guilty one holds up nobody here.
    void busy(const rows& which) {
        for (const std::size_t row : which)
            if (touched_[row])
                fail({row}, errc::overloaded);
            else
                done_[row].emplace(row_busy());
    }

    rows all_rows() const {
        rows all(requests_.size());
        std::iota(all.begin(), all.end(), std::size_t{0});
        return all;
    }

    /// Rows without an answer whose deadline has not passed.
    rows open_rows() {
        rows open;
        const auto now = steady_clock::now();
        for (const std::size_t row : unanswered(all_rows())) {
            if (now >= requests_[row].until)
                fail({row}, errc::overloaded);
            else
                open.push_back(row);
        }
        return open;
    }

    /// Sends one statement for these rows. A failure answers them, or leaves them open if it certainly had no effect
    /// and another try makes sense.
    void attempt(const rows& which) {
        if (!owner_.connection_) return fail(which, errc::unavailable);
        try {
            perform(which);
        } catch (const statement_error& error) {
            failed(which, error);
        }
    }

    void failed(const rows& which, const statement_error& error) {
        const std::string& sqlstate = error.sqlstate();
        const errc why = classify_failure(true, sqlstate, kind_);
        owner_.meter_.failed(failure_class_of(sqlstate));
        if (owner_.connection_->broken()) {
            owner_.connection_.reset();
            owner_.journal_.write(log_level::warning, "database_connection_lost",
                                  {{"sqlstate", sqlstate}, {"rows", static_cast<std::int64_t>(which.size())}});
            return fail(unanswered(which), why);
        }
        if (session_is_read_only(sqlstate)) owner_.connection_.reset();
        if (worth_repeating(sqlstate)) return;
        if (row_stayed_locked(sqlstate)) return busy(which);
        if (why == errc::internal && which.size() > 1) return one_by_one(which);
        if (why == errc::internal) log_internal(error);
        fail(unanswered(which), why);
    }

    rows unanswered(const rows& which) const {
        rows open;
        for (const std::size_t row : which)
            if (!done_[row]) open.push_back(row);
        return open;
    }

    bool in_pairs() const {
        return kind_ == store::command_kind::release && requests_.size() > 1 &&
               kind_of(*requests_[1].what) == store::command_kind::acquire;
    }

    /// Leaves at most acquires open, which are like any others then: their releases have been carried out.
    void pass_on_pairs() {
        if (!owner_.connection_) return;
        rows releases;
        for (std::size_t row = 0; row < requests_.size(); row += 2)
            releases.push_back(row);
        kind_ = store::command_kind::acquire;
        try {
            pass_on(releases);
        } catch (const statement_error& error) {
            if (owner_.connection_->broken() || session_is_read_only(error.sqlstate()))
                return failed(all_rows(), error);
            owner_.meter_.failed(failure_class_of(error.sqlstate()));
            for (const std::size_t row : releases)
                set_apart(row);
        }
    }

    void set_apart(std::size_t release) {
        done_[release].emplace(apart());
        done_[release + 1].emplace(apart());
    }

    void pass_on(const rows& releases) {
        text_array resources, owners, tokens, next_owners, ttls, keys, returnable, limits;
        for (const std::size_t row : releases) {
            const auto& release = get<release_command>(row);
            const auto& acquire = get<acquire_command>(row + 1);
            resources.add(release.resource().text());
            owners.add(release.owner().text());
            tokens.add(release.fencing_token() ? release.fencing_token()->number() : std::int64_t{-1});
            next_owners.add(acquire.owner().text());
            ttls.add(std::int64_t{acquire.ttl().length().count()});
            keys.add(acquire.key() ? std::string_view(acquire.key()->text()) : std::string_view());
            returnable.add(std::string_view(acquire.is_returnable() ? "t" : "f"));
            limits.add(std::min(not_after(row), not_after(row + 1)));
        }
        std::vector<grant> grants;
        send(query::pass_on, releases,
             {resources.str(), owners.str(), tokens.str(), next_owners.str(), ttls.str(), keys.str(), returnable.str(),
              limits.str()},
             [&](std::size_t row, const result_row& columns) { passed_on(row, columns, grants); });
        owner_.meter_.passed_on(grants.size());
        answer_grants(grants);
    }

    void passed_on(std::size_t release, const result_row& columns, std::vector<grant>& grants) {
        const auto verdict = columns.text(column::verdict);
        if (verdict == "apart") return set_apart(release);
        if (verdict != "passed") throw std::logic_error("unknown verdict of pass_on");
        answer_row(release, {answer(release_result::released)});
        touched_[release + 1] = true;
        grants.push_back({release + 1, lease_columns(columns), columns.number(column::fencing_token),
                          columns.number(column::stamp_age_us), false});
    }

    /// So that only the guilty row fails. Certainly nothing was done before.
    void one_by_one(const rows& which) {
        for (const std::size_t row : which) {
            if (done_[row] || steady_clock::now() >= requests_[row].until) continue;
            attempt({row});
        }
    }

    void log_internal(const statement_error& error) const {
        static std::atomic<std::int64_t> failures{0};
        owner_.journal_.write(log_level::error, "statement_failed",
                              {{"failure", ++failures}, {"sqlstate", error.sqlstate()}, {"message", error.what()}});
    }

    void perform(const rows& which) {
        switch (kind_) {
            case store::command_kind::acquire:
                return acquire(which);
            case store::command_kind::renew:
                return renew(which);
            case store::command_kind::release:
                return release(which);
            case store::command_kind::look:
                return look(which);
            case store::command_kind::queue:
                return work_queue(which);
            case store::command_kind::announce:
                return announce(which);
        }
    }

    query variant(query fast, query slow) const { return lane_ == pg::lane::fast ? fast : slow; }

    std::int64_t not_after(std::size_t row) const { return owner_.clock_.at(requests_[row].until).value_or(0); }

    /// Runs the query and hands each result row over with the row of the request that it answers.
    template <class OnRow>
    void send(query which, const rows& rows, const std::vector<std::string>& parameters, OnRow on_row) {
        const auto sent = steady_clock::now();
        const pqxx::result result = owner_.connection_->run(which, parameters);
        const auto received = steady_clock::now();
        if (static_cast<std::size_t>(result.size()) != rows.size())
            throw std::logic_error("a query did not answer each of its rows");
        std::vector<bool> seen(rows.size());
        const column_places places(result);
        for (const pqxx::row& columns : result) {
            const result_row row(columns, places);
            const auto ordinal = static_cast<std::size_t>(row.number(column::ordinal));
            if (ordinal < 1 || ordinal > rows.size() || seen[ordinal - 1])
                throw std::logic_error("a query answered a row twice");
            seen[ordinal - 1] = true;
            owner_.clock_.read(row.number(column::clock_us), sent, received);
            on_row(rows[ordinal - 1], row);
        }
    }

    /// The verdicts that all writes share. True if it was one of them.
    bool shared_verdict(std::size_t row, std::string_view verdict) {
        if (verdict == "busy") {
            // On the slow lane the statement waited: the row was deleted meanwhile, the next snapshot will say so.
            if (lane_ == pg::lane::fast) busy({row});
            return true;
        }
        if (verdict != "late") return false;
        // Our idea of the database's clock may have been outdated; it is not now.
        if (++times_late_[row] > 1) fail({row}, errc::overloaded);
        return true;
    }

    void acquire(const rows& which) {
        text_array resources, owners, ttls, keys, limits, returnable;
        std::int64_t least_limit = INT64_MAX;
        for (const std::size_t row : which) {
            const auto& command = get<acquire_command>(row);
            resources.add(command.resource().text());
            owners.add(command.owner().text());
            ttls.add(std::int64_t{command.ttl().length().count()});
            keys.add(command.key() ? std::string_view(command.key()->text()) : std::string_view());
            returnable.add(std::string_view(command.is_returnable() ? "t" : "f"));
            const std::int64_t limit = not_after(row);
            limits.add(limit);
            least_limit = std::min(least_limit, limit);
        }
        std::vector<grant> grants;
        send(variant(query::acquire_fast, query::acquire_slow), which,
             {resources.str(), owners.str(), ttls.str(), keys.str(), limits.str(), std::to_string(least_limit),
              lock_wait_, returnable.str()},
             [&](std::size_t row, const result_row& columns) { acquired(row, columns, grants); });
        answer_grants(grants);
    }

    void acquired(std::size_t row, const result_row& columns, std::vector<grant>& grants) {
        const auto verdict = columns.text(column::verdict);
        const lease_columns lease(columns);
        if (shared_verdict(row, verdict) || verdict == "raced") return;
        if (verdict == "held") {
            // Nothing left: it ended while this statement ran, so ask again.
            if (lease.left_us() <= 0) return;
            const auto& command = get<acquire_command>(row);
            return answer_row(
                row, {answer(acquire_outcome::held(lease.left())), held_by(command.resource(), lease, columns)});
        }
        // Answers no follower: what they would be told depends on the waiters too.
        if (verdict == "awaited") return answer_row(row, {answer(acquire_outcome::awaited())});
        if (verdict != "granted") throw std::logic_error("unknown verdict of acquire");
        touched_[row] = true;
        grants.push_back({row, lease, columns.number(column::fencing_token), columns.number(column::stamp_age_us),
                          columns.number(column::is_awaited) != 0});
    }

    void answer_grants(const std::vector<grant>& grants) {
        std::vector<grant> stale;
        for (const grant& each : grants) {
            if (each.stamp_age_us > stamp_age_us_max)
                stale.push_back(each);
            else
                answer_grant(each);
        }
        if (!stale.empty()) restamp(stale);
    }

    /// With nothing left the row stays open and acquires again.
    void answer_grant(const grant& each) {
        if (each.lease.expires_in().count() < 1) return;
        const auto& command = get<acquire_command>(each.row);
        lock grant = each.lease.as_lock(command.resource(), command.owner(), each.token);
        // Whoever repeats the key of a returnable grant must be seen by the database.
        auto after = store::standing::held(grant, as_timestamp(each.lease.clock_us),
                                           command.is_returnable() ? std::nullopt : command.key());
        answer_row(each.row, {answer(acquire_outcome::granted(std::move(grant), each.is_awaited)), std::move(after)});
    }

    void restamp(std::vector<grant>& grants) {
        rows which;
        text_array resources, owners, ttls, tokens, limits;
        for (const grant& each : grants) {
            const auto& command = get<acquire_command>(each.row);
            which.push_back(each.row);
            resources.add(command.resource().text());
            owners.add(command.owner().text());
            ttls.add(std::int64_t{command.ttl().length().count()});
            tokens.add(each.token);
            limits.add(not_after(each.row));
        }
        try {
            send(query::restamp, which,
                 {resources.str(), owners.str(), ttls.str(), tokens.str(), limits.str(), lock_wait_},
                 [&](std::size_t row, const result_row& columns) { restamped(row, columns, grants); });
        } catch (const statement_error& error) {
            if (owner_.connection_->broken()) throw;
            owner_.meter_.failed(failure_class_of(error.sqlstate()));
            // The grants stand as they were; shorter than they might be, but true.
            for (const grant& each : grants)
                answer_grant(each);
        }
    }

    /// A refused row stays open and acquires again: the grant is not ours any more, or its time is over.
    void restamped(std::size_t row, const result_row& columns, const std::vector<grant>& grants) {
        if (columns.text(column::verdict) != "restamped") return;
        const auto old = std::find_if(grants.begin(), grants.end(), [&](const grant& each) { return each.row == row; });
        answer_grant({row, lease_columns(columns), old->token, 0, old->is_awaited});
    }

    void renew(const rows& which) {
        text_array resources, owners, ttls, tokens, limits;
        for (const std::size_t row : which) {
            const auto& command = get<renew_command>(row);
            resources.add(command.resource().text());
            owners.add(command.owner().text());
            ttls.add(std::int64_t{command.ttl().length().count()});
            tokens.add(command.fencing_token() ? command.fencing_token()->number() : std::int64_t{-1});
            limits.add(not_after(row));
        }
        send(variant(query::renew_fast, query::renew_slow), which,
             {resources.str(), owners.str(), ttls.str(), tokens.str(), limits.str(), lock_wait_},
             [&](std::size_t row, const result_row& columns) { renewed(row, columns); });
    }

    void renewed(std::size_t row, const result_row& columns) {
        const auto verdict = columns.text(column::verdict);
        if (shared_verdict(row, verdict)) return;
        const lease_columns lease(columns);
        const auto& command = get<renew_command>(row);
        if (verdict == "not_found")
            return answer_row(row, {answer(renew_outcome::not_found()), store::standing::free()});
        if (verdict == "offered") return answer_row(row, {answer(renew_outcome::not_found())});
        if (verdict == "forbidden")
            return answer_row(row, {answer(renew_outcome::forbidden()), held_by(command.resource(), lease, columns)});
        if (verdict != "renewed") throw std::logic_error("unknown verdict of renew");
        if (lease.left_us() <= 0) return;  // Ended while the statement ran: ask again, it will be not_found.
        lock renewed = lease.as_lock(command.resource(), command.owner(), columns.number(column::fencing_token));
        auto after = store::standing::held(renewed, as_timestamp(lease.clock_us));
        const bool is_awaited = columns.number(column::is_awaited) != 0;
        answer_row(row, {answer(renew_outcome::renewed(std::move(renewed), is_awaited)), std::move(after)});
    }

    void release(const rows& which) {
        text_array resources, owners, tokens, limits;
        for (const std::size_t row : which) {
            const auto& command = get<release_command>(row);
            resources.add(command.resource().text());
            owners.add(command.owner().text());
            tokens.add(command.fencing_token() ? command.fencing_token()->number() : std::int64_t{-1});
            limits.add(not_after(row));
        }
        send(variant(query::release_fast, query::release_slow), which,
             {resources.str(), owners.str(), tokens.str(), limits.str(), lock_wait_},
             [&](std::size_t row, const result_row& columns) { released(row, columns); });
    }

    void released(std::size_t row, const result_row& columns) {
        const auto verdict = columns.text(column::verdict);
        if (shared_verdict(row, verdict)) return;
        const auto& resource = get<release_command>(row).resource();
        const auto free = store::standing::free();
        if (verdict == "released") return answer_row(row, {answer(release_result::released), free});
        if (verdict == "not_found") return answer_row(row, {answer(release_result::not_found), free});
        if (verdict == "awaited") return answer_row(row, {answer(release_result::awaited)});
        if (verdict == "forbidden")
            return answer_row(row,
                              {answer(release_result::forbidden), held_by(resource, lease_columns(columns), columns)});
        throw std::logic_error("unknown verdict of release");
    }

    void look(const rows& which) {
        text_array resources;
        for (const std::size_t row : which)
            resources.add(get<look_command>(row).resource().text());
        bool read_only = false;
        send(query::look, which, {resources.str()}, [&](std::size_t row, const result_row& columns) {
            read_only = columns.text(column::read_only) != "off";
            looked(row, columns);
        });
        if (!read_only) return;
        fail(which, errc::unavailable);
        owner_.connection_.reset();
    }

    void looked(std::size_t row, const result_row& columns) {
        if (columns.text(column::verdict) == "ended") return;  // Ask again.
        const lease_columns lease(columns);
        // What a lease has left may be less than a millisecond; then it is not worth showing, and ends before it is
        // read.
        if (columns.text(column::verdict) != "found" || lease.expires_in().count() < 0)
            return answer_row(row, {answer(look_outcome::not_found())});
        auto owner = owner_name::parse(columns.text(column::owner));
        if (!owner) throw std::logic_error("an owner in the database is no owner name");
        lock found =
            lease.as_lock(get<look_command>(row).resource(), std::move(*owner), columns.number(column::fencing_token));
        answer_row(row, {answer(look_outcome::found(std::move(found)))});
    }

    void work_queue(const rows& which) {
        queue_parameters parameters;
        for (const std::size_t row : which)
            parameters.add(get<queue_command>(row), not_after(row));
        send(query::queue, which,
             parameters.all(owner_.settings_.places_per_resource_max, lane_ == pg::lane::fast, lock_wait_),
             [&](std::size_t row, const result_row& columns) { queue_worked(row, columns); });
    }

    void queue_worked(std::size_t row, const result_row& columns) {
        if (shared_verdict(row, columns.text(column::verdict))) return;
        auto outcome = queue_outcome_of(get<queue_command>(row), columns);
        if (outcome) return answer_row(row, {answer(std::move(*outcome))});
        // Granted, but so long under way that nothing is left of the lease.
        fail({row}, errc::outcome_unknown);
    }

    void announce(const rows& which) {
        std::vector<wake> wakes;
        text_array payloads, moved;
        for (const std::size_t row : which) {
            const auto& command = get<announce_command>(row);
            wakes.insert(wakes.end(), command.wakes().begin(), command.wakes().end());
            for (const resource_name& each : command.moved())
                moved.add(each.text());
        }
        for (const std::string& payload : wake_payloads(wakes))
            payloads.add(payload);
        owner_.connection_->run(query::announce, {owner_.channel_, payloads.str(), moved.str()});
        for (const std::size_t row : which)
            answer_row(row, {answer(announced())});
    }

    sql_backend& owner_;
    std::span<const request> requests_;
    store::command_kind kind_;
    pg::lane lane_;
    std::string lock_wait_;
    std::vector<std::optional<reply>> done_;
    std::vector<int> times_late_;
    std::vector<bool> touched_;  ///< Was granted, though the grant was not good enough to answer with.
};

bool sql_backend::connect() {
    connection_.reset();
    try {
        const auto sent = steady_clock::now();
        watch_.begin(sent + settings_.connect_timeout + settings_.statement_timeout);
        connection_.emplace(settings_, texts_, watch_);
        connection_->prepare({query::acquire_fast, query::acquire_slow, query::renew_fast, query::renew_slow,
                              query::release_fast, query::release_slow, query::pass_on, query::restamp, query::look,
                              query::probe, query::queue, query::announce, query::settle_memory});
        connection_->run(query::settle_memory, {});
        const auto probe_sent = steady_clock::now();
        const pqxx::result probe = connection_->run(query::probe, {});
        clock_.read(probe[0]["clock_us"].as<std::int64_t>(), probe_sent, steady_clock::now());
        const bool fit = probe[0]["writable"].as<bool>() && probe[0]["isolation"].as<std::string>() == "read committed";
        if (!fit) connection_.reset();
    } catch (const std::exception& error) {
        connection_.reset();
        journal_.write(log_level::debug, "database_connect_failed", {{"message", error.what()}});
    }
    watch_.end();
    if (!connection_) meter_.failed(failure_class::cannot_connect);
    if (connection_ && was_connected_) meter_.reconnected();
    was_connected_ = was_connected_ || connection_;
    return connection_.has_value();
}

std::vector<reply> sql_backend::run(std::span<const request> requests, lane lane, std::chrono::milliseconds lock_wait) {
    assert(!requests.empty());
    try {
        return batch_run(*this, requests, lane, lock_wait).replies();
    } catch (const std::exception& error) {
        // A bug: an answer that nobody understands. The statements may have been carried out.
        meter_.failed(failure_class::not_understood);
        journal_.write(log_level::error, "database_answer_not_understood", {{"message", error.what()}});
        connection_.reset();
        const errc why = classify_failure(true, "", kind_of(*requests.front().what));
        return std::vector<reply>(requests.size(), reply(carried_out(answer(why))));
    }
}

}  // namespace holdfast::pg
