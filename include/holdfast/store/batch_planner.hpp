#ifndef HOLDFAST_STORE_BATCH_PLANNER_HPP
#define HOLDFAST_STORE_BATCH_PLANNER_HPP

// Decides which waiting commands form the next statement. Pure: no threads, no clock, no I/O.

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::store {

enum class command_kind { acquire, renew, release, look };

inline constexpr std::size_t command_kinds = 4;

/// Names a waiting command; grows with arrival.
using ticket = std::uint64_t;

/// Waiting commands, at most `waiting_max`. Rules:
///   * a batch holds commands of one kind, at most `rows_max`, sorted by the bytes of their resources;
///   * the kind of the oldest command that may run comes first, so nothing waits without end;
///   * of the writes (acquire, renew, release) to one resource one at a time is under way, in order of arrival, across
///     kinds and batches: a statement cannot write a row twice, and a node need not fight itself for a row lock;
///   * looks neither write nor lock: they pass writes, and several for one resource may share a batch.
/// `Entry` is a handle that is cheap to copy.
template <class Entry>
class batch_planner {
public:
    struct item {
        store::ticket ticket;
        command_kind kind;
        std::string resource;
        Entry entry;
        store::ticket sealed = 0;  ///< Set when taken: whatever has a lower ticket was waiting by then.
    };
    using batch = std::vector<item>;

    batch_planner(std::size_t waiting_max, std::size_t rows_max)
        : waiting_max_(waiting_max),
          rows_max_(rows_max),
          ready_{line(&memory_), line(&memory_), line(&memory_), line(&memory_)},
          lines_(&memory_),
          places_(&memory_) {
        assert(waiting_max > 0 && rows_max > 0);
    }

    /// Nothing when full.
    std::optional<ticket> push(command_kind kind, std::string resource, Entry entry) {
        if (size() >= waiting_max_) return std::nullopt;
        const ticket arrival = next_ticket_++;
        enqueue(item{arrival, kind, std::move(resource), std::move(entry)});
        return arrival;
    }

    /// The next batch, empty when nothing may run. Writes in it hold their resources until finish() or put_back().
    batch take() {
        batch taken;
        const auto oldest = oldest_kind();
        if (!oldest) return taken;
        auto& ready = ready_[*oldest];
        while (!ready.empty() && taken.size() < rows_max_) {
            auto first = ready.begin();
            places_.erase(first->first);
            taken.push_back(std::move(first->second));
            taken.back().sealed = next_ticket_;
            ready.erase(first);
        }
        std::sort(taken.begin(), taken.end(),
                  [](const item& left, const item& right) { return left.resource < right.resource; });
        return taken;
    }

    /// A batch that was taken but not sent waits again, each command in its old place. May exceed `waiting_max`.
    void put_back(batch taken) {
        for (item& each : taken)
            make_ready(std::move(each));
    }

    /// The write that held `resource` has ended: the next one in line may run.
    void finish(const std::string& resource) {
        const auto line = lines_.find(resource);
        assert(line != lines_.end());
        if (line->second.empty()) {
            lines_.erase(line);
            return;
        }
        auto next = line->second.extract(line->second.begin());
        places_.erase(next.key());
        make_ready(std::move(next.mapped()));
    }

    /// Takes out a command that still waits. Nothing when it was taken already (or never came).
    std::optional<Entry> withdraw(ticket arrival) {
        const auto found = places_.find(arrival);
        if (found == places_.end()) return std::nullopt;
        const place where = std::move(found->second);
        places_.erase(found);
        if (where.behind) return withdraw_from_line(lines_.at(where.resource), arrival);
        auto node = ready_[index(where.kind)].extract(arrival);
        Entry entry = std::move(node.mapped().entry);
        if (where.kind != command_kind::look) finish(where.resource);
        return entry;
    }

    /// Those who wait behind the write which holds `resource`, and were waiting before it was sealed, follow it as long
    /// as `answer(entry)` is true, in order of arrival: these are taken out. The first that is not ends it, so that
    /// everybody behind it meets what it will have done.
    template <class Answer>
    void follow(const std::string& resource, store::ticket sealed, Answer answer) {
        auto& line = lines_.at(resource);
        while (!line.empty() && line.begin()->first < sealed && answer(line.begin()->second.entry)) {
            places_.erase(line.begin()->first);
            line.erase(line.begin());
        }
    }

    /// A write that was taken is about to be tried anew: the later moment counts.
    void seal_again(item& taken) const noexcept { taken.sealed = next_ticket_; }

    /// Takes out everything that waits behind the write which holds `resource`.
    std::vector<Entry> take_line(const std::string& resource) {
        std::vector<Entry> entries;
        auto& line = lines_.at(resource);
        for (auto& [arrival, each] : line) {
            places_.erase(arrival);
            entries.push_back(std::move(each.entry));
        }
        line.clear();
        return entries;
    }

    /// Takes out everything that waits. Resources held by batches under way stay held.
    std::vector<Entry> take_all() {
        std::vector<Entry> entries;
        for (auto& [resource, line] : lines_) {
            for (auto& [arrival, each] : line)
                entries.push_back(std::move(each.entry));
            line.clear();
        }
        for (auto& ready : ready_) {
            for (auto& [arrival, each] : ready) {
                if (each.kind != command_kind::look) lines_.erase(each.resource);
                entries.push_back(std::move(each.entry));
            }
            ready.clear();
        }
        places_.clear();
        return entries;
    }

    /// Commands that wait, whether or not they may run.
    std::size_t size() const noexcept { return places_.size(); }
    /// How many rows take() would return.
    std::size_t ready() const noexcept {
        const auto kind = oldest_kind();
        return kind ? std::min(ready_[*kind].size(), rows_max_) : 0;
    }

private:
    struct place {
        command_kind kind;
        bool behind;  ///< In a line behind another write, not ready.
        std::string resource;
    };
    using line = std::pmr::map<ticket, item>;

    static std::size_t index(command_kind kind) noexcept { return static_cast<std::size_t>(kind); }

    void enqueue(item each) {
        if (each.kind == command_kind::look) return make_ready(std::move(each));
        const auto [line, free] = lines_.try_emplace(each.resource);
        if (free) return make_ready(std::move(each));
        places_.emplace(each.ticket, place{each.kind, true, each.resource});
        const ticket arrival = each.ticket;
        line->second.emplace(arrival, std::move(each));
    }

    void make_ready(item each) {
        places_.insert_or_assign(each.ticket, place{each.kind, false, each.resource});
        auto& ready = ready_[index(each.kind)];
        const ticket arrival = each.ticket;
        ready.emplace(arrival, std::move(each));
    }

    static std::optional<Entry> withdraw_from_line(line& line, ticket arrival) {
        auto node = line.extract(arrival);
        return std::move(node.mapped().entry);
    }

    std::optional<std::size_t> oldest_kind() const noexcept {
        std::optional<std::size_t> oldest;
        for (std::size_t kind = 0; kind < command_kinds; ++kind) {
            if (ready_[kind].empty()) continue;
            if (!oldest || ready_[kind].begin()->first < ready_[*oldest].begin()->first) oldest = kind;
        }
        return oldest;
    }

    std::size_t waiting_max_;
    std::size_t rows_max_;
    ticket next_ticket_ = 1;
    std::pmr::unsynchronized_pool_resource memory_;  ///< Nodes of the maps: each command needs three of them.
    std::array<line, command_kinds> ready_;          ///< May run now, by kind and arrival.
    /// Resources with a write ready or under way, and who waits behind it.
    std::pmr::unordered_map<std::string, line> lines_;
    std::pmr::unordered_map<ticket, place> places_;  ///< Where each waiting command is.
};

}  // namespace holdfast::store

#endif
