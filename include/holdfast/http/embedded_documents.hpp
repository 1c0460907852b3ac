#ifndef HOLDFAST_HTTP_EMBEDDED_DOCUMENTS_HPP
#define HOLDFAST_HTTP_EMBEDDED_DOCUMENTS_HPP

#include <span>
#include <string_view>

namespace holdfast::http {

/// One file of the source tree, compiled in by cmake/embed.cmake.
struct embedded_file {
    std::string_view path;
    std::string_view text;
};

/// The documents that the node serves (openapi.json), sorted by path.
std::span<const embedded_file> embedded_documents() noexcept;

}  // namespace holdfast::http

#endif
