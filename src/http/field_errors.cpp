#include "holdfast/http/field_errors.hpp"

#include "holdfast/http/limits.hpp"

namespace holdfast::http {

std::string_view code_of(domain::field_fault fault) noexcept {
    switch (fault) {
        case domain::field_fault::required:
            return "required";
        case domain::field_fault::invalid:
            return "invalid";
        case domain::field_fault::too_long:
            return "too_long";
        case domain::field_fault::out_of_range:
            return "out_of_range";
        case domain::field_fault::unknown:
            return "unknown";
        case domain::field_fault::repeated:
            return "repeated";
    }
    return "invalid";
}

void field_errors::add(std::string_view field, domain::field_fault fault, std::string_view message) {
    if (listed_.size() == limits::field_errors_listed_max) {
        ++unlisted_;
        return;
    }
    listed_.push_back(field_error{std::string(field), fault, std::string(message)});
}

}  // namespace holdfast::http
