#include "holdfast/domain/errc.hpp"

#include <string>

namespace holdfast::domain {
namespace {

class category final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "holdfast"; }

    std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
            case errc::unavailable:
                return "the database cannot be used";
            case errc::overloaded:
                return "overloaded";
            case errc::outcome_unknown:
                return "the outcome is not known";
            case errc::internal:
                return "internal error";
        }
        return "unknown error";
    }
};

}  // namespace

const boost::system::error_category& errc_category() noexcept {
    static const category instance;
    return instance;
}

}  // namespace holdfast::domain
