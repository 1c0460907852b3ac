#include "holdfast/pg/connection_threads.hpp"

#include "holdfast/pg/command_queue.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <random>
#include <thread>

namespace holdfast::pg {

namespace asio = boost::asio;
using domain::errc;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

/// How often a resting thread looks whether its session is still there, so that it is opened again outside any request.
constexpr milliseconds rest_max{500};
/// How often the I/O thread looks for what is stuck.
constexpr milliseconds watch_interval{50};
/// On the fast lane only an uncommitted insert of somebody else can make a statement wait.
constexpr milliseconds fast_lock_wait_max{20};
constexpr milliseconds backoff_min{20};
/// A thread that connects cannot be interrupted; stop() waits this long for it before it blocks.
constexpr milliseconds stop_grace{3'000};

}  // namespace

class connection_threads::core : public std::enable_shared_from_this<core> {
public:
    core(asio::any_io_executor executor, const thread_settings& settings, backend_factory factory,
         domain::journal& journal, meter& meter)
        : executor_(std::move(executor)),
          settings_(settings),
          factory_(std::move(factory)),
          journal_(journal),
          meter_(meter),
          queue_(settings.queue_max, settings.batch_rows_max),
          deadline_timer_(executor_),
          stuck_timer_(executor_),
          watch_timer_(executor_),
          ended_timer_(executor_, steady_clock::time_point::max()),
          watches_(settings.fast_threads + settings.slow_threads) {}

    void start() {
        running_threads_ = watches_.size();
        for (std::size_t index = 0; index < watches_.size(); ++index) {
            const lane lane = index < settings_.fast_threads ? lane::fast : lane::slow;
            threads_.emplace_back([this, lane, index] { serve(lane, watches_[index]); });
        }
        watch_sockets();
    }

    bool connected() const { return queue_.connected(); }
    std::size_t waiting() const { return queue_.size(); }

    void submit(operation_ptr operation, answer_handler handler);
    asio::awaitable<void> stop(milliseconds limit);
    void stop_now();

private:
    // On the I/O thread.
    void announce_soon();
    void announce();
    void arm_deadline_timer();
    void deadlines_passed();
    void past_deadline(const operation_ptr& operation);
    void cancelled(const operation_ptr& operation);
    void complete(operation& operation, boost::system::error_code code, answer result);
    void close_open(operation& operation);
    void finish(const std::vector<operation_ptr>& ended);
    void watch_sockets();
    void close_queue();
    void join();

    // On a connection thread.
    void serve(lane lane, socket_watch& watch);
    bool reconnect(backend& session, lane lane, bool& counted);
    void run_batch(backend& session, lane lane, socket_watch& watch, command_queue::batch batch);
    milliseconds lock_wait(lane lane) const;
    void post_ended(std::vector<operation_ptr> ended);
    void post_failed(std::vector<operation_ptr> failed, errc why);

    asio::any_io_executor executor_;
    thread_settings settings_;
    backend_factory factory_;
    domain::journal& journal_;
    meter& meter_;
    command_queue queue_;

    // I/O thread only.
    std::pmr::unsynchronized_pool_resource memory_;
    open_operations open_{&memory_};  ///< Not ended yet; completed early ones too.
    std::optional<asio::executor_work_guard<asio::any_io_executor>> work_;  ///< While anything is open.
    asio::steady_timer deadline_timer_;
    asio::steady_timer stuck_timer_;  ///< While something is held back by a batch under way, which may be stuck.
    asio::steady_timer watch_timer_;
    asio::steady_timer ended_timer_;  ///< Cancelled when the last thread has ended.
    std::size_t running_threads_ = 0;
    bool stopped_ = false;
    bool announcing_ = false;
    bool is_stuck_timer_set_ = false;

    std::vector<socket_watch> watches_;
    std::vector<std::thread> threads_;
};

// ---- The I/O thread's side
// -----------------------------------------------------------------------------------------------

void connection_threads::core::submit(operation_ptr operation, answer_handler handler) {
    operation->handler.emplace(std::move(handler));
    if (const auto refused = queue_.push(operation)) {
        asio::post(executor_, [self = shared_from_this(), operation, why = *refused] {
            self->complete(*operation, {}, answer(why));
        });
        return;
    }
    announce_soon();
    if (open_.empty()) work_.emplace(executor_);
    operation->open_at = open_.emplace(operation->until, operation);
    const auto slot = asio::get_associated_cancellation_slot(*operation->handler);
    if (slot.is_connected()) {
        auto cancellation_slot = slot;
        cancellation_slot.assign(
            [self = weak_from_this(), waiting = std::weak_ptr(operation)](asio::cancellation_type type) {
                const auto effective = asio::cancellation_type::terminal | asio::cancellation_type::total;
                const auto alive = self.lock();
                const auto cancelled = waiting.lock();
                if (alive && cancelled && (type & effective) != asio::cancellation_type::none)
                    alive->cancelled(cancelled);
            });
    }
    if (*operation->open_at == open_.begin()) arm_deadline_timer();
}

/// Everything else that the I/O thread found ready comes first, and goes with the same batch.
void connection_threads::core::announce_soon() {
    if (announcing_) return;
    announcing_ = true;
    asio::post(executor_, [self = shared_from_this()] {
        self->announcing_ = false;
        self->announce();
    });
}

void connection_threads::core::announce() {
    const auto again = queue_.announce();
    if (!again || is_stuck_timer_set_) return;
    is_stuck_timer_set_ = true;
    stuck_timer_.expires_at(*again);
    stuck_timer_.async_wait([self = weak_from_this()](boost::system::error_code code) {
        const auto alive = self.lock();
        if (!alive || code) return;
        alive->is_stuck_timer_set_ = false;
        alive->announce();
    });
}

void connection_threads::core::arm_deadline_timer() {
    if (open_.empty()) return;
    deadline_timer_.expires_at(open_.begin()->first);
    deadline_timer_.async_wait([self = shared_from_this()](boost::system::error_code code) {
        if (!code) self->deadlines_passed();
    });
}

void connection_threads::core::deadlines_passed() {
    const auto now = steady_clock::now();
    while (!open_.empty() && open_.begin()->first <= now) {
        const operation_ptr operation = open_.begin()->second;
        close_open(*operation);
        past_deadline(operation);
    }
    arm_deadline_timer();
}

void connection_threads::core::past_deadline(const operation_ptr& operation) {
    if (queue_.withdraw(*operation)) return complete(*operation, {}, answer(errc::overloaded));
    operation->abandoned.store(true);
    const bool write = store::is_write(kind_of(operation->what));
    complete(*operation, {}, answer(write ? errc::outcome_unknown : errc::unavailable));
}

void connection_threads::core::cancelled(const operation_ptr& operation) {
    if (queue_.withdraw(*operation))
        close_open(*operation);
    else
        operation->abandoned.store(true);  // Runs on; whatever it answers is dropped.
    asio::post(executor_, [self = shared_from_this(), operation] {
        self->complete(*operation, asio::error::operation_aborted, answer(errc::outcome_unknown));
    });
}

void connection_threads::core::complete(operation& operation, boost::system::error_code code, answer result) {
    if (!operation.handler) return;
    auto slot = asio::get_associated_cancellation_slot(*operation.handler);
    if (slot.is_connected()) slot.clear();
    answer_handler handler = std::move(*operation.handler);
    operation.handler.reset();
    std::move(handler)(code, std::move(result));
}

void connection_threads::core::close_open(operation& operation) {
    if (!operation.open_at) return;
    open_.erase(*operation.open_at);
    operation.open_at.reset();
    if (open_.empty()) work_.reset();
}

void connection_threads::core::finish(const std::vector<operation_ptr>& ended) {
    for (const operation_ptr& operation : ended) {
        close_open(*operation);
        complete(*operation, {}, std::move(*operation->result));
    }
}

void connection_threads::core::watch_sockets() {
    if (stopped_) return;
    const auto now = steady_clock::now();
    for (socket_watch& watch : watches_)
        if (watch.shut_down_if_overdue(now))
            journal_.write(domain::log_level::warning, "stuck_connection_shut_down", {});
    announce();  // Also what became ready behind a stuck batch without the I/O thread's doing.
    watch_timer_.expires_after(watch_interval);
    watch_timer_.async_wait([self = weak_from_this()](boost::system::error_code code) {
        if (const auto alive = self.lock(); alive && !code) alive->watch_sockets();
    });
}

void connection_threads::core::close_queue() {
    std::vector<operation_ptr> waiting = queue_.close();
    for (const operation_ptr& operation : waiting)
        operation->result.emplace(errc::unavailable);
    finish(waiting);
}

asio::awaitable<void> connection_threads::core::stop(milliseconds limit) {
    close_queue();
    for (const milliseconds wait : {limit, stop_grace}) {
        if (running_threads_ == 0) break;
        ended_timer_.expires_after(wait);
        boost::system::error_code ignored;
        co_await ended_timer_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        for (socket_watch& watch : watches_)
            watch.shut_down_if_running();
    }
    join();
}

void connection_threads::core::stop_now() {
    if (stopped_) return;
    close_queue();
    for (socket_watch& watch : watches_)
        watch.shut_down_if_running();
    join();
}

void connection_threads::core::join() {
    for (std::thread& thread : threads_)
        thread.join();
    threads_.clear();
    stopped_ = true;
    watch_timer_.cancel();
    deadline_timer_.cancel();
    stuck_timer_.cancel();
}

// ---- The connection threads' side
// ----------------------------------------------------------------------------------------

void connection_threads::core::serve(lane lane, socket_watch& watch) {
    const std::unique_ptr<backend> session = factory_(watch);
    bool counted =
        false;  // Among the connections that are up. A lost one counts until connecting again has failed once.
    while (!queue_.closed()) {
        if (!session->usable() && !reconnect(*session, lane, counted)) continue;
        command_queue::batch batch = queue_.take(lane, rest_max);
        if (batch.empty()) continue;
        if (session->usable())
            run_batch(*session, lane, watch, std::move(batch));
        else
            queue_.put_back(std::move(batch));
        queue_.end_batch(lane);
    }
    if (counted) post_failed(queue_.connection_down(), errc::unavailable);
    asio::post(executor_, [self = shared_from_this()] {
        if (--self->running_threads_ == 0) self->ended_timer_.cancel();
    });
}

bool connection_threads::core::reconnect(backend& session, lane lane, bool& counted) {
    static thread_local std::minstd_rand random(std::random_device{}());
    milliseconds backoff = backoff_min;
    queue_.announce();  // What this thread leaves behind is another's.
    while (!queue_.closed()) {
        if (session.connect()) {
            if (lane == lane::fast && !counted) queue_.connection_up();
            counted = lane == lane::fast;
            return true;
        }
        if (counted) post_failed(queue_.connection_down(), errc::unavailable);
        counted = false;
        std::uniform_int_distribution<milliseconds::rep> jitter(backoff.count() / 2, backoff.count());
        queue_.pause(milliseconds(jitter(random)));
        backoff = std::min(backoff * 2, settings_.reconnect_backoff_max);
    }
    return false;
}

milliseconds connection_threads::core::lock_wait(lane lane) const {
    // The slow lane waits in slices and takes turns, so that a row which stays locked holds up no other.
    const milliseconds slice = std::max(settings_.lock_timeout / 50, milliseconds(1));
    return lane == lane::fast ? std::min(fast_lock_wait_max, settings_.lock_timeout) : slice;
}

void connection_threads::core::run_batch(backend& session, lane lane, socket_watch& watch, command_queue::batch batch) {
    std::vector<request> requests;
    store::deadline latest = store::deadline::min();
    for (const auto& each : batch) {
        requests.push_back({&each.entry->what, each.entry->until});
        latest = std::max(latest, each.entry->until);
    }
    watch.begin(latest);
    const auto started = steady_clock::now();
    std::vector<reply> replies = session.run(requests, lane, lock_wait(lane));
    meter_.batch_run(kind_of(*requests.front().what), lane, requests.size(), steady_clock::now() - started);
    watch.end();

    command_queue::batch ended, apart, busy;
    std::vector<operation_ptr> answered;
    for (std::size_t row = 0; row < batch.size(); ++row) {
        if (auto* done = std::get_if<carried_out>(&replies[row])) {
            batch[row].entry->result.emplace(std::move(done->answer));
            batch[row].entry->after = std::move(done->after);
            answered.push_back(batch[row].entry);
            ended.push_back(std::move(batch[row]));
        } else if (std::holds_alternative<pg::apart>(replies[row])) {
            apart.push_back(std::move(batch[row]));
        } else {
            busy.push_back(std::move(batch[row]));
        }
    }
    const std::vector<operation_ptr> followers = queue_.finish(ended);
    answered.insert(answered.end(), followers.begin(), followers.end());
    if (!followers.empty()) meter_.followers_answered(followers.size());
    if (!apart.empty()) queue_.put_apart(std::move(apart));
    if (!busy.empty() && lane == lane::fast) meter_.slow_lane_entered(busy.size());
    if (!busy.empty()) post_failed(queue_.wait_for_rows(std::move(busy), settings_.lock_timeout), errc::overloaded);
    if (!answered.empty()) post_ended(std::move(answered));
}

void connection_threads::core::post_failed(std::vector<operation_ptr> failed, errc why) {
    if (failed.empty()) return;
    for (const operation_ptr& operation : failed)
        operation->result.emplace(why);
    post_ended(std::move(failed));
}

void connection_threads::core::post_ended(std::vector<operation_ptr> ended) {
    asio::post(executor_, [self = shared_from_this(), ended = std::move(ended)] { self->finish(ended); });
}

// ---- The public face
// -----------------------------------------------------------------------------------------------------

connection_threads::connection_threads(asio::any_io_executor executor, const thread_settings& settings,
                                       backend_factory factory, domain::journal& journal, meter& meter)
    : core_(std::make_shared<core>(std::move(executor), settings, std::move(factory), journal, meter)) {}

connection_threads::~connection_threads() {
    core_->stop_now();
}

void connection_threads::start() {
    core_->start();
}

bool connection_threads::connected() const noexcept {
    return core_->connected();
}

std::size_t connection_threads::waiting() const {
    return core_->waiting();
}

asio::awaitable<void> connection_threads::stop(milliseconds limit) {
    return core_->stop(limit);
}

void connection_threads::submit(operation_ptr operation, answer_handler handler) {
    core_->submit(std::move(operation), std::move(handler));
}

}  // namespace holdfast::pg
