#include "holdfast/cli/load_report_text.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <iomanip>
#include <sstream>

namespace holdfast::cli {
namespace {

namespace json = boost::json;

/// The kind of latency whose count is the throughput.
std::string_view throughput_kind(load_kind kind) {
    switch (kind) {
        case load_kind::pairs:
            return "pair";
        case load_kind::look:
            return "look";
        case load_kind::health:
            return "health";
    }
    return "";
}

std::string_view throughput_name(load_kind kind) {
    return kind == load_kind::pairs ? "pairs_per_second" : "answers_per_second";
}

double per_second(const load_plan& plan, const load_report& report) {
    const auto found = report.latencies.find(throughput_kind(plan.kind));
    if (found == report.latencies.end() || report.measured.count() <= 0) return 0;
    return static_cast<double>(found->second.count()) / report.measured.count();
}

double to_ms(std::chrono::microseconds duration) {
    return static_cast<double>(duration.count()) / 1'000.0;
}

std::uint64_t errors_in_all(const load_report& report) {
    std::uint64_t sum = 0;
    for (const auto& [label, count] : report.errors)
        sum += count;
    return sum;
}

std::string addresses(const load_plan& plan) {
    std::string text;
    for (const client::server_url& server : plan.servers) {
        if (!text.empty()) text += ", ";
        text += "http://" + server.authority;
    }
    return text;
}

void write_latencies(std::ostream& out, const load_report& report) {
    out << std::left << std::setw(10) << "request" << std::right << std::setw(12) << "count" << std::setw(12)
        << "p50 ms" << std::setw(12) << "p99 ms" << std::setw(12) << "p99.9 ms" << std::setw(12) << "max ms" << '\n';
    for (const auto& [kind, latency] : report.latencies)
        out << std::left << std::setw(10) << kind << std::right << std::setw(12) << latency.count()
            << std::setprecision(3) << std::setw(12) << to_ms(latency.percentile(0.5)) << std::setw(12)
            << to_ms(latency.percentile(0.99)) << std::setw(12) << to_ms(latency.percentile(0.999)) << std::setw(12)
            << to_ms(latency.highest()) << '\n';
}

json::object latencies_json(const load_report& report) {
    json::object kinds;
    for (const auto& [kind, latency] : report.latencies)
        kinds.emplace(kind, json::object{{"count", latency.count()},
                                         {"p50", to_ms(latency.percentile(0.5))},
                                         {"p99", to_ms(latency.percentile(0.99))},
                                         {"p999", to_ms(latency.percentile(0.999))},
                                         {"max", to_ms(latency.highest())}});
    return kinds;
}

}  // namespace

std::string to_table(const load_plan& plan, const load_report& report) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(1) << to_text(plan.kind) << " on " << addresses(plan) << ": "
        << plan.connections << " connections, " << report.measured.count() << " s after " << plan.warmup.count()
        << " s of warming up\n"
        << throughput_name(plan.kind) << ' ' << per_second(plan, report) << '\n';
    if (plan.kind == load_kind::pairs) out << "refused " << report.refused << '\n';
    if (plan.idle_connections > 0)
        out << "idle connections: " << report.idle_connections_opened << " opened, " << report.idle_connections_kept
            << " still open at the end\n";
    write_latencies(out, report);
    out << "errors " << errors_in_all(report) << '\n';
    for (const auto& [label, count] : report.errors)
        out << "  " << count << "  " << label << '\n';
    return out.str();
}

std::string to_json(const load_plan& plan, const load_report& report) {
    json::object errors;
    for (const auto& [label, count] : report.errors)
        errors.emplace(label, count);
    json::object text{{"mode", to_text(plan.kind)},
                      {"connections", plan.connections},
                      {"seconds", report.measured.count()},
                      {"refused", report.refused},
                      {"errors", errors_in_all(report)},
                      {"errors_by_kind", std::move(errors)},
                      {"latencies_ms", latencies_json(report)},
                      {"idle_connections", json::object{{"opened", report.idle_connections_opened},
                                                        {"kept", report.idle_connections_kept}}}};
    text.emplace(throughput_name(plan.kind), per_second(plan, report));
    return json::serialize(text) + '\n';
}

}  // namespace holdfast::cli
