#include "holdfast/cli/load_plan.hpp"

namespace holdfast::cli {

std::string_view to_text(load_kind kind) noexcept {
    switch (kind) {
        case load_kind::pairs:
            return "pairs";
        case load_kind::mixed:
            return "mixed";
        case load_kind::hot:
            return "hot";
        case load_kind::look:
            return "look";
        case load_kind::health:
            return "health";
        case load_kind::wait:
            return "wait";
    }
    return "unknown";
}

std::string_view to_text(wait_kind kind) noexcept {
    switch (kind) {
        case wait_kind::hand_over:
            return "hand_over";
        case wait_kind::abandon:
            return "abandon";
        case wait_kind::park:
            return "park";
    }
    return "unknown";
}

}  // namespace holdfast::cli
