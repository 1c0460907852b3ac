// docs/openapi.json against the code, in both directions: routes, members of bodies, fields of answers, status codes,
// headers. Each documented status of each operation is produced by one of the cases below, and each case is documented.

#include "holdfast/domain/limits.hpp"
#include "holdfast/http/command_reader.hpp"
#include "holdfast/http/field_errors.hpp"
#include "holdfast/http/limits.hpp"
#include "holdfast/http/problem.hpp"
#include "holdfast/http/router.hpp"

#include "support/http_expect.hpp"
#include "support/http_node.hpp"
#include "support/wait_until.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

namespace {

using namespace holdfast::test;
using holdfast::tests::wait_until;
using namespace std::chrono_literals;
namespace http = holdfast::http;
namespace json = boost::json;
using fault = faulty_store::fault;
using names = std::set<std::string>;

const std::string mine = R"({"owner":"me","ttl_seconds":30})";
const std::string yours = R"({"owner":"you","ttl_seconds":30})";
const std::string waiting = R"({"owner":"me","ttl_seconds":30,"wait_seconds":1})";

http::server_settings impatient() {
    http::server_settings settings;
    settings.header_deadline = 50ms;
    settings.body_deadline = 50ms;
    return settings;
}

std::string text_of(const json::value& value) {
    return std::string(value.as_string());
}

struct fixture {
    http_node node{impatient()};
    const json::value document = json_of(node.request("GET", "/openapi.json"));

    const json::value& resolve(const json::value& value) const {
        const json::value* reference = value.is_object() ? value.as_object().if_contains("$ref") : nullptr;
        return reference ? document.at_pointer(text_of(*reference).substr(1)) : value;
    }
    const json::value& schema(std::string_view name) const {
        return document.at("components").at("schemas").at(json::string_view(name.data(), name.size()));
    }
    const json::object& operation(const http::route& route) const {
        std::string method(route.method);
        std::transform(method.begin(), method.end(), method.begin(), [](unsigned char c) { return std::tolower(c); });
        return document.at("paths").at(std::string(route.pattern)).at(method).as_object();
    }

    static names keys_of(const json::value& object) {
        names keys;
        for (const auto& member : object.as_object())
            keys.emplace(member.key());
        return keys;
    }
    static names texts_of(const json::value& array) {
        names texts;
        for (const auto& entry : array.as_array())
            texts.insert(text_of(entry));
        return texts;
    }

    /// All members that are required, none that is not described; and so on within them.
    void check_against(const json::value& schema_or_reference, const json::value& value) const {
        const json::object& wanted = resolve(schema_or_reference).as_object();
        if (const auto* choices = wanted.if_contains("oneOf")) {
            const bool acquired = value.at("acquired").as_bool();
            check_against(choices->as_array().at(acquired ? 0 : 1), value);
            return;
        }
        const auto* type = wanted.if_contains("type");
        if (type && *type == "array")
            for (const auto& entry : value.as_array())
                check_against(wanted.at("items"), entry);
        if (!type || *type != "object" || !wanted.contains("properties")) return;
        BOOST_TEST(!wanted.at("additionalProperties").as_bool());
        const names known = keys_of(wanted.at("properties"));
        const names found = keys_of(value);
        BOOST_TEST(std::includes(known.begin(), known.end(), found.begin(), found.end()), value);
        const names required = texts_of(wanted.at("required"));
        BOOST_TEST(std::includes(found.begin(), found.end(), required.begin(), required.end()), value);
        for (const auto& member : value.as_object())
            check_against(wanted.at("properties").at(member.key()), member.value());
    }
};

// ---- the shared table of cases

struct status_case {
    http::route route;
    int status;
    std::function<http_answer(http_node&)> produce;
};

std::string target_of(const http::route& route) {
    std::string target(route.pattern);
    const auto brace = target.find('{');
    if (brace == std::string::npos) return target;
    const auto length = target.find('}') - brace + 1;
    return target.replace(brace, length, route.meant == http::operation::problem_type ? "not-found" : "a");
}

bool asks_the_store(http::operation meant) {
    switch (meant) {
        case http::operation::acquire:
        case http::operation::look:
        case http::operation::release:
        case http::operation::renew:
        case http::operation::leave:
            return true;
        case http::operation::health:
        case http::operation::readiness:
        case http::operation::openapi:
        case http::operation::problem_type:
        case http::operation::metrics:
            return false;
    }
    return false;
}

std::string body_for(http::operation meant, const std::string& owner = "me") {
    const std::string name = "{\"owner\":\"" + owner + "\"";
    switch (meant) {
        case http::operation::acquire:
        case http::operation::renew:
            return name + ",\"ttl_seconds\":30}";
        case http::operation::release:
        case http::operation::leave:
            return name + "}";
        case http::operation::look:
        case http::operation::health:
        case http::operation::readiness:
        case http::operation::openapi:
        case http::operation::problem_type:
        case http::operation::metrics:
            return {};
    }
    return {};
}

http_answer send_bytes(http_node& node, const std::string& bytes) {
    auto client = node.connect();
    client.send(bytes);
    return client.read();
}

/// What goes wrong in the same way for every operation.
void add_common_cases(const http::route& route, std::vector<status_case>& cases) {
    const std::string method(route.method);
    const std::string target = target_of(route);
    const std::string line = method + " " + target + " HTTP/1.1\r\n";
    cases.push_back({route, 400, [=](auto& node) { return send_bytes(node, line + "\r\n"); }});
    cases.push_back({route, 408, [=](auto& node) { return send_bytes(node, line + "Host: x\r\n"); }});
    cases.push_back({route, 413, [=](auto& node) { return node.request(method, target, std::string(20'000, ' ')); }});
    cases.push_back(
        {route, 414, [=](auto& node) { return node.request(method, target + "?" + std::string(9'000, 'q')); }});
    cases.push_back({route, 417, [=](auto& node) { return node.request(method, target, "", {{"Expect", "x"}}); }});
    cases.push_back({route, 431, [=](auto& node) {
                         return node.request(method, target, "", {{"X", std::string(17'000, 'x')}});
                     }});
}

void add_store_cases(const http::route& route, std::vector<status_case>& cases) {
    const std::string method(route.method);
    const std::string target = target_of(route);
    const std::string body = body_for(route.meant);
    const auto fail_with = [=](fault kind) {
        return [=](http_node& node) {
            node.fail_with(kind);
            auto answer = node.request(method, target, body);
            node.fail_with(fault::none);
            return answer;
        };
    };
    std::string invalid = target;
    invalid.replace(invalid.find("/a"), 2, "/%00");
    cases.push_back({route, 422, [=](auto& node) { return node.request(method, invalid, body); }});
    cases.push_back({route, 500, fail_with(fault::exception)});
    for (const fault kind : {fault::unavailable, fault::overloaded})
        cases.push_back({route, 503, fail_with(kind)});
    if (route.meant != http::operation::look) {
        cases.push_back({route, 503, fail_with(fault::outcome_unknown)});
        cases.push_back({route, 415, [=](auto& node) {
                             return node.request(method, target, body, {{"Content-Type", "text/plain"}});
                         }});
    }
}

/// The answers of the operation itself. Each begins without a lock on `a`.
void add_own_cases(const http::route& route, std::vector<status_case>& cases) {
    const std::string method(route.method);
    const std::string target = target_of(route);
    const std::string body = body_for(route.meant);
    const auto plain = [=](http_node& node) { return node.request(method, target, body); };
    const auto held_by = [=](const std::string& holder) {
        return [=](http_node& node) {
            node.request("POST", "/locks/a", holder);
            return node.request(method, target, body);
        };
    };
    switch (route.meant) {
        case http::operation::acquire:
            cases.push_back({route, 200, plain});
            cases.push_back({route, 200, held_by(yours)});
            cases.push_back({route, 429, [=](http_node& node) {
                                 node.request("POST", "/locks/a", yours);
                                 node.queue().places_max = 0;
                                 auto answer = node.request(method, target, waiting);
                                 node.queue().places_max = 1'000;
                                 return answer;
                             }});
            cases.push_back({route, 200, [=](http_node& node) { return node.request(method, target, waiting); }});
            cases.push_back({route, 200, [=](http_node& node) {
                                 node.request("POST", "/locks/a", yours);
                                 return node.request(method, target, waiting);
                             }});
            return;
        case http::operation::look:
            cases.push_back({route, 200, held_by(mine)});
            cases.push_back({route, 404, plain});
            return;
        case http::operation::renew:
        case http::operation::release:
            cases.push_back({route, route.meant == http::operation::renew ? 200 : 204, held_by(mine)});
            cases.push_back({route, 403, held_by(yours)});
            cases.push_back({route, 404, plain});
            return;
        case http::operation::leave:
            cases.push_back({route, 204, [=](http_node& node) {
                                 node.request("POST", "/locks/a", yours);
                                 auto waiter = node.connect();
                                 waiter.send(http_client::format("POST", "/locks/a", waiting));
                                 wait_until(5s, [&] { return node.queue().living() == 1; });
                                 return node.request(method, target, body);
                             }});
            cases.push_back({route, 404, plain});
            return;
        case http::operation::readiness:
            cases.push_back({route, 200, plain});
            cases.push_back({route, 503, [=](http_node& node) {
                                 node.readiness().is_ready = false;
                                 auto answer = node.request(method, target);
                                 node.readiness().is_ready = true;
                                 return answer;
                             }});
            return;
        case http::operation::problem_type:
            cases.push_back({route, 200, plain});
            cases.push_back({route, 404, [=](http_node& node) { return node.request(method, "/problems/none"); }});
            return;
        case http::operation::health:
        case http::operation::openapi:
        case http::operation::metrics:
            cases.push_back({route, 200, plain});
            return;
    }
}

std::vector<status_case> all_cases() {
    std::vector<status_case> cases;
    for (const http::route& route : http::routes()) {
        add_own_cases(route, cases);
        add_common_cases(route, cases);
        if (asks_the_store(route.meant)) add_store_cases(route, cases);
    }
    return cases;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(openapi, fixture)

BOOST_AUTO_TEST_CASE(document_and_router_know_the_same_routes) {
    names documented;
    for (const auto& path : document.at("paths").as_object())
        for (const auto& key : keys_of(path.value())) {
            if (key == "parameters") continue;
            std::string method = key;
            std::transform(method.begin(), method.end(), method.begin(),
                           [](unsigned char c) { return std::toupper(c); });
            documented.insert(method + ' ' + std::string(path.key()));
        }
    names routed;
    for (const http::route& route : http::routes())
        routed.insert(std::string(route.method) + ' ' + std::string(route.pattern));
    BOOST_TEST(documented == routed, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(document_and_codec_know_the_same_members) {
    for (const http::route& route : http::routes()) {
        BOOST_TEST_INFO_SCOPE(route.method << ' ' << route.pattern);
        const auto rules = http::members_of(route.meant);
        const auto* body = operation(route).if_contains("requestBody");
        BOOST_TEST((body != nullptr) == !rules.empty());
        if (!body) continue;
        const json::value& wanted = resolve(body->at("content").at("application/json").at("schema"));
        names accepted;
        names required;
        for (const auto& rule : rules) {
            accepted.emplace(http::name_of(rule.which));
            if (rule.required) required.emplace(http::name_of(rule.which));
        }
        BOOST_TEST(keys_of(wanted.at("properties")) == accepted, boost::test_tools::per_element());
        BOOST_TEST(texts_of(wanted.at("required")) == required, boost::test_tools::per_element());
        BOOST_TEST(!wanted.at("additionalProperties").as_bool());
    }
}

BOOST_AUTO_TEST_CASE(document_and_code_have_the_same_bounds) {
    namespace limits = holdfast::domain::limits;
    BOOST_TEST(schema("TtlSeconds").at("minimum").as_int64() == 1);
    BOOST_TEST(schema("TtlSeconds").at("maximum").as_int64() == limits::ttl_seconds_max_default);
    BOOST_TEST(schema("WaitSeconds").at("minimum").as_int64() == 0);
    BOOST_TEST(schema("WaitSeconds").at("maximum").as_int64() == limits::wait_seconds_max);
    BOOST_TEST(schema("NamedToken").at("minimum").as_int64() == 0);
    BOOST_TEST(schema("NamedToken").at("maximum").as_int64() == limits::fencing_token_max);
    BOOST_TEST(schema("ValidationProblem").at("properties").at("errors").at("maxItems").as_int64() ==
               static_cast<std::int64_t>(http::limits::field_errors_listed_max));
    const auto& parameters = document.at("components").at("parameters");
    BOOST_TEST(parameters.at("Resource").at("schema").at("maxLength").as_int64() ==
               static_cast<std::int64_t>(limits::resource_bytes_max));
    BOOST_TEST(parameters.at("IdempotencyKey").at("schema").at("maxLength").as_int64() ==
               static_cast<std::int64_t>(limits::idempotency_key_bytes_max));
}

BOOST_AUTO_TEST_CASE(document_and_code_know_the_same_error_codes) {
    using holdfast::domain::field_fault;
    names codes;
    for (const auto fault : {field_fault::required, field_fault::invalid, field_fault::too_long,
                             field_fault::out_of_range, field_fault::unknown, field_fault::repeated})
        codes.emplace(http::code_of(fault));
    BOOST_TEST(texts_of(schema("FieldError").at("properties").at("code").at("enum")) == codes,
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(lock_has_exactly_the_documented_fields) {
    node.request("POST", "/locks/a", mine);
    const json::value lock = json_of(node.request("GET", "/locks/a"));
    BOOST_TEST(keys_of(lock) == keys_of(schema("Lock").at("properties")), boost::test_tools::per_element());
    BOOST_TEST(keys_of(lock) == texts_of(schema("Lock").at("required")), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_documented_status_is_produced_and_every_produced_one_documented) {
    std::set<std::pair<std::string, int>> produced;
    for (const status_case& each : all_cases()) {
        const std::string title = std::string(each.route.method) + ' ' + std::string(each.route.pattern);
        BOOST_TEST_INFO_SCOPE(title << ' ' << each.status);
        node.advance(24h);
        const http_answer answer = each.produce(node);
        BOOST_TEST(answer.status == each.status, answer.body);
        produced.emplace(title, answer.status);
        const auto* documented =
            operation(each.route).at("responses").as_object().if_contains(std::to_string(answer.status));
        BOOST_TEST((documented != nullptr));
        if (!documented) continue;
        const json::object& response = resolve(*documented).as_object();
        for (const auto& header : keys_of(response.at("headers")))
            BOOST_TEST(answer.has(header), header);
        BOOST_TEST(answer.has("Retry-After") == keys_of(response.at("headers")).contains("Retry-After"));
        BOOST_TEST(answer.body.empty() == !response.contains("content"));
        if (!response.contains("content")) continue;
        const json::object& content = response.at("content").as_object();
        BOOST_TEST(content.contains(answer.header("Content-Type")));
        if (!answer.header("Content-Type").starts_with("text/"))
            check_against(content.begin()->value().at("schema"), json_of(answer));
    }
    for (const http::route& route : http::routes())
        for (const auto& status : keys_of(operation(route).at("responses"))) {
            const std::string title = std::string(route.method) + ' ' + std::string(route.pattern);
            BOOST_TEST(produced.contains({title, std::stoi(status)}),
                       title << ' ' << status << " is documented, not produced");
        }
}

BOOST_AUTO_TEST_CASE(every_problem_name_stands_in_the_document) {
    const auto body = node.request("GET", "/openapi.json").body;
    for (const auto& type : http::problem_types())
        // 404 and 405 of unknown paths and methods belong to no operation; the introduction tells of 405.
        if (type.id != http::problem::method_not_allowed)
            BOOST_TEST(body.find('`' + std::string(type.name) + '`') != std::string::npos, type.name);
}

BOOST_AUTO_TEST_SUITE_END()
