#ifndef HOLDFAST_PG_BACKEND_HPP
#define HOLDFAST_PG_BACKEND_HPP

// What a connection thread asks of its database session. An interface, so that threads, queue and bridge are tested,
// and raced, without a database.

#include "holdfast/domain/commands.hpp"
#include "holdfast/domain/errc.hpp"
#include "holdfast/domain/outcomes.hpp"
#include "holdfast/store/batch_planner.hpp"
#include "holdfast/store/lease_store.hpp"
#include "holdfast/store/standing.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace holdfast::pg {

/// In the order of store::command_kind.
using command =
    std::variant<domain::acquire_command, domain::renew_command, domain::release_command, domain::look_command>;
using outcome =
    std::variant<domain::acquire_outcome, domain::renew_outcome, domain::release_result, domain::look_outcome>;
using answer = domain::result<outcome>;

inline store::command_kind kind_of(const command& command) noexcept {
    return static_cast<store::command_kind>(command.index());
}

inline const domain::resource_name& resource_of(const command& command) noexcept {
    return std::visit([](const auto& each) -> const domain::resource_name& { return each.resource(); }, command);
}

/// One command of a batch, and until when it may take effect.
struct request {
    const command* what;
    store::deadline until;
};

/// Somebody else holds the row's lock. Nothing was done.
struct row_busy {};

/// The answer to a command, and for a write what its row said then, where that is known.
struct carried_out {
    carried_out(pg::answer answer, std::optional<store::standing> after = std::nullopt)
        : answer(std::move(answer)), after(std::move(after)) {}

    pg::answer answer;
    std::optional<store::standing> after;
};
using reply = std::variant<row_busy, carried_out>;

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

    /// Carries out commands of one kind, on different resources (looks may repeat them), and returns one reply each, in
    /// their order. On the fast lane, and on the slow lane after `lock_wait`, a locked row is `row_busy`.
    virtual std::vector<reply> run(std::span<const request> requests, lane lane,
                                   std::chrono::milliseconds lock_wait) = 0;
};

}  // namespace holdfast::pg

#endif
