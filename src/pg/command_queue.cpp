#include "holdfast/pg/command_queue.hpp"

#include <algorithm>

namespace holdfast::pg {

using domain::errc;
using std::chrono::steady_clock;

std::optional<errc> command_queue::push(const operation_ptr& operation) {
    const std::scoped_lock lock(mutex_);
    if (closed_ || connections_ == 0) return errc::unavailable;
    if (planner_.size() + busy_.size() >= waiting_max_) return errc::overloaded;
    const auto ticket = planner_.push(kind_of(operation->what), resource_of(operation->what).text(), operation);
    if (!ticket) return errc::overloaded;
    operation->ticket = *ticket;
    announce_locked();
    return std::nullopt;
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
    if (lane == lane::fast) {
        fast_.wait_for(lock, wait, [&] { return closed_ || planner_.ready(); });
        if (closed_) return {};
        batch taken = planner_.take();
        announce_locked();  // There may be more than one batch.
        return taken;
    }
    slow_.wait_for(lock, wait, [&] { return closed_ || !busy_.empty(); });
    return closed_ ? batch{} : take_slow_locked();
}

command_queue::batch command_queue::take_slow_locked() {
    batch taken;
    if (busy_.empty()) return taken;
    taken.push_back(std::move(busy_.front()));
    busy_.pop_front();
    return taken;
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

void command_queue::finish(const batch& ended) {
    const std::scoped_lock lock(mutex_);
    for (const planner::item& each : ended)
        finish_locked(each);
    announce_locked();
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
    fast_.notify_all();
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
    if (ended.kind != store::command_kind::look) planner_.finish(ended.resource);
}

void command_queue::announce_locked() {
    if (planner_.ready()) fast_.notify_one();
    if (!busy_.empty()) slow_.notify_one();
}

}  // namespace holdfast::pg
