#ifndef HOLDFAST_HTTP_FIELD_ERRORS_HPP
#define HOLDFAST_HTTP_FIELD_ERRORS_HPP

#include "holdfast/domain/field_fault.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::http {

/// The code of an entry in `errors`: `required`, `invalid`, `too_long`, `out_of_range`, `unknown` or `repeated`.
std::string_view code_of(domain::field_fault fault) noexcept;

struct field_error {
    std::string field;
    domain::field_fault fault;
    std::string message;
};

/// What is wrong with the fields of one request, in the order found. Lists a bounded number and counts the rest.
class field_errors {
public:
    void add(std::string_view field, domain::field_fault fault, std::string_view message);

    bool empty() const noexcept { return listed_.empty(); }
    const std::vector<field_error>& listed() const noexcept { return listed_; }
    /// How many were added beyond limits::field_errors_listed_max.
    std::size_t unlisted() const noexcept { return unlisted_; }

private:
    std::vector<field_error> listed_;
    std::size_t unlisted_ = 0;
};

}  // namespace holdfast::http

#endif
