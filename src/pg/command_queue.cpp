#include "holdfast/pg/command_queue.hpp"

#include <algorithm>
#include <type_traits>

namespace holdfast::pg {

using domain::errc;
using std::chrono::steady_clock;

namespace {

/// Answers `follower` from what its leader left behind, if that is possible.
bool follow(const operation& leader, operation& follower) {
    return std::visit(
        [&](const auto& command) {
            using kind = std::decay_t<decltype(command)>;
            // What a queue would answer depends on more than the lock's row; looks and announcements stand in no line.
            if constexpr (std::is_same_v<kind, queue_command> || std::is_same_v<kind, domain::look_command> ||
                          std::is_same_v<kind, announce_command>) {
                return false;
            } else {
                auto outcome = store::follow(*leader.after, command);
                if (outcome) follower.result.emplace(std::move(*outcome));
                return outcome.has_value();
            }
        },
        follower.what);
}

}  // namespace

std::optional<errc> command_queue::push(const operation_ptr& operation) {
    const std::scoped_lock lock(mutex_);
    if (closed_ || connections_ == 0) return errc::unavailable;
    if (planner_.size() + busy_.size() >= waiting_max_) return errc::overloaded;
    const auto ticket = planner_.push(kind_of(operation->what), resource_of(operation->what), operation);
    if (!ticket) return errc::overloaded;
    operation->ticket = *ticket;
    return std::nullopt;
}

std::optional<steady_clock::time_point> command_queue::announce() {
    const std::scoped_lock lock(mutex_);
    announce_locked();
    if (planner_.ready() == 0 || may_start_locked(steady_clock::now())) return std::nullopt;
    return held_back_until_locked();
}

bool command_queue::withdraw(const operation& operation) {
    const std::scoped_lock lock(mutex_);
    if (planner_.withdraw(operation.ticket)) {
        announce_locked();
        return true;
    }
    const auto found = std::find_if(busy_.begin(), busy_.end(),
                                    [&](const planner::item& each) { return each.ticket == operation.ticket; });
    if (found == busy_.end()) return false;
    planner_.finish(found->resource);
    busy_.erase(found);
    announce_locked();
    return true;
}

command_queue::batch command_queue::take(lane lane, std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    if (lane == lane::fast) return take_fast_locked(lock, wait);
    slow_.wait_for(lock, wait, [&] { return closed_ || !busy_.empty(); });
    return closed_ ? batch{} : take_slow_locked();
}

command_queue::batch command_queue::take_fast_locked(std::unique_lock<std::mutex>& lock,
                                                     std::chrono::milliseconds wait) {
    const auto give_up = steady_clock::now() + wait;
    for (auto now = steady_clock::now(); !closed_ && now < give_up; now = steady_clock::now()) {
        if (may_start_locked(now)) {
            batch taken = planner_.take();
            under_way_.insert_or_assign(std::this_thread::get_id(), now);
            announce_locked();  // There may be more than one batch.
            return taken;
        }
        rest_locked(lock, give_up);
    }
    return {};
}

void command_queue::rest_locked(std::unique_lock<std::mutex>& lock, steady_clock::time_point until) {
    std::condition_variable wake;
    resting_.push_back(&wake);
    wake.wait_until(lock, until);
    std::erase(resting_, &wake);
}

steady_clock::time_point command_queue::held_back_until_locked() const {
    auto until = steady_clock::time_point::min();
    for (const auto& [thread, since] : under_way_)
        until = std::max(until, since + held_back_max);
    return until;
}

bool command_queue::may_start_locked(steady_clock::time_point now) const {
    const std::size_t rows = planner_.ready();
    return rows > 0 && (rows >= rows_max_ || now >= held_back_until_locked());
}

void command_queue::end_batch(lane lane) {
    const std::scoped_lock lock(mutex_);
    if (lane == lane::fast)
        under_way_.erase(std::this_thread::get_id());
    else
        announce_locked();
}

command_queue::batch command_queue::take_slow_locked() {
    batch taken;
    if (busy_.empty()) return taken;
    taken.push_back(std::move(busy_.front()));
    planner_.seal_again(taken.back());
    busy_.pop_front();
    if (taken.front().kind == store::command_kind::queue) take_neighbours_locked(taken);
    return taken;
}

/// On a resource that many wait for, the row is often another node's for a moment; once it is ours, all of them go.
void command_queue::take_neighbours_locked(batch& taken) {
    for (auto each = busy_.begin(); each != busy_.end();) {
        if (each->resource != taken.front().resource) {
            ++each;
            continue;
        }
        taken.push_back(std::move(*each));
        planner_.seal_again(taken.back());
        each = busy_.erase(each);
    }
    std::sort(taken.begin(), taken.end(),
              [](const planner::item& left, const planner::item& right) { return left.ticket < right.ticket; });
    planner_.take_along(taken);
}

void command_queue::put_back(batch batch) {
    const std::scoped_lock lock(mutex_);
    command_queue::batch alive;
    for (planner::item& each : batch) {
        if (each.entry->abandoned.load())
            finish_locked(each);
        else if (each.entry->busy_since)
            busy_.push_front(std::move(each));
        else
            alive.push_back(std::move(each));
    }
    planner_.put_back(std::move(alive));
    announce_locked();
}

void command_queue::put_apart(batch pairs) {
    for (planner::item& each : pairs)
        each.is_apart = true;
    const std::scoped_lock lock(mutex_);
    planner_.put_back(std::move(pairs));
    announce_locked();
}

std::vector<operation_ptr> command_queue::finish(const batch& ended) {
    std::vector<operation_ptr> followers;
    const std::scoped_lock lock(mutex_);
    for (const planner::item& each : ended) {
        if (each.entry->after)
            planner_.follow(each.resource, each.sealed, [&](const operation_ptr& waiting) {
                const bool answered = follow(*each.entry, *waiting);
                if (answered) followers.push_back(waiting);
                return answered;
            });
        finish_locked(each);
    }
    return followers;
}

std::vector<operation_ptr> command_queue::wait_for_rows(batch busy, std::chrono::milliseconds lock_timeout) {
    const auto now = steady_clock::now();
    std::vector<operation_ptr> given_up;
    const std::scoped_lock lock(mutex_);
    for (planner::item& each : busy) {
        operation& operation = *each.entry;
        if (!operation.busy_since) operation.busy_since = now;
        if (closed_ || now - *operation.busy_since >= lock_timeout) {
            for (operation_ptr& behind : planner_.take_line(each.resource))
                given_up.push_back(std::move(behind));
            planner_.finish(each.resource);
            given_up.push_back(std::move(each.entry));
        } else if (operation.abandoned.load()) {
            planner_.finish(each.resource);
        } else {
            busy_.push_back(std::move(each));
        }
    }
    announce_locked();
    return given_up;
}

void command_queue::connection_up() {
    const std::scoped_lock lock(mutex_);
    ++connections_;
}

std::vector<operation_ptr> command_queue::connection_down() {
    const std::scoped_lock lock(mutex_);
    --connections_;
    return connections_ == 0 ? empty_locked() : std::vector<operation_ptr>{};
}

bool command_queue::connected() const {
    const std::scoped_lock lock(mutex_);
    return connections_ > 0;
}

std::size_t command_queue::size() const {
    const std::scoped_lock lock(mutex_);
    return planner_.size() + busy_.size();
}

std::vector<operation_ptr> command_queue::close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    for (std::condition_variable* thread : resting_)
        thread->notify_one();
    slow_.notify_all();
    closing_.notify_all();
    return empty_locked();
}

bool command_queue::closed() const {
    const std::scoped_lock lock(mutex_);
    return closed_;
}

void command_queue::pause(std::chrono::milliseconds length) {
    std::unique_lock lock(mutex_);
    closing_.wait_for(lock, length, [&] { return closed_; });
}

std::vector<operation_ptr> command_queue::empty_locked() {
    std::vector<operation_ptr> waiting = planner_.take_all();
    for (planner::item& each : busy_) {
        planner_.finish(each.resource);
        waiting.push_back(std::move(each.entry));
    }
    busy_.clear();
    return waiting;
}

void command_queue::finish_locked(const planner::item& ended) {
    if (store::is_write(ended.kind)) planner_.finish(ended.resource);
}

void command_queue::announce_locked() {
    if (!resting_.empty() && may_start_locked(steady_clock::now())) resting_.back()->notify_one();
    if (!busy_.empty()) slow_.notify_one();
}

}  // namespace holdfast::pg
