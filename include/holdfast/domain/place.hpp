#ifndef HOLDFAST_DOMAIN_PLACE_HPP
#define HOLDFAST_DOMAIN_PLACE_HPP

#include "holdfast/domain/resource_name.hpp"

#include <compare>
#include <cstdint>
#include <utility>

namespace holdfast::domain {

/// One run of one node. Drawn by the database when the node starts, never drawn twice.
enum class node_id : std::int64_t {};

/// Where a waiter stands in the queue for a resource, and which of its requests stands there.
class place {
public:
    place(resource_name resource, std::int64_t number, std::int64_t attachment)
        : resource_(std::move(resource)), number_(number), attachment_(attachment) {}

    const resource_name& resource() const noexcept { return resource_; }
    /// Drawn by the database while the resource's row is locked: the order of arrival. A place that is taken over by a
    /// later request of its owner keeps it.
    std::int64_t number() const noexcept { return number_; }
    /// Drawn anew by each request that takes the place; what an older request does with its attachment changes nothing.
    std::int64_t attachment() const noexcept { return attachment_; }

    friend bool operator==(const place&, const place&) = default;

private:
    resource_name resource_;
    std::int64_t number_;
    std::int64_t attachment_;
};

/// Who should look at its place again, since something about it or about the lease before it has changed.
struct wake {
    node_id node;
    std::int64_t place_number;

    friend auto operator<=>(const wake&, const wake&) = default;
};

}  // namespace holdfast::domain

#endif
