#ifndef HOLDFAST_HTTP_JSON_WRITER_HPP
#define HOLDFAST_HTTP_JSON_WRITER_HPP

// The JSON of the answers, written without a document in between.

#include "holdfast/domain/lock.hpp"
#include "holdfast/service/acquire_answer.hpp"

#include <string>
#include <string_view>

namespace holdfast::http {

/// Appends `text`, which must be UTF-8, as a JSON string with its quotes.
void append_json_string(std::string& json, std::string_view text);

/// LOCK of the contract.
std::string lock_json(const domain::lock& lock);
/// `{"acquired":true,"lock":LOCK}`, and `"waited_ms":N` behind them for a request that asked to wait.
std::string granted_json(const service::grant& grant);
/// `{"acquired":false,"resource":R,"retry_after_ms":N}`, and `"position":P,"place_kept_ms":M` behind them for a place
/// that is kept.
std::string refused_json(const domain::resource_name& resource, const service::refusal& refusal);

}  // namespace holdfast::http

#endif
