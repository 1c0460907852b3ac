#include "holdfast/cli/waiting_load.hpp"

#include "holdfast/cli/load_run.hpp"
#include "holdfast/cli/start_schedule.hpp"
#include "holdfast/cli/waiting_owner.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

namespace holdfast::cli {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr auto pause_after_error = 100ms;
/// No more join the lines in a second: a thundering herd is not what is measured here.
constexpr std::int64_t joining_per_second_max = 2'000;

class waiting_load final : public load_run {
public:
    explicit waiting_load(const load_plan& plan) : load_run(plan) {}

private:
    asio::awaitable<void> apply_load() override;
    void close_stuck(clock::time_point limit) override;
    void wake_all() override;

    asio::awaitable<bool> hold_everything();
    asio::awaitable<void> keep_everything();
    void add_owners(const std::string& run);
    std::int64_t joining_per_second() const;

    asio::awaitable<void> live(waiting_owner& owner, clock::time_point joins_at);
    asio::awaitable<bool> use_lock(waiting_owner& owner);
    asio::awaitable<void> wait_for_open_handovers();
    asio::awaitable<void> rest_of(waiting_owner& owner, clock::duration length);

    std::size_t standing() const;

    std::deque<contended_resource> resources_;
    std::deque<waiting_owner> owners_;
    std::deque<waiting_owner> keepers_;  // of wait_kind::park, one for each resource
    std::size_t next_number_ = 0;        // of owners
};

asio::awaitable<void> waiting_load::apply_load() {
    const std::string run = fresh_name();
    for (std::int64_t n = 0; n < plan().resources; ++n)
        resources_.emplace_back("bench-wait:" + run + ":" + std::to_string(n));
    add_owners(run);
    const bool is_parking = plan().waiting == wait_kind::park;
    if (is_parking) {
        const bool is_held = co_await hold_everything();
        if (!is_held) co_return;
        spawn(keep_everything());
    }
    if (is_stopping()) co_return;

    start_schedule joins(clock::now(), joining_per_second());
    clock::time_point joined = clock::now();
    for (waiting_owner& owner : owners_) {
        joined = joins.take();
        spawn(live(owner, joined));
    }
    recorder().measure(joined + plan().warmup, joined + plan().warmup + plan().length);
    co_await rest_until_end();

    recorder().report().waiting.standing_at_end = standing();
    wake_all();
    if (!is_parking) co_await wait_for_open_handovers();
    for (waiting_owner& owner : owners_)
        if (owner.is_standing()) owner.leave();
}

void waiting_load::add_owners(const std::string& run) {
    const std::size_t server_count = servers().size();
    const auto add = [&](std::deque<waiting_owner>& to, std::size_t server, contended_resource& resource) {
        to.emplace_back(executor(), plan(), recorder(), servers()[server], server, resource, "bench-" + run,
                        next_number_++);
    };
    for (std::size_t n = 0; n < plan().connections; ++n)
        add(owners_, n % server_count, resources_[n / server_count % resources_.size()]);
    if (plan().waiting != wait_kind::park) return;
    for (contended_resource& resource : resources_)
        add(keepers_, 0, resource);
}

std::int64_t waiting_load::joining_per_second() const {
    if (plan().waiting != wait_kind::abandon) return joining_per_second_max;
    const auto over_a_lease = static_cast<std::int64_t>(plan().connections) / plan().ttl_seconds;
    return std::clamp<std::int64_t>(over_a_lease, 1, joining_per_second_max);
}

// ---- the owners ----

asio::awaitable<void> waiting_load::live(waiting_owner& owner, clock::time_point joins_at) {
    const clock::duration ahead = joins_at - clock::now();
    if (ahead > clock::duration::zero()) co_await rest_of(owner, ahead);
    while (!is_stopping()) {
        bool is_well = co_await owner.connect();
        if (is_well) {
            const waiting_owner::turn turn = co_await owner.stand_in_line();
            is_well = turn != waiting_owner::turn::failed;
            if (turn == waiting_owner::turn::granted) is_well = co_await use_lock(owner);
        }
        if (!is_well && !is_stopping()) co_await rest_of(owner, pause_after_error);
    }
    owner.leave();
}

asio::awaitable<bool> waiting_load::use_lock(waiting_owner& owner) {
    switch (plan().waiting) {
        case wait_kind::abandon:
            owner.become(next_number_++);
            co_return true;
        case wait_kind::hand_over:
            if (plan().hold > 0ms && !is_stopping()) co_await rest_of(owner, plan().hold);
            break;
        case wait_kind::park:
            break;  // which the history finds wrong
    }
    const bool is_released = co_await owner.release();
    co_return is_released;
}

/// So that a waiter who is forgotten at the very end shows too.
asio::awaitable<void> waiting_load::wait_for_open_handovers() {
    const auto is_awaited = [this](const contended_resource& resource) {
        return resource.history.is_handover_awaited(recorder().from(), recorder().until());
    };
    const clock::time_point limit = clock::now() + plan().answer_limit;
    while (std::any_of(resources_.begin(), resources_.end(), is_awaited) && clock::now() < limit)
        co_await rest(1ms);
    const auto forgotten = std::count_if(resources_.begin(), resources_.end(), is_awaited);
    for (std::ptrdiff_t n = 0; n < forgotten; ++n)
        recorder().failed("handover: nobody was granted what is free");
}

// ---- the keepers of what is never free ----

asio::awaitable<bool> waiting_load::hold_everything() {
    for (waiting_owner& keeper : keepers_) {
        const waiting_owner::turn turn = co_await keeper.stand_in_line();
        if (turn != waiting_owner::turn::granted) co_return false;
    }
    co_return true;
}

/// Until the others have gone.
asio::awaitable<void> waiting_load::keep_everything() {
    clock::time_point renew_at = clock::now();
    while (!is_stopping() || standing() > 0) {
        renew_at += std::chrono::seconds(plan().ttl_seconds) / 3;
        while ((!is_stopping() || standing() > 0) && clock::now() < renew_at)
            co_await rest(10ms);
        if (is_stopping()) continue;
        for (waiting_owner& keeper : keepers_)
            co_await keeper.renew();
    }
    for (waiting_owner& keeper : keepers_) {
        co_await keeper.release();
        keeper.leave();
    }
}

// ---- for all ----

std::size_t waiting_load::standing() const {
    std::size_t sum = 0;
    for (const contended_resource& resource : resources_)
        sum += resource.history.asking();
    return sum;
}

void waiting_load::close_stuck(clock::time_point limit) {
    for (waiting_owner& owner : owners_)
        owner.close_if_stuck(limit);
    for (waiting_owner& keeper : keepers_)
        keeper.close_if_stuck(limit);
    std::size_t& most = recorder().report().waiting.standing_most;
    most = std::max(most, standing());
}

void waiting_load::wake_all() {
    for (waiting_owner& owner : owners_)
        owner.pause.cancel();
}

asio::awaitable<void> waiting_load::rest_of(waiting_owner& owner, clock::duration length) {
    owner.pause.expires_after(length);
    co_await owner.pause.async_wait(as_result);
}

}  // namespace

std::optional<load_report> run_waiting_load(const load_plan& plan) {
    waiting_load load(plan);
    return load.run();
}

}  // namespace holdfast::cli
