#ifndef HOLDFAST_HTTP_WORKSPACE_HPP
#define HOLDFAST_HTTP_WORKSPACE_HPP

#include "holdfast/http/limits.hpp"

#include <boost/beast/core/flat_buffer.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace holdfast::http {

/// The memory that a connection needs while a request is there: what was read and not parsed yet, and the head's
/// fields.
struct workspace {
    boost::beast::flat_buffer buffer{limits::read_buffer_bytes_max};
    std::array<std::byte, 1'024> fields;  ///< Larger heads take more from the heap.
};

/// Workspaces that wait for their next connection, the latest first: it is still in the processor's caches. I/O thread
/// only.
class workspaces {
public:
    std::unique_ptr<workspace> borrow() {
        if (spare_.empty()) return std::make_unique<workspace>();
        auto latest = std::move(spare_.back());
        spare_.pop_back();
        return latest;
    }

    void give_back(std::unique_ptr<workspace> used) {
        used->buffer.clear();
        if (spare_.size() < limits::spare_workspaces_max && used->buffer.capacity() <= limits::spare_buffer_bytes_max)
            spare_.push_back(std::move(used));
    }

private:
    std::vector<std::unique_ptr<workspace>> spare_;
};

/// A workspace for as long as the lease lives. `from` must outlive it.
class workspace_lease {
public:
    explicit workspace_lease(workspaces& from) : from_(from), workspace_(from.borrow()) {}
    ~workspace_lease() { from_.give_back(std::move(workspace_)); }
    workspace_lease(const workspace_lease&) = delete;
    workspace_lease& operator=(const workspace_lease&) = delete;

    workspace& operator*() const noexcept { return *workspace_; }
    workspace* operator->() const noexcept { return workspace_.get(); }

private:
    workspaces& from_;
    std::unique_ptr<workspace> workspace_;
};

}  // namespace holdfast::http

#endif
