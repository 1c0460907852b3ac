#ifndef HOLDFAST_BENCH_RIVAL_RUN_HPP
#define HOLDFAST_BENCH_RIVAL_RUN_HPP

#include "rival_client.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace holdfast::rivals {

using client_maker = std::function<std::unique_ptr<rival_client>(const rival_load& load, std::size_t number)>;

/// Opens plan.connections clients at plan.servers.front(), then lets each do one pair after the other for the warm-up
/// and the measured time, in one I/O loop on the calling thread, as `holdfast bench` does it. Nothing when the server
/// cannot be reached.
std::optional<cli::load_report> run_rival(const cli::load_plan& plan, const client_maker& make);

}  // namespace holdfast::rivals

#endif
