#include "holdfast/cli/load_report_text.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <iomanip>
#include <sstream>

namespace holdfast::cli {
namespace {

namespace json = boost::json;

/// What a round of several requests counts as; empty where a round is one request.
std::string_view rounds_name(load_kind kind) {
    switch (kind) {
        case load_kind::pairs:
        case load_kind::hot:
            return "pairs_per_second";
        case load_kind::mixed:
            return "rounds_per_second";
        case load_kind::look:
        case load_kind::health:
        case load_kind::wait:  // has figures of its own
            return "";
    }
    return "";
}

double per_second(std::uint64_t count, const load_report& report) {
    return report.measured.count() > 0 ? static_cast<double>(count) / report.measured.count() : 0;
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
        text += server.authority;
    }
    return text;
}

void write_throughput(std::ostream& out, const load_plan& plan, const load_report& report) {
    const std::string_view rounds = rounds_name(plan.kind);
    if (!rounds.empty()) out << rounds << ' ' << per_second(report.rounds, report) << '\n';
    out << "answers_per_second " << per_second(report.answers, report) << '\n';
    if (plan.rounds_per_second > 0)
        out << "rate " << plan.rounds_per_second << ": " << report.started << " started, " << report.never_started
            << " never started\n";
    if (!rounds.empty()) out << "refused " << report.refused << '\n';
}

void write_waiting(std::ostream& out, const load_plan& plan, const load_report& report) {
    const waiting_figures& figures = report.waiting;
    out << to_text(plan.waiting) << ": " << plan.resources << " resources, each request waits for " << plan.wait_seconds
        << " s\n";
    out << "handovers_per_second " << per_second(figures.handovers, report) << '\n';
    out << "grants " << figures.grants << ": " << figures.handovers << " handed over, " << figures.expiries
        << " after a lease had ended\n";
    out << "time_ups " << figures.time_ups << '\n';
    out << "standing " << figures.standing_most << " at most, " << figures.standing_at_end << " at the end\n";
    out << "early " << figures.early << '\n';
    out << "violations " << figures.violations << '\n';
}

void write_latencies(std::ostream& out, const load_report& report) {
    out << std::left << std::setw(18) << "request" << std::right << std::setw(12) << "count" << std::setw(12)
        << "p50 ms" << std::setw(12) << "p99 ms" << std::setw(12) << "p99.9 ms" << std::setw(12) << "max ms" << '\n';
    for (const auto& [kind, latency] : report.latencies)
        out << std::left << std::setw(18) << kind << std::right << std::setw(12) << latency.count()
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

void add_waiting(json::object& text, const load_plan& plan, const load_report& report) {
    const waiting_figures& figures = report.waiting;
    text["waiting"] = to_text(plan.waiting);
    text["resources"] = plan.resources;
    text["handovers_per_second"] = per_second(figures.handovers, report);
    text["grants"] = figures.grants;
    text["handovers"] = figures.handovers;
    text["expiries"] = figures.expiries;
    text["time_ups"] = figures.time_ups;
    text["standing"] = json::object{{"most", figures.standing_most}, {"at_end", figures.standing_at_end}};
    text["early"] = figures.early;
    text["violations"] = figures.violations;
}

}  // namespace

std::string to_table(const load_plan& plan, const load_report& report) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(1) << to_text(plan.kind) << " on " << addresses(plan) << ": "
        << plan.connections << " connections, " << report.measured.count() << " s after " << plan.warmup.count()
        << " s of warming up\n";
    write_throughput(out, plan, report);
    if (plan.kind == load_kind::wait) write_waiting(out, plan, report);
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
                      {"rate", nullptr},
                      {"answers_per_second", per_second(report.answers, report)},
                      {"refused", report.refused},
                      {"errors", errors_in_all(report)},
                      {"errors_by_kind", std::move(errors)},
                      {"latencies_ms", latencies_json(report)},
                      {"idle_connections", json::object{{"opened", report.idle_connections_opened},
                                                        {"kept", report.idle_connections_kept}}}};
    if (const std::string_view rounds = rounds_name(plan.kind); !rounds.empty())
        text.emplace(rounds, per_second(report.rounds, report));
    if (plan.kind == load_kind::wait) add_waiting(text, plan, report);
    if (plan.rounds_per_second > 0) {
        text["rate"] = plan.rounds_per_second;
        text["started"] = report.started;
        text["never_started"] = report.never_started;
    }
    return json::serialize(text) + '\n';
}

}  // namespace holdfast::cli
