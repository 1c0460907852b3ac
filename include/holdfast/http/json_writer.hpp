#ifndef HOLDFAST_HTTP_JSON_WRITER_HPP
#define HOLDFAST_HTTP_JSON_WRITER_HPP

// The JSON of the answers, written without a document in between.

#include "holdfast/domain/lock.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace holdfast::http {

/// Appends `text`, which must be UTF-8, as a JSON string with its quotes.
void append_json_string(std::string& json, std::string_view text);

/// LOCK of the contract.
std::string lock_json(const domain::lock& lock);
/// `{"acquired":true,"lock":LOCK}`
std::string granted_json(const domain::lock& lock);
/// `{"acquired":false,"resource":R,"retry_after_ms":N}`
std::string held_json(const domain::resource_name& resource, std::chrono::milliseconds retry_after);

}  // namespace holdfast::http

#endif
