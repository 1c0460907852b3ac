#ifndef HOLDFAST_PG_BACKEND_HPP
#define HOLDFAST_PG_BACKEND_HPP

// What a connection thread asks of its database session. An interface, so that threads, queue and bridge are tested,
// and raced, without a database.

#include "holdfast/domain/commands.hpp"
#include "holdfast/domain/errc.hpp"
#include "holdfast/domain/outcomes.hpp"
#include "holdfast/domain/queue_commands.hpp"
#include "holdfast/domain/queue_outcomes.hpp"
#include "holdfast/store/batch_planner.hpp"
#include "holdfast/store/lease_store.hpp"
#include "holdfast/store/standing.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::pg {

using queue_command = std::variant<domain::stand_command, domain::claim_command, domain::withdraw_command,
                                   domain::leave_command, domain::hand_over_command, domain::queue_release_command>;
/// In the order of queue_command.
using queue_outcome = std::variant<domain::stand_outcome, domain::claim_outcome, domain::withdraw_outcome,
                                   domain::leave_outcome, domain::hand_over_outcome, domain::queue_release_outcome>;

/// Words for other nodes: who should look at its place again, and the resources whose waiters should, all of them.
class announce_command {
public:
    announce_command(std::vector<domain::wake> wakes, std::vector<domain::resource_name> moved)
        : wakes_(std::move(wakes)), moved_(std::move(moved)) {}

    const std::vector<domain::wake>& wakes() const noexcept { return wakes_; }
    const std::vector<domain::resource_name>& moved() const noexcept { return moved_; }

private:
    std::vector<domain::wake> wakes_;
    std::vector<domain::resource_name> moved_;
};

struct announced {};

/// In the order of store::command_kind.
using command = std::variant<domain::acquire_command, domain::renew_command, domain::release_command,
                             domain::look_command, queue_command, announce_command>;
using outcome = std::variant<domain::acquire_outcome, domain::renew_outcome, domain::release_result,
                             domain::look_outcome, queue_outcome, announced>;
using answer = domain::result<outcome>;

inline store::command_kind kind_of(const command& command) noexcept {
    return static_cast<store::command_kind>(command.index());
}

/// The resource that the command is about; empty for an announcement.
inline const std::string& resource_of(const command& command) noexcept {
    static const std::string none;
    return std::visit(
        [](const auto& each) -> const std::string& {
            using kind = std::decay_t<decltype(each)>;
            if constexpr (std::is_same_v<kind, announce_command>)
                return none;
            else if constexpr (std::is_same_v<kind, queue_command>)
                return std::visit([](const auto& one) -> const std::string& { return one.resource().text(); }, each);
            else
                return each.resource().text();
        },
        command);
}

/// One command of a batch, and until when it may take effect.
struct request {
    const command* what;
    store::deadline until;
};

/// Somebody else holds the row's lock. Nothing was done.
struct row_busy {};

/// A release and the acquire behind it must be carried out one after the other. Nothing was done.
struct apart {};

/// The answer to a command, and for a write what its row said then, where that is known.
struct carried_out {
    carried_out(pg::answer answer, std::optional<store::standing> after = std::nullopt)
        : answer(std::move(answer)), after(std::move(after)) {}

    pg::answer answer;
    std::optional<store::standing> after;
};
using reply = std::variant<row_busy, apart, carried_out>;

/// Whether to leave locked rows alone or to wait for them.
enum class lane { fast, slow };

/// One database session. Created, used and destroyed by one thread; every call blocks; nothing throws.
class backend {
public:
    virtual ~backend() = default;

    /// Opens the session anew; false when that failed, or when the session cannot write.
    virtual bool connect() = 0;

    /// Whether the session is open and nothing arrived unasked; asked before sending.
    virtual bool usable() = 0;

    /// Carries out commands of one kind, on different resources (looks, and commands on waiting lines, may repeat them:
    /// these in their order), and returns one reply each, in their order. On the fast lane, and on the slow lane after
    /// `lock_wait`, a locked row is `row_busy`. Or, on the fast lane, pairs: releases on different resources, each
    /// followed by an acquire of the same one. Where the lease cannot be passed on just like that, both are `apart`.
    virtual std::vector<reply> run(std::span<const request> requests, lane lane,
                                   std::chrono::milliseconds lock_wait) = 0;
};

}  // namespace holdfast::pg

#endif
