#ifndef HOLDFAST_APP_PROCESS_FIGURES_HPP
#define HOLDFAST_APP_PROCESS_FIGURES_HPP

namespace holdfast::app {

/// What Linux says about this process, in the units that Prometheus asks for. 0 where it does not say.
struct process_figures {
    double cpu_seconds = 0;         ///< User and system time so far.
    double resident_bytes = 0;      ///< Physical memory now.
    double open_descriptors = 0;    ///< Now.
    double descriptors_max = 0;     ///< The soft limit.
    double start_time_seconds = 0;  ///< Unix time.
};

/// Reads /proc; never throws.
process_figures read_process_figures() noexcept;

}  // namespace holdfast::app

#endif
