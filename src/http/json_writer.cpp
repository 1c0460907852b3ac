#include "holdfast/http/json_writer.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>

namespace holdfast::http {
namespace {

void append_lock(std::string& json, const domain::lock& lock) {
    json += "{\"resource\":";
    append_json_string(json, lock.resource().text());
    json += ",\"owner\":";
    append_json_string(json, lock.owner().text());
    json += ",\"acquired_at\":\"";
    json += domain::to_rfc3339(lock.acquired_at());
    json += "\",\"expires_at\":\"";
    json += domain::to_rfc3339(lock.expires_at());
    json += "\",\"expires_in_ms\":";
    json += std::to_string(lock.expires_in().count());
    json += ",\"fencing_token\":";
    json += std::to_string(lock.fencing_token().number());
    json += '}';
}

}  // namespace

void append_json_string(std::string& json, std::string_view text) {
    // Names seldom need an escape, and the serializer takes twenty times as long.
    const bool plain = std::all_of(text.begin(), text.end(), [](char each) {
        return static_cast<unsigned char>(each) >= 0x20 && each != '"' && each != '\\';
    });
    if (plain) {
        json += '"';
        json += text;
        json += '"';
        return;
    }
    json += boost::json::serialize(boost::json::string_view(text.data(), text.size()));
}

std::string lock_json(const domain::lock& lock) {
    std::string json;
    append_lock(json, lock);
    return json;
}

std::string granted_json(const service::grant& grant) {
    std::string json;
    json.reserve(190 + grant.lock.resource().text().size() + grant.lock.owner().text().size());
    json += "{\"acquired\":true,\"lock\":";
    append_lock(json, grant.lock);
    if (grant.waited) json += ",\"waited_ms\":" + std::to_string(grant.waited->count());
    json += '}';
    return json;
}

std::string refused_json(const domain::resource_name& resource, const service::refusal& refusal) {
    std::string json = "{\"acquired\":false,\"resource\":";
    append_json_string(json, resource.text());
    json += ",\"retry_after_ms\":" + std::to_string(refusal.retry_after.count());
    if (refusal.place) {
        json += ",\"position\":" + std::to_string(refusal.place->position);
        json += ",\"place_kept_ms\":" + std::to_string(refusal.place->kept_for.count());
    }
    json += '}';
    return json;
}

}  // namespace holdfast::http
