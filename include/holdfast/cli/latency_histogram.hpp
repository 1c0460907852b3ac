#ifndef HOLDFAST_CLI_LATENCY_HISTOGRAM_HPP
#define HOLDFAST_CLI_LATENCY_HISTOGRAM_HPP

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::cli {

/// Counts durations in buckets that grow with the value (the idea of HdrHistogram, hand-made since no library of ours
/// has it and it is forty lines): 16 KiB however many are recorded, recording is a shift and an increment. A percentile
/// is never below the true one and at most 1.6 % (1 microsecond below 128) above it. Durations above 19 hours count as
/// that.
class latency_histogram {
public:
    using duration = std::chrono::steady_clock::duration;

    void record(duration latency) {
        const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(latency).count();
        const auto value = std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(microseconds, 0)), value_max);
        ++buckets_[bucket_of(value)];
        ++count_;
        highest_ = std::max(highest_, value);
    }

    std::uint64_t count() const noexcept { return count_; }

    /// The longest, exact to the microsecond; zero when nothing was recorded.
    std::chrono::microseconds highest() const noexcept { return to_microseconds(highest_); }

    /// The least recorded duration, rounded up as said above, that at least `share` (0 to 1) of all do not exceed; zero
    /// when nothing was recorded.
    std::chrono::microseconds percentile(double share) const {
        const auto exact_rank = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count_));
        const auto rank = std::max<std::uint64_t>(static_cast<std::uint64_t>(exact_rank), 1);
        std::uint64_t seen = 0;
        for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
            seen += buckets_[bucket];
            if (seen >= rank) return to_microseconds(std::min(greatest_in(bucket), highest_));
        }
        return to_microseconds(highest_);
    }

private:
    static constexpr unsigned precision_bits = 6;  // 64 buckets to each doubling
    static constexpr unsigned value_bits = 36;
    static constexpr std::uint64_t value_max = (std::uint64_t{1} << value_bits) - 1;

    /// Values below 128 have a bucket each; then the leading bit picks the group and the next six the bucket in it.
    static constexpr std::size_t bucket_of(std::uint64_t value) {
        const int spare_bits = static_cast<int>(std::bit_width(value)) - static_cast<int>(precision_bits) - 1;
        if (spare_bits <= 0) return static_cast<std::size_t>(value);
        const auto shift = static_cast<unsigned>(spare_bits);
        return (std::size_t{shift} << precision_bits) + static_cast<std::size_t>(value >> shift);
    }

    static constexpr std::uint64_t greatest_in(std::size_t bucket) {
        if (bucket < (std::size_t{2} << precision_bits)) return bucket;
        const std::size_t shift = (bucket >> precision_bits) - 1;
        return ((bucket - (shift << precision_bits) + 1) << shift) - 1;
    }

    static std::chrono::microseconds to_microseconds(std::uint64_t value) {
        return std::chrono::microseconds(static_cast<std::int64_t>(value));
    }

    std::vector<std::uint64_t> buckets_ = std::vector<std::uint64_t>(bucket_of(value_max) + 1);
    std::uint64_t count_ = 0;
    std::uint64_t highest_ = 0;
};

}  // namespace holdfast::cli

#endif
