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

/// `queue`: any command on a waiting line (store/wait_queue.hpp). `announce`: words for other nodes.
enum class command_kind { acquire, renew, release, look, queue, announce };

inline constexpr std::size_t command_kinds = 6;

/// Whether commands of this kind write to one resource: these run in order of arrival.
constexpr bool is_write(command_kind kind) noexcept {
    return kind != command_kind::look && kind != command_kind::announce;
}

/// Names a waiting command; grows with arrival.
using ticket = std::uint64_t;

/// Waiting commands, at most `waiting_max`. Rules:
///   * a batch holds commands of one kind, at most `rows_max`, sorted by the bytes of their resources;
///   * the kind of the oldest command that may run comes first, so nothing waits without end;
///   * of the writes to one resource one at a time is under way, in order of arrival, across kinds and batches: a
///     statement cannot write a row twice, and a node need not fight itself for a row lock;
///   * but commands on a waiting line that follow each other in the line of a resource may share a batch: what carries
///     them out works one after the other off;
///   * and a release may share a batch with the acquire right behind it: the lease passes on in one statement. A batch
///     has only such pairs, or none;
///   * looks and announcements neither write nor lock: they pass writes, and several may share a batch.
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
        bool is_apart = false;     ///< A release that is not to share a batch with the acquire behind it.
    };
    using batch = std::vector<item>;

    batch_planner(std::size_t waiting_max, std::size_t rows_max)
        : waiting_max_(waiting_max),
          rows_max_(rows_max),
          ready_{make_ready_lines(std::make_index_sequence<command_kinds>())},
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
        const bool in_pairs = is_of_pair(ready.begin()->second);
        for (auto each = ready.begin(); each != ready.end() && taken.size() + in_pairs < rows_max_;) {
            if (is_of_pair(each->second) != in_pairs) {
                ++each;
                continue;
            }
            places_.erase(each->first);
            taken.push_back(std::move(each->second));
            taken.back().sealed = next_ticket_;
            each = ready.erase(each);
            if (in_pairs || taken.back().kind == command_kind::queue) take_along(taken);
        }
        std::sort(taken.begin(), taken.end(), [](const item& left, const item& right) {
            return left.resource != right.resource ? left.resource < right.resource : left.ticket < right.ticket;
        });
        return taken;
    }

    /// Those who stand right behind the last one of `taken`, a write, and may share its batch join it, up to the bound
    /// of a batch. They hold the resource too: finish() once for each.
    void take_along(batch& taken) {
        resource_line& line = lines_.at(taken.back().resource);
        while (taken.size() < rows_max_ && !line.behind.empty() &&
               may_share(taken.back(), line.behind.begin()->second)) {
            auto next = line.behind.extract(line.behind.begin());
            places_.erase(next.key());
            taken.push_back(std::move(next.mapped()));
            taken.back().sealed = next_ticket_;
            ++line.holders;
        }
    }

    /// A batch that was taken but not sent waits again, each command in its old place. May exceed `waiting_max`.
    void put_back(batch taken) {
        // From the last to the first: of those that hold a resource together, the first is the one that may run.
        for (auto each = taken.rbegin(); each != taken.rend(); ++each) {
            const auto line = lines_.find(each->resource);
            if (is_write(each->kind) && line->second.holders > 1) {
                --line->second.holders;
                stand_behind(line->second, std::move(*each));
            } else {
                make_ready(std::move(*each));
            }
        }
    }

    /// A write that held `resource` has ended: if it was the only one, the next in line may run.
    void finish(const std::string& resource) {
        const auto line = lines_.find(resource);
        assert(line != lines_.end());
        if (--line->second.holders > 0) return;
        if (line->second.behind.empty()) {
            lines_.erase(line);
            return;
        }
        auto next = line->second.behind.extract(line->second.behind.begin());
        places_.erase(next.key());
        line->second.holders = 1;
        make_ready(std::move(next.mapped()));
    }

    /// Takes out a command that still waits. Nothing when it was taken already (or never came).
    std::optional<Entry> withdraw(ticket arrival) {
        const auto found = places_.find(arrival);
        if (found == places_.end()) return std::nullopt;
        const place where = std::move(found->second);
        places_.erase(found);
        if (where.behind) return withdraw_from_line(lines_.at(where.resource).behind, arrival);
        auto node = ready_[index(where.kind)].extract(arrival);
        Entry entry = std::move(node.mapped().entry);
        if (is_write(where.kind)) finish(where.resource);
        return entry;
    }

    /// Those who wait behind the write which holds `resource`, and were waiting before it was sealed, follow it as long
    /// as `answer(entry)` is true, in order of arrival: these are taken out. The first that is not ends it, so that
    /// everybody behind it meets what it will have done.
    template <class Answer>
    void follow(const std::string& resource, store::ticket sealed, Answer answer) {
        auto& line = lines_.at(resource).behind;
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
        auto& line = lines_.at(resource).behind;
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
            for (auto& [arrival, each] : line.behind)
                entries.push_back(std::move(each.entry));
            line.behind.clear();
        }
        for (auto& ready : ready_) {
            for (auto& [arrival, each] : ready) {
                if (is_write(each.kind)) lines_.erase(each.resource);
                entries.push_back(std::move(each.entry));
            }
            ready.clear();
        }
        places_.clear();
        return entries;
    }

    /// Commands that wait, whether or not they may run.
    std::size_t size() const noexcept { return places_.size(); }
    /// How many rows take() would return, or more.
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

    /// A resource with a write ready or under way.
    struct resource_line {
        using allocator_type = std::pmr::polymorphic_allocator<std::byte>;
        explicit resource_line(const allocator_type& memory) : behind(memory) {}

        std::size_t holders = 1;  ///< More than one only where commands were taken together.
        line behind;              ///< Who waits behind them.
    };

    template <std::size_t... Kinds>
    std::array<line, command_kinds> make_ready_lines(std::index_sequence<Kinds...>) {
        return {((void)Kinds, line(&memory_))...};
    }

    /// Whether `next`, which stands right behind `first`, may be carried out together with it.
    static bool may_share(const item& first, const item& next) noexcept {
        if (first.kind == command_kind::release) return !first.is_apart && next.kind == command_kind::acquire;
        return first.kind == command_kind::queue && next.kind == command_kind::queue;
    }

    bool is_of_pair(const item& ready) const {
        if (ready.kind != command_kind::release || rows_max_ < 2) return false;
        const line& behind = lines_.at(ready.resource).behind;
        return !behind.empty() && may_share(ready, behind.begin()->second);
    }

    static std::size_t index(command_kind kind) noexcept { return static_cast<std::size_t>(kind); }

    void enqueue(item each) {
        if (!is_write(each.kind)) return make_ready(std::move(each));
        const auto [line, free] = lines_.try_emplace(each.resource);
        if (free) return make_ready(std::move(each));
        stand_behind(line->second, std::move(each));
    }

    void stand_behind(resource_line& line, item each) {
        places_.insert_or_assign(each.ticket, place{each.kind, true, each.resource});
        const ticket arrival = each.ticket;
        line.behind.emplace(arrival, std::move(each));
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
    std::pmr::unordered_map<std::string, resource_line> lines_;
    std::pmr::unordered_map<ticket, place> places_;  ///< Where each waiting command is.
};

}  // namespace holdfast::store

#endif
