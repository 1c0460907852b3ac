#ifndef HOLDFAST_DOMAIN_ERRC_HPP
#define HOLDFAST_DOMAIN_ERRC_HPP

// Failures of the infrastructure. What a request may be told by design (held, forbidden, not found …) is an outcome and
// never an errc; see outcomes.hpp.

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <type_traits>

namespace holdfast::domain {

enum class errc {
    unavailable = 1,  ///< The database cannot be reached, is read-only, or the node drains. Certainly no effect.
    overloaded,  ///< A bounded queue is full, time ran out before sending, or a row stayed locked. Certainly no effect.
    outcome_unknown,  ///< Sent and not answered: it may have taken effect.
    internal,         ///< The database refused the statement for a reason that is our fault. No effect.
};

const boost::system::error_category& errc_category() noexcept;

inline boost::system::error_code make_error_code(errc e) noexcept {
    return {static_cast<int>(e), errc_category()};
}

/// A value, or why the infrastructure could not say.
template <class Value>
using result = boost::system::result<Value>;

}  // namespace holdfast::domain

template <>
struct boost::system::is_error_code_enum<holdfast::domain::errc> : std::true_type {};

#endif
