#ifndef HOLDFAST_TESTS_SUPPORT_LEASE_RECORDER_HPP
#define HOLDFAST_TESTS_SUPPORT_LEASE_RECORDER_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tests {

/// Writes down every grant that clients saw, with their own monotonic times, and judges afterwards whether any two
/// leases can be told to have overlapped and whether the tokens rose. Calls may come from any thread.
class lease_recorder {
public:
    using clock = std::chrono::steady_clock;
    using moment = clock::time_point;

    /// When a request left the client and when its answer was there.
    struct span {
        moment sent;
        moment received;
    };

    /// What an answer said about a lease.
    struct lease {
        std::string resource;
        std::string owner;
        std::int64_t token = 0;
        std::string acquired_at;  ///< Times of one length and zone: they sort as text.
        std::string expires_at;
        std::chrono::milliseconds expires_in{0};
    };

    /// `acquired: true`.
    void granted(const lease& grant, span when);
    /// A renew answered 200. The lease must have been granted before.
    void renewed(const lease& lease, span when);
    /// A release was sent, whatever came back: from `sent` on nothing is claimed about this lease any more.
    void ended(const std::string& resource, const std::string& owner, moment sent);
    /// An acquire was sent and its outcome is not known: it may have replaced the same owner's lease.
    void uncertain(const std::string& resource, const std::string& owner, moment sent) { ended(resource, owner, sent); }
    /// Anything a client saw that the contract does not allow.
    void outside_the_contract(std::string what);

    std::size_t grants() const;
    /// Everything that was wrong, a line each; empty when all is well.
    std::vector<std::string> violations() const;

private:
    struct entry {
        lease seen;  ///< With the latest end that an answer showed.
        moment sent;
        moment received;              ///< From here on it certainly existed …
        moment certain_until;         ///< … and, unless ended, up to here.
        std::optional<moment> ended;  ///< A release, or another acquire of the same owner, was sent.
    };

    struct record {
        std::vector<entry> grants;                             ///< In the order in which clients saw them.
        std::map<std::string, std::vector<std::size_t>> open;  ///< By owner, those that have not ended.
        std::map<std::int64_t, std::size_t> by_token;
    };
    class later_grants;

    static void end_all(record& record, const std::string& owner, moment sent);
    static moment certain_end(const entry& grant);
    static void judge_pair(const entry& first, const entry& second, std::vector<std::string>& wrong);
    static void judge_order(const std::vector<entry>& grants, std::vector<std::string>& wrong);
    static void judge_overlap(const std::vector<entry>& grants, std::vector<std::string>& wrong);

    mutable std::mutex mutex_;
    std::map<std::string, record> by_resource_;
    std::vector<std::string> outside_;
};

}  // namespace holdfast::tests

#endif
