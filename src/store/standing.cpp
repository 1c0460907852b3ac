#include "holdfast/store/standing.hpp"

namespace holdfast::store {

using namespace domain;

namespace {

/// Renew and release are refused alike.
enum class claim { no_lease, not_holder, holder };

template <class Command>
claim judge(const standing& standing, const Command& command) {
    if (!standing.lock()) return claim::no_lease;
    const bool owns = standing.lock()->owner() == command.owner();
    const bool names_it = !command.fencing_token() || *command.fencing_token() == standing.lock()->fencing_token();
    return owns && names_it ? claim::holder : claim::not_holder;
}

}  // namespace

std::optional<acquire_outcome> follow(const standing& standing, const acquire_command& command) {
    if (!standing.lock()) return std::nullopt;
    if (standing.lock()->owner() != command.owner()) return acquire_outcome::held(standing.left());
    if (command.key() && command.key() == standing.key()) return acquire_outcome::granted(*standing.lock());
    return std::nullopt;
}

std::optional<renew_outcome> follow(const standing& standing, const renew_command& command) {
    switch (judge(standing, command)) {
        case claim::no_lease:
            return renew_outcome::not_found();
        case claim::not_holder:
            return renew_outcome::forbidden();
        case claim::holder:
            break;
    }
    return std::nullopt;
}

std::optional<release_result> follow(const standing& standing, const release_command& command) {
    switch (judge(standing, command)) {
        case claim::no_lease:
            return release_result::not_found;
        case claim::not_holder:
            return release_result::forbidden;
        case claim::holder:
            break;
    }
    return std::nullopt;
}

}  // namespace holdfast::store
