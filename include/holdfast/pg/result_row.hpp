#ifndef HOLDFAST_PG_RESULT_ROW_HPP
#define HOLDFAST_PG_RESULT_ROW_HPP

#include <pqxx/pqxx>

#include <array>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace holdfast::pg {

/// The columns that the queries of leases and of waiting lines answer with; each query has some of them.
enum class column {
    ordinal,
    verdict,
    owner,
    holder,
    acquired_at_us,
    expires_at_us,
    fencing_token,
    stamp_age_us,
    clock_us,
    read_only,
    is_awaited,
    place,
    attachment,
    position,
    wakes,
    handed_place,
    handed_attachment,
    handed_owner
};

/// Where a result has its columns: looked up once a result, since a look-up by name allocates.
class column_places {
public:
    explicit column_places(const pqxx::result& result) {
        constexpr std::array<std::string_view, columns> names{
            "ordinal",       "verdict",      "owner",    "holder",       "acquired_at_us",    "expires_at_us",
            "fencing_token", "stamp_age_us", "clock_us", "read_only",    "is_awaited",        "place",
            "attachment",    "position",     "wakes",    "handed_place", "handed_attachment", "handed_owner"};
        places_.fill(absent);
        for (int place = 0; place < static_cast<int>(result.columns()); ++place)
            for (std::size_t which = 0; which < names.size(); ++which)
                if (names[which] == result.column_name(place)) places_[which] = place;
    }

    /// Throws std::logic_error where the query has no such column.
    int operator[](column which) const {
        const int place = places_[static_cast<std::size_t>(which)];
        if (place == absent) throw std::logic_error("a query lacks a column");
        return place;
    }

private:
    static constexpr int absent = -1;
    static constexpr std::size_t columns = 18;
    std::array<int, columns> places_{};
};

/// One row of a result. Views stay valid as long as the result.
class result_row {
public:
    result_row(const pqxx::row& row, const column_places& places) : row_(row), places_(places) {}

    std::string_view text(column which) const { return row_[places_[which]].c_str(); }

    /// Throws std::logic_error for what is no integer.
    std::int64_t number(column which) const {
        const std::string_view digits = text(which);
        std::int64_t value = 0;
        const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (fault != std::errc() || end != digits.data() + digits.size())
            throw std::logic_error("a query answered with something that is no integer");
        return value;
    }

private:
    const pqxx::row& row_;
    const column_places& places_;
};

}  // namespace holdfast::pg

#endif
