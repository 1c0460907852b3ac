#ifndef HOLDFAST_DOMAIN_FIELD_FAULT_HPP
#define HOLDFAST_DOMAIN_FIELD_FAULT_HPP

#include <boost/system/result.hpp>

namespace holdfast::domain {

/// Why a field was refused: the `code` of an entry in a validation problem (contract, section 5).
enum class field_fault { required, invalid, too_long, out_of_range, unknown, repeated };

/// A validated value, or the reason it was refused. Test it before dereferencing; there is no throwing access.
template <class Value>
using validated = boost::system::result<Value, field_fault>;

}  // namespace holdfast::domain

#endif
