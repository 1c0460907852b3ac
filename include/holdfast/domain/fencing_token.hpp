#ifndef HOLDFAST_DOMAIN_FENCING_TOKEN_HPP
#define HOLDFAST_DOMAIN_FENCING_TOKEN_HPP

#include "holdfast/domain/field_fault.hpp"

#include <compare>
#include <cstdint>

namespace holdfast::domain {

/// Grows with every grant of a resource. 0 to 2^53 - 1; grants start at 1, so 0 is a token that nobody holds.
class fencing_token {
public:
    /// Refuses with `out_of_range` what is below 0 or above 2^53 - 1.
    static validated<fencing_token> parse(std::int64_t number) noexcept;

    std::int64_t number() const noexcept { return number_; }

    friend auto operator<=>(const fencing_token&, const fencing_token&) = default;

private:
    explicit fencing_token(std::int64_t number) noexcept : number_(number) {}

    std::int64_t number_;
};

}  // namespace holdfast::domain

#endif
