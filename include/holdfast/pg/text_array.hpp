#ifndef HOLDFAST_PG_TEXT_ARRAY_HPP
#define HOLDFAST_PG_TEXT_ARRAY_HPP

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::pg {

/// Builds the text form of a PostgreSQL array, `{"a","b"}`, for a statement parameter. Any bytes but NUL.
class text_array {
public:
    void add(std::string_view element) {
        separate();
        text_ += '"';
        for (const char each : element) {
            if (each == '"' || each == '\\') text_ += '\\';
            text_ += each;
        }
        text_ += '"';
    }

    void add(std::int64_t element) {
        separate();
        text_ += std::to_string(element);
    }

    std::string str() const { return text_ + '}'; }

private:
    void separate() {
        if (text_.size() > 1) text_ += ',';
    }

    std::string text_ = "{";
};

}  // namespace holdfast::pg

#endif
