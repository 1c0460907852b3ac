#include "holdfast/domain/fencing_token.hpp"
#include "holdfast/domain/limits.hpp"
#include "holdfast/domain/ttl.hpp"

namespace holdfast::domain {

validated<ttl> ttl::parse(std::int64_t ttl_seconds, std::int64_t ttl_seconds_max) noexcept {
    if (ttl_seconds < 1 || ttl_seconds > ttl_seconds_max) return field_fault::out_of_range;
    return ttl(std::chrono::seconds(ttl_seconds));
}

validated<fencing_token> fencing_token::parse(std::int64_t number) noexcept {
    if (number < 0 || number > limits::fencing_token_max) return field_fault::out_of_range;
    return fencing_token(number);
}

}  // namespace holdfast::domain
