#ifndef HOLDFAST_APP_USAGE_ERROR_HPP
#define HOLDFAST_APP_USAGE_ERROR_HPP

#include <stdexcept>

namespace holdfast::app {

/// The operator asked for something that cannot be: `what()` is one printable line for standard error, without secrets.
/// The process ends with `exit_code`.
class usage_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;

    static constexpr int exit_code = 64;  // EX_USAGE of sysexits.h
};

}  // namespace holdfast::app

#endif
