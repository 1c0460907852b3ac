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
    }
    return "unknown";
}

}  // namespace holdfast::cli
