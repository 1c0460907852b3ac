#ifndef HOLDFAST_APP_DESCRIPTOR_LIMIT_HPP
#define HOLDFAST_APP_DESCRIPTOR_LIMIT_HPP

#include <cstdint>

namespace holdfast::app {

/// Raises this process's soft limit of open descriptors to the hard one, and returns what holds afterwards. Leaves
/// things as they are when the system refuses.
std::uint64_t raise_descriptor_limit() noexcept;

}  // namespace holdfast::app

#endif
