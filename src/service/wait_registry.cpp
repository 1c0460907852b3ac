#include "holdfast/service/wait_registry.hpp"

#include "holdfast/service/errands.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

namespace holdfast::service {

using namespace domain;
using std::chrono::milliseconds;
namespace asio = boost::asio;

namespace {

using time_point = std::chrono::steady_clock::time_point;
using answer = result<acquire_answer>;
using answer_handler = asio::any_completion_handler<void(boost::system::error_code, answer)>;

/// Commands of the registry's own under way at once. Enough for full batches on every connection, and little beside the
/// bound of the store's queue.
constexpr std::size_t commands_at_once_max = 256;

/// A place that was living at some moment is there for at least `place_kept_for` after it, unless somebody gave it up
/// or took it over. Two clocks are compared here, so a little less is counted on.
constexpr milliseconds certainly_kept_for = store::place_kept_for - milliseconds(500);

constexpr bool prompt = true;
constexpr bool patient = false;

struct waiter;
struct line;
using waiter_ptr = std::shared_ptr<waiter>;
using due_times = std::multimap<time_point, std::variant<waiter*, line*>>;

/// What the registry does for a waiter now: one command at a time.
enum class stage {
    standing,     ///< Asks for the lock or a place.
    waiting,      ///< Has a place; nothing is under way.
    claiming,     ///< Confirms an offer, or finds out what has become of its place.
    withdrawing,  ///< Makes its place a kept one: the last it does.
};

/// One request, from its arrival until nothing is left to do for it, which may be after its client has gone.
struct waiter {
    waiter(acquire_command ask, time_point arrived, time_point until)
        : ask(std::move(ask)), arrived(arrived), until(until) {}

    acquire_command ask;
    time_point arrived;
    time_point until;
    service::line* line = nullptr;
    std::optional<domain::place> place;    ///< None before the first answer, or when another request has it.
    time_point placed{};                   ///< When that was told.
    time_point seen{};                     ///< The place was certainly living at some moment after this one.
    std::uint64_t survey = 0;              ///< The last that had it.
    std::optional<answer_handler> client;  ///< Empty once answered or gone. Emplaced, never assigned (Asio 1.26).
    std::optional<due_times::iterator> due;
    service::stage stage = service::stage::standing;
    bool woken = false;    ///< Something has changed since the last command was sent.
    bool missing = false;  ///< The last survey had no living place of that attachment.
    bool unknown = false;  ///< A claim may have been granted. It is repeated, under the client's key.
    bool served = false;   ///< Was granted the lock while a command of its own was under way.
};

/// The waiters for one resource on this node, and the lease before them.
struct line {
    std::vector<waiter_ptr> waiters;
    time_point ends{};   ///< When the lease ends, as far as is known.
    time_point asked{};  ///< When the question was sent whose answer says so.
    std::optional<due_times::iterator> due;
    bool hands_over = false;  ///< A hand_over is under way.
};

template <class... Cases>
struct cases : Cases... {
    using Cases::operator()...;
};
template <class... Cases>
cases(Cases...) -> cases<Cases...>;

bool certainly_without_effect(boost::system::error_code why) {
    return why != errc::outcome_unknown;
}

}  // namespace

// ---- Declarations
// ------------------------------------------------------------------------------------------------------
//
// Nothing here completes a request or begins a command inside a call: both are posted. So whoever walks over waiters is
// never surprised by what one of them causes.

class wait_registry::core : public std::enable_shared_from_this<core> {
public:
    core(asio::any_io_executor executor, store::wait_queue& queue, std::size_t waiters_max,
         milliseconds request_deadline, std::unique_ptr<service::alarm> alarm)
        : executor_(executor),
          queue_(queue),
          waiters_max_(waiters_max),
          request_deadline_(request_deadline),
          alarm_(std::move(alarm)),
          errands_(std::make_shared<errands>(executor, commands_at_once_max)) {}

    void listen();
    void close();

    asio::awaitable<answer> wait(acquire_command command, std::chrono::seconds length, time_point arrived);
    void drain();
    asio::awaitable<void> settle(milliseconds limit) { return errands::settle(errands_, limit); }
    void spread(std::vector<domain::wake> wakes);
    void deliver(handover handed, time_point sent);
    void nobody_stands();
    std::optional<node_id> hands_over_at() const { return drains_ ? std::nullopt : queue_.node(); }
    std::function<void()> way_back(const domain::lock& lock);
    bool awaited_here(const resource_name& resource) const { return lines_.contains(resource); }
    std::size_t waiting() const noexcept { return waiting_; }

private:
    using self_ptr = std::shared_ptr<core>;

    // A waiter's way. The `..._for` are the errands: they own their parameters.
    void arrive(const waiter_ptr& waiter, answer_handler client);
    std::optional<errc> refuses() const;
    void watch(const waiter_ptr& waiter);
    void stand(const waiter_ptr& waiter);
    static asio::awaitable<void> stand_for(self_ptr self, waiter_ptr waiter);
    void stood(const waiter_ptr& waiter, result<stand_outcome> outcome, time_point sent);
    void take_place(const waiter_ptr& waiter, queue_standing standing, time_point sent);
    void go_on(const waiter_ptr& waiter);
    void wake(const waiter_ptr& waiter);
    void claim(const waiter_ptr& waiter);
    static asio::awaitable<void> claim_for(self_ptr self, waiter_ptr waiter);
    void claimed(const waiter_ptr& waiter, result<claim_outcome> outcome, time_point sent);
    void claim_failed(const waiter_ptr& waiter, boost::system::error_code why);
    void place_lost(const waiter_ptr& waiter, bool may_have_been_forgotten);
    void granted(const waiter_ptr& waiter, domain::lock lock, time_point sent);
    void answer_grant(const waiter_ptr& waiter, domain::lock lock, time_point sent);
    void withdraw(const waiter_ptr& waiter);
    static asio::awaitable<void> withdraw_for(self_ptr self, waiter_ptr waiter);
    void withdrew(const waiter_ptr& waiter, result<withdraw_outcome> outcome);
    void client_gone(const waiter_ptr& waiter);
    void superseded(const waiter_ptr& waiter);
    void refuse_client(service::waiter& waiter);
    void tell(service::waiter& waiter, answer what, boost::system::error_code code = {});
    void drop_place(service::waiter& waiter);
    void forget(const waiter_ptr& waiter);

    // What the queue says.
    void woken(const std::vector<std::int64_t>& place_numbers);
    void surveyed(const std::vector<surveyed_place>& places, time_point began);
    void found(const surveyed_place& place, time_point began, std::unordered_set<std::int64_t>& strays);
    void not_found(time_point began);
    bool someone_stands_for(const resource_name& resource) const;
    static asio::awaitable<void> withdraw_stray(self_ptr self, domain::place place);

    // Locks that nobody received.
    void give_back(queue_release_command release, time_point until);
    static asio::awaitable<void> give_back_for(self_ptr self, queue_release_command release, time_point until);

    // The lease before a line, and the alarm.
    void lease_ends(service::line& line, milliseconds in, time_point asked);
    milliseconds left(const service::line& line) const;
    void hand_over(service::line& line);
    static asio::awaitable<void> hand_over_for(self_ptr self, resource_name resource);
    void handed_over(const resource_name& resource, result<hand_over_outcome> outcome, time_point sent);
    template <class Subject>
    void set_due(Subject& subject, time_point when);
    template <class Subject>
    void stop_due(Subject& subject);
    void arm();
    void ring();

    void run(errands::errand errand, bool is_prompt);
    time_point now() const { return alarm_->now(); }
    store::deadline deadline_of(const service::waiter& waiter) const {
        return std::min(now(), waiter.until) + request_deadline_;
    }

    asio::any_io_executor executor_;
    store::wait_queue& queue_;
    std::size_t waiters_max_;
    milliseconds request_deadline_;
    std::unique_ptr<service::alarm> alarm_;
    std::shared_ptr<errands> errands_;

    std::map<resource_name, service::line> lines_;
    std::unordered_map<std::int64_t, waiter_ptr> places_;  ///< By number.
    due_times due_;
    std::optional<time_point> armed_;
    std::size_t waiting_ = 0;   ///< Waiters with a client.
    std::size_t records_ = 0;   ///< All of them.
    std::size_t standing_ = 0;  ///< Those that stand.
    /// Woken before the answer that says whose they are. Forgotten when nobody stands.
    std::unordered_set<std::int64_t> woken_early_;
    /// In the same way: locks for places that no answer has named yet, and when the command was sent.
    std::map<std::int64_t, std::pair<handover, time_point>> handed_early_;
    std::unordered_set<std::int64_t> strays_;  ///< Attachments of the last survey that are nobody's.
    std::vector<std::pair<queue_release_command, time_point>> undone_gifts_;  ///< And until when they are worth it.
    std::uint64_t surveys_ = 0;
    bool drains_ = false;
    bool closed_ = false;
};

// ---- Arrival
// -----------------------------------------------------------------------------------------------------------

asio::awaitable<answer> wait_registry::core::wait(acquire_command command, std::chrono::seconds length,
                                                  time_point arrived) {
    return asio::async_initiate<const asio::use_awaitable_t<>, void(boost::system::error_code, answer)>(
        [self = shared_from_this()](auto handler, const waiter_ptr& waiter) {
            self->arrive(waiter, answer_handler(std::move(handler)));
        },
        asio::use_awaitable, std::make_shared<service::waiter>(std::move(command), arrived, arrived + length));
}

void wait_registry::core::arrive(const waiter_ptr& waiter, answer_handler client) {
    const auto refused = refuses();
    waiter->client.emplace(std::move(client));
    ++waiting_;
    if (refused) return tell(*waiter, answer(*refused));
    waiter->line = &lines_.try_emplace(waiter->ask.resource()).first->second;
    waiter->line->waiters.push_back(waiter);
    ++records_;
    set_due(*waiter, waiter->until);
    watch(waiter);
    stand(waiter);
}

/// Requests that are over may still be withdrawn; beyond as many again of them the store does not keep up.
std::optional<errc> wait_registry::core::refuses() const {
    if (drains_ || !queue_.node()) return errc::unavailable;
    if (waiting_ >= waiters_max_ || records_ >= 2 * waiters_max_) return errc::overloaded;
    return std::nullopt;
}

void wait_registry::core::watch(const waiter_ptr& waiter) {
    auto slot = asio::get_associated_cancellation_slot(*waiter->client);
    if (!slot.is_connected()) return;
    slot.assign([self = weak_from_this(), of = std::weak_ptr(waiter)](asio::cancellation_type type) {
        const auto effective = asio::cancellation_type::terminal | asio::cancellation_type::total;
        const auto alive = self.lock();
        const auto waiter = of.lock();
        if (alive && waiter && (type & effective) != asio::cancellation_type::none) alive->client_gone(waiter);
    });
}

// ---- Standing
// ----------------------------------------------------------------------------------------------------------

void wait_registry::core::stand(const waiter_ptr& waiter) {
    waiter->stage = stage::standing;
    waiter->woken = false;
    ++standing_;
    run([self = shared_from_this(), waiter] { return stand_for(self, waiter); }, patient);
}

asio::awaitable<void> wait_registry::core::stand_for(self_ptr self, waiter_ptr waiter) {
    const auto node = self->queue_.node();
    const auto sent = self->now();
    if (!waiter->client || !node) {
        self->stood(waiter, errc::unavailable, sent);
        co_return;
    }
    stand_command command(waiter->ask, node);
    auto outcome = co_await self->queue_.stand(std::move(command), self->deadline_of(*waiter));
    self->stood(waiter, std::move(outcome), sent);
}

void wait_registry::core::stood(const waiter_ptr& waiter, result<stand_outcome> outcome, time_point sent) {
    --standing_;
    if (!outcome) {
        // A place or a lock that nobody knows of is found by survey, or repeated under the client's key.
        tell(*waiter, answer(outcome.error()));
        forget(waiter);
    } else {
        std::visit(cases{[&](queue_grant& grant) {
                             // Its place, and with it that of an older request, is gone.
                             const auto others = waiter->line->waiters;
                             lease_ends(*waiter->line, grant.lock.expires_in() + milliseconds(1), sent);
                             for (const waiter_ptr& other : others)
                                 if (other != waiter && other->ask.owner() == waiter->ask.owner() && other->place)
                                     superseded(other);
                             granted(waiter, std::move(grant.lock), sent);
                         },
                         [&](queue_standing& standing) { take_place(waiter, std::move(standing), sent); },
                         [&](queue_refusal& refused) {
                             tell(*waiter, acquire_answer(refusal(refused.retry_after)));
                             forget(waiter);
                         },
                         [&](domain::queue_full&) {
                             tell(*waiter, acquire_answer(service::queue_full()));
                             forget(waiter);
                         }},
                   outcome->answer);
        spread(std::move(outcome->wakes));
    }
    if (standing_ == 0) nobody_stands();
}

/// What came early was for nobody here.
void wait_registry::core::nobody_stands() {
    woken_early_.clear();
    for (auto& [number, early] : std::exchange(handed_early_, {}))
        way_back(early.first.lock)();
}

void wait_registry::core::take_place(const waiter_ptr& waiter, queue_standing standing, time_point sent) {
    const std::int64_t number = standing.place.number();
    lease_ends(*waiter->line, standing.ends_in, sent);
    if (const auto present = places_.find(number); present != places_.end()) {
        const waiter_ptr other = present->second;
        // Attachments are drawn while the resource is locked: the greater one is the later request, whichever answer
        // came first.
        if (other->place->attachment() > standing.place.attachment()) {
            refuse_client(*waiter);
            return forget(waiter);
        }
        superseded(other);
    }
    waiter->place = std::move(standing.place);
    waiter->placed = now();
    waiter->seen = sent;
    waiter->missing = false;
    places_.insert_or_assign(number, waiter);
    if (woken_early_.erase(number) > 0) waiter->woken = true;
    auto early = handed_early_.extract(number);
    waiter->stage = stage::waiting;
    if (early) return deliver(std::move(early.mapped().first), early.mapped().second);
    go_on(waiter);
}

// ---- In line
// -----------------------------------------------------------------------------------------------------------

/// No command of the waiter's is under way any more: what comes next?
void wait_registry::core::go_on(const waiter_ptr& waiter) {
    waiter->stage = stage::waiting;
    if (!waiter->place) return forget(waiter);
    if (!waiter->client || now() >= waiter->until) return withdraw(waiter);
    if (waiter->woken) claim(waiter);
}

void wait_registry::core::wake(const waiter_ptr& waiter) {
    waiter->woken = true;
    if (waiter->stage == stage::waiting) go_on(waiter);
}

void wait_registry::core::claim(const waiter_ptr& waiter) {
    waiter->stage = stage::claiming;
    run([self = shared_from_this(), waiter] { return claim_for(self, waiter); }, prompt);
}

asio::awaitable<void> wait_registry::core::claim_for(self_ptr self, waiter_ptr waiter) {
    waiter->woken = false;
    if (!waiter->client || !waiter->place) {
        self->go_on(waiter);
        co_return;
    }
    const auto sent = self->now();
    claim_command command(*waiter->place, waiter->ask);
    auto outcome = co_await self->queue_.claim(std::move(command), self->deadline_of(*waiter));
    self->claimed(waiter, std::move(outcome), sent);
}

void wait_registry::core::claimed(const waiter_ptr& waiter, result<claim_outcome> outcome, time_point sent) {
    if (!outcome) return claim_failed(waiter, outcome.error());
    waiter->unknown = false;
    std::visit(cases{[&](queue_grant& grant) { granted(waiter, std::move(grant.lock), sent); },
                     [&](not_offered& nothing) {
                         lease_ends(*waiter->line, nothing.ends_in, sent);
                         // A place that no survey has is that of a node which this one was before.
                         if (nothing.is_kept || waiter->missing)
                             place_lost(waiter, true);
                         else
                             go_on(waiter);
                     },
                     [&](place_gone&) { place_lost(waiter, now() - waiter->seen >= certainly_kept_for); }},
               *outcome);
}

/// What was offered is offered still when the next survey comes, or is on its way to the next waiter. A claim that may
/// have been granted is answered as what it is, or repeated then: under a key the same grant is answered again.
void wait_registry::core::claim_failed(const waiter_ptr& waiter, boost::system::error_code why) {
    if (!certainly_without_effect(why)) {
        waiter->unknown = true;
        if (!waiter->ask.key()) tell(*waiter, answer(why));
    }
    waiter->woken = false;
    go_on(waiter);
}

/// The waiter's place has gone, or is no living one. Where this node was out of touch for so long that it may have been
/// thought dead and its places forgotten, the request stands again. Otherwise the owner has left or asked anew: the
/// request has no place any more. (In the first case that may be so, too; then it takes the place back.)
void wait_registry::core::place_lost(const waiter_ptr& waiter, bool may_have_been_forgotten) {
    drop_place(*waiter);
    if (waiter->client && may_have_been_forgotten && now() < waiter->until) return stand(waiter);
    refuse_client(*waiter);
    forget(waiter);
}

void wait_registry::core::granted(const waiter_ptr& waiter, domain::lock lock, time_point sent) {
    // Its claim may find the grant that it has been answered already.
    if (!waiter->served) answer_grant(waiter, std::move(lock), sent);
    forget(waiter);
}

void wait_registry::core::answer_grant(const waiter_ptr& waiter, domain::lock lock, time_point sent) {
    lease_ends(*waiter->line, lock.expires_in() + milliseconds(1), sent);
    auto back = way_back(lock);
    if (waiter->client) {
        grant granted(std::move(lock));
        granted.waited = std::max(milliseconds(0), std::chrono::floor<milliseconds>(sent - waiter->arrived));
        granted.undelivered = std::move(back);
        tell(*waiter, acquire_answer(std::move(granted)));
    } else {
        back();
    }
}

/// A command of the waiter's that is under way then finds no place any more, and is the last it does.
void wait_registry::core::deliver(handover handed, time_point sent) {
    const auto present = places_.find(handed.place_number);
    if (present == places_.end() && someone_stands_for(handed.lock.resource())) {
        const std::int64_t number = handed.place_number;
        handed_early_.insert_or_assign(number, std::pair(std::move(handed), sent));
        return;
    }
    if (present == places_.end() || present->second->place->attachment() != handed.attachment)
        return way_back(handed.lock)();
    const waiter_ptr waiter = present->second;
    if (waiter->stage == stage::waiting) return granted(waiter, std::move(handed.lock), sent);
    answer_grant(waiter, std::move(handed.lock), sent);
    drop_place(*waiter);
    waiter->served = true;
}

void wait_registry::core::withdraw(const waiter_ptr& waiter) {
    waiter->stage = stage::withdrawing;
    run([self = shared_from_this(), waiter] { return withdraw_for(self, waiter); }, waiter->client ? prompt : patient);
}

asio::awaitable<void> wait_registry::core::withdraw_for(self_ptr self, waiter_ptr waiter) {
    if (!waiter->place) {
        self->forget(waiter);
        co_return;
    }
    withdraw_command command(*waiter->place);
    const auto deadline = waiter->client ? self->deadline_of(*waiter) : self->now() + self->request_deadline_;
    auto outcome = co_await self->queue_.withdraw(std::move(command), deadline);
    self->withdrew(waiter, std::move(outcome));
}

/// Nothing was granted, or the claim is known as unknown. So the acquire is certainly without effect, whatever has
/// become of its place when the withdrawal fails; if that still stands, it is found by survey.
void wait_registry::core::withdrew(const waiter_ptr& waiter, result<withdraw_outcome> outcome) {
    if (!outcome) {
        const bool plain = certainly_without_effect(outcome.error());
        const errc instead = waiter->unknown ? errc::outcome_unknown : errc::unavailable;
        tell(*waiter, plain && !waiter->unknown ? answer(outcome.error()) : answer(instead));
        return forget(waiter);
    }
    std::visit(cases{[&](place_kept& kept) {
                         const kept_place place{kept.position, store::place_kept_for};
                         tell(*waiter, acquire_answer(refusal(kept.retry_after, place)));
                     },
                     [&](place_gone&) {
                         if (waiter->unknown)
                             tell(*waiter, answer(errc::outcome_unknown));
                         else
                             refuse_client(*waiter);
                     }},
               outcome->answer);
    forget(waiter);
    spread(std::move(outcome->wakes));
}

// ---- The end of a request
// ----------------------------------------------------------------------------------------------

void wait_registry::core::client_gone(const waiter_ptr& waiter) {
    if (!waiter->client) return;
    tell(*waiter, answer(errc::unavailable), asio::error::operation_aborted);
    if (waiter->stage == stage::waiting) withdraw(waiter);
}

/// Another request of its owner has the place, or has had the lock.
void wait_registry::core::superseded(const waiter_ptr& waiter) {
    drop_place(*waiter);
    refuse_client(*waiter);
    if (waiter->stage == stage::waiting) forget(waiter);
}

/// Without a place.
void wait_registry::core::refuse_client(service::waiter& waiter) {
    tell(waiter, acquire_answer(refusal(left(*waiter.line))));
}

/// Answers the client, if it is there.
void wait_registry::core::tell(service::waiter& waiter, answer what, boost::system::error_code code) {
    if (!waiter.client) return;
    stop_due(waiter);
    --waiting_;
    asio::post(executor_, [client = std::move(*waiter.client), code, what = std::move(what)]() mutable {
        std::move(client)(code, std::move(what));
    });
    waiter.client.reset();
}

void wait_registry::core::drop_place(service::waiter& waiter) {
    if (!waiter.place) return;
    const auto present = places_.find(waiter.place->number());
    if (present != places_.end() && present->second.get() == &waiter) places_.erase(present);
    waiter.place.reset();
}

/// Nothing is left to do for it.
void wait_registry::core::forget(const waiter_ptr& waiter) {
    drop_place(*waiter);
    auto& waiters = waiter->line->waiters;
    waiters.erase(std::find(waiters.begin(), waiters.end(), waiter));
    --records_;
    if (!waiters.empty()) return;
    stop_due(*waiter->line);
    lines_.erase(waiter->ask.resource());
}

void wait_registry::core::drain() {
    drains_ = true;
    for (auto& [resource, line] : lines_)
        for (const waiter_ptr& waiter : line.waiters) {
            tell(*waiter, answer(errc::unavailable));
            if (waiter->stage == stage::waiting) withdraw(waiter);
        }
}

void wait_registry::core::close() {
    closed_ = drains_ = true;
    alarm_->stop();
    for (auto& [resource, line] : lines_)
        for (const waiter_ptr& waiter : line.waiters)
            tell(*waiter, answer(errc::unavailable));
    errands_->clear();
}

// ---- What the queue says
// -----------------------------------------------------------------------------------------------

void wait_registry::core::listen() {
    store::wait_queue::events events;
    events.woken = [core = weak_from_this()](std::vector<std::int64_t> place_numbers) {
        if (const auto alive = core.lock()) alive->woken(place_numbers);
    };
    events.surveyed = [core = weak_from_this()](std::vector<surveyed_place> places, time_point began) {
        if (const auto alive = core.lock()) alive->surveyed(places, began);
    };
    queue_.listen(std::move(events));
}

void wait_registry::core::spread(std::vector<domain::wake> wakes) {
    if (wakes.empty() || closed_) return;
    const auto here = queue_.node();
    std::vector<std::int64_t> own;
    const auto others =
        std::partition(wakes.begin(), wakes.end(), [&](const domain::wake& wake) { return wake.node == here; });
    for (auto wake = wakes.begin(); wake != others; ++wake)
        own.push_back(wake->place_number);
    wakes.erase(wakes.begin(), others);
    woken(own);
    if (!wakes.empty()) queue_.announce(std::move(wakes));
}

void wait_registry::core::woken(const std::vector<std::int64_t>& place_numbers) {
    for (const std::int64_t number : place_numbers) {
        const auto present = places_.find(number);
        if (present != places_.end())
            wake(waiter_ptr(present->second));
        else if (standing_ > 0 && woken_early_.size() < waiters_max_)
            woken_early_.insert(number);
    }
}

void wait_registry::core::surveyed(const std::vector<surveyed_place>& places, time_point began) {
    if (closed_) return;
    ++surveys_;
    std::unordered_set<std::int64_t> strays;
    for (const surveyed_place& place : places)
        found(place, began, strays);
    strays_ = std::move(strays);
    not_found(began);
    for (auto& [release, until] : std::exchange(undone_gifts_, {}))
        give_back(release, until);
}

void wait_registry::core::found(const surveyed_place& place, time_point began,
                                std::unordered_set<std::int64_t>& strays) {
    const std::int64_t attachment = place.place.attachment();
    const auto present = places_.find(place.place.number());
    if (present == places_.end() || present->second->place->attachment() < attachment) {
        // Nobody's: its request was answered without it. The second survey in a row that has it rules out that this one
        // is merely older than what is known here.
        strays.insert(attachment);
        if (strays_.contains(attachment) && !someone_stands_for(place.place.resource()))
            run([self = shared_from_this(), of = place.place] { return withdraw_stray(self, of); }, patient);
        return;
    }
    const waiter_ptr waiter = present->second;
    if (waiter->place->attachment() != attachment) return;
    waiter->survey = surveys_;
    waiter->seen = std::max(waiter->seen, began);
    waiter->missing = false;
    if (place.offered)
        wake(waiter);
    else
        lease_ends(*waiter->line, place.ends_in, began);
}

/// Waiters whose places the survey should have had.
void wait_registry::core::not_found(time_point began) {
    std::vector<waiter_ptr> missing;
    for (const auto& [number, waiter] : places_)
        if (waiter->survey != surveys_ && waiter->placed <= began && waiter->stage == stage::waiting)
            missing.push_back(waiter);
    for (const waiter_ptr& waiter : missing) {
        waiter->missing = true;
        wake(waiter);
    }
}

bool wait_registry::core::someone_stands_for(const resource_name& resource) const {
    const auto line = lines_.find(resource);
    if (line == lines_.end()) return false;
    return std::any_of(line->second.waiters.begin(), line->second.waiters.end(),
                       [](const waiter_ptr& waiter) { return waiter->stage == stage::standing; });
}

asio::awaitable<void> wait_registry::core::withdraw_stray(self_ptr self, domain::place place) {
    withdraw_command command(std::move(place));
    auto outcome = co_await self->queue_.withdraw(std::move(command), self->now() + self->request_deadline_);
    if (outcome) self->spread(std::move(outcome->wakes));
}

// ---- Locks that nobody received
// ----------------------------------------------------------------------------------------

std::function<void()> wait_registry::core::way_back(const domain::lock& lock) {
    release_command release(lock.resource(), lock.owner(), lock.fencing_token());
    return [core = weak_from_this(), until = now() + lock.expires_in(),
            release = queue_release_command(std::move(release), true)] {
        if (const auto alive = core.lock()) alive->give_back(release, until);
    };
}

void wait_registry::core::give_back(queue_release_command release, time_point until) {
    run([self = shared_from_this(), release = std::move(release),
         until] { return give_back_for(self, release, until); },
        prompt);
}

/// Again after the next survey, if it certainly had no effect; else the lease ends by itself.
asio::awaitable<void> wait_registry::core::give_back_for(self_ptr self, queue_release_command release,
                                                         time_point until) {
    queue_release_command command(release);
    auto outcome = co_await self->queue_.release(std::move(command), self->now() + self->request_deadline_);
    if (outcome)
        self->spread(std::move(outcome->wakes));
    else if (certainly_without_effect(outcome.error()) && self->now() < until)
        self->undone_gifts_.emplace_back(std::move(release), until);
}

// ---- The lease before a line
// -------------------------------------------------------------------------------------------

/// What was asked earlier than the last that was heard of is old news; and what does not contradict it is none. The
/// lease ends between `asked` + `in` and now + `in`; the later moment is taken, so that handing over finds it ended.
void wait_registry::core::lease_ends(service::line& line, milliseconds in, time_point asked) {
    if (asked < line.asked) return;
    line.asked = asked;
    if (line.due && line.ends >= asked + in && line.ends <= now() + in) return;
    line.ends = now() + in;
    set_due(line, line.ends);
}

/// As of acquire_outcome::held.
milliseconds wait_registry::core::left(const service::line& line) const {
    return std::max(milliseconds(1), std::chrono::ceil<milliseconds>(line.ends - now()));
}

void wait_registry::core::hand_over(service::line& line) {
    if (line.hands_over) return;
    line.hands_over = true;
    const resource_name& resource = line.waiters.front()->ask.resource();
    run([self = shared_from_this(), resource] { return hand_over_for(self, resource); }, prompt);
}

asio::awaitable<void> wait_registry::core::hand_over_for(self_ptr self, resource_name resource) {
    const auto sent = self->now();
    hand_over_command command(resource, self->hands_over_at());
    auto outcome = co_await self->queue_.hand_over(std::move(command), sent + self->request_deadline_);
    self->handed_over(resource, std::move(outcome), sent);
}

/// After a failure, or with nobody to hand over to, the next survey tells more.
void wait_registry::core::handed_over(const resource_name& resource, result<hand_over_outcome> outcome,
                                      time_point sent) {
    const auto line = lines_.find(resource);
    if (line != lines_.end()) line->second.hands_over = false;
    if (!outcome) return;
    if (line != lines_.end() && outcome->ends_in)
        lease_ends(line->second, std::max(milliseconds(1), *outcome->ends_in), sent);
    if (outcome->handed) deliver(std::move(*outcome->handed), sent);
    spread(std::move(outcome->wakes));
}

// ---- The alarm
// ---------------------------------------------------------------------------------------------------------

template <class Subject>
void wait_registry::core::set_due(Subject& subject, time_point when) {
    if (subject.due) due_.erase(*subject.due);
    subject.due = due_.emplace(when, &subject);
    arm();
}

template <class Subject>
void wait_registry::core::stop_due(Subject& subject) {
    if (!subject.due) return;
    due_.erase(*subject.due);
    subject.due.reset();
    // A node that ends does so when nothing is left to wait for.
    if (!due_.empty() || !armed_) return;
    armed_.reset();
    alarm_->stop();
}

/// Set for the earliest; one that turns out to ring for nothing is not worth the trouble of setting it anew.
void wait_registry::core::arm() {
    if (closed_ || due_.empty()) return;
    const time_point earliest = due_.begin()->first;
    if (armed_ && *armed_ <= earliest) return;
    armed_ = earliest;
    alarm_->set(earliest, [core = weak_from_this()] {
        if (const auto alive = core.lock()) alive->ring();
    });
}

void wait_registry::core::ring() {
    armed_.reset();
    while (!due_.empty() && due_.begin()->first <= now()) {
        const auto subject = due_.begin()->second;
        due_.erase(due_.begin());
        std::visit(cases{[&](service::waiter* waiter) {
                             waiter->due.reset();
                             if (waiter->stage == stage::waiting)
                                 go_on(waiter_ptr(places_.at(waiter->place->number())));
                         },
                         [&](service::line* line) {
                             line->due.reset();
                             hand_over(*line);
                         }},
                   subject);
    }
    arm();
}

void wait_registry::core::run(errands::errand errand, bool is_prompt) {
    if (!closed_) errands_->run(std::move(errand), is_prompt);
}

// ---- The face
// ----------------------------------------------------------------------------------------------------------

wait_registry::wait_registry(asio::any_io_executor executor, store::wait_queue& queue, std::size_t waiters_max,
                             milliseconds request_deadline)
    : wait_registry(executor, queue, waiters_max, request_deadline, make_alarm(executor)) {}

wait_registry::wait_registry(asio::any_io_executor executor, store::wait_queue& queue, std::size_t waiters_max,
                             milliseconds request_deadline, std::unique_ptr<service::alarm> alarm)
    : core_(std::make_shared<core>(executor, queue, waiters_max, request_deadline, std::move(alarm))) {
    core_->listen();
}

wait_registry::~wait_registry() {
    core_->close();
}

asio::awaitable<answer> wait_registry::wait(acquire_command command, std::chrono::seconds wait, time_point arrived) {
    return core_->wait(std::move(command), wait, arrived);
}

std::function<void()> wait_registry::way_back(const domain::lock& lock) {
    return core_->way_back(lock);
}

void wait_registry::drain() {
    core_->drain();
}

asio::awaitable<void> wait_registry::settle(milliseconds limit) {
    return core_->settle(limit);
}

void wait_registry::spread(std::vector<domain::wake> wakes) {
    core_->spread(std::move(wakes));
}

void wait_registry::deliver(handover handed, time_point sent) {
    core_->deliver(std::move(handed), sent);
}

std::optional<node_id> wait_registry::hands_over_at() const {
    return core_->hands_over_at();
}

bool wait_registry::awaited_here(const resource_name& resource) const {
    return core_->awaited_here(resource);
}

std::size_t wait_registry::waiting() const noexcept {
    return core_->waiting();
}

}  // namespace holdfast::service
