#include "holdfast/store/batch_planner.hpp"

#include <boost/test/unit_test.hpp>

#include <random>
#include <set>

namespace {

using holdfast::store::command_kind;
using planner = holdfast::store::batch_planner<int>;

std::vector<int> entries(const planner::batch& batch) {
    std::vector<int> result;
    for (const auto& each : batch)
        result.push_back(each.entry);
    return result;
}

void finish(planner& planner, const planner::batch& batch) {
    for (const auto& each : batch)
        if (holdfast::store::is_write(each.kind)) planner.finish(each.resource);
}

bool is_first_of_pair(const planner::batch& batch, std::size_t row) {
    return batch[row].kind == command_kind::release && row + 1 < batch.size() &&
           batch[row + 1].resource == batch[row].resource;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(batch_planner)

BOOST_AUTO_TEST_CASE(an_empty_planner_has_no_batch) {
    planner planner(10, 4);
    BOOST_TEST(planner.ready() == 0u);
    BOOST_TEST(planner.take().empty());
}

BOOST_AUTO_TEST_CASE(a_batch_has_one_kind_and_is_sorted_by_bytes) {
    planner planner(10, 4);
    planner.push(command_kind::acquire, "b", 1);
    planner.push(command_kind::release, "x", 2);
    planner.push(command_kind::acquire, "\xc3\xa4", 3);
    planner.push(command_kind::acquire, "B", 4);

    BOOST_TEST(entries(planner.take()) == (std::vector<int>{4, 1, 3}));
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{2}));
    BOOST_TEST(planner.size() == 0u);
}

BOOST_AUTO_TEST_CASE(the_kind_of_the_oldest_command_comes_first) {
    planner planner(10, 4);
    planner.push(command_kind::look, "a", 1);
    planner.push(command_kind::acquire, "b", 2);
    planner.push(command_kind::look, "c", 3);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{1, 3}));
    planner.push(command_kind::look, "d", 4);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{2}));
}

BOOST_AUTO_TEST_CASE(a_batch_is_bounded_and_takes_the_oldest) {
    planner planner(10, 2);
    planner.push(command_kind::acquire, "c", 1);
    planner.push(command_kind::acquire, "b", 2);
    planner.push(command_kind::acquire, "a", 3);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{2, 1}));
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{3}));
}

BOOST_AUTO_TEST_CASE(is_full_at_its_bound) {
    planner planner(2, 2);
    BOOST_TEST(planner.push(command_kind::acquire, "a", 1).has_value());
    BOOST_TEST(planner.push(command_kind::acquire, "a", 2).has_value());
    BOOST_TEST(!planner.push(command_kind::look, "b", 3).has_value());
    planner.take();
    BOOST_TEST(planner.push(command_kind::look, "b", 3).has_value());
}

BOOST_AUTO_TEST_CASE(writes_to_one_resource_run_one_by_one_in_order_across_kinds) {
    planner planner(10, 4);
    planner.push(command_kind::acquire, "a", 1);
    planner.push(command_kind::renew, "a", 2);
    planner.push(command_kind::acquire, "a", 3);

    const auto first = planner.take();
    BOOST_TEST(entries(first) == (std::vector<int>{1}));
    BOOST_TEST(planner.take().empty());
    finish(planner, first);
    const auto second = planner.take();
    BOOST_TEST(entries(second) == (std::vector<int>{2}));
    finish(planner, second);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{3}));
}

BOOST_AUTO_TEST_CASE(a_release_shares_a_batch_with_the_acquire_right_behind_it) {
    planner planner(20, 8);
    planner.push(command_kind::release, "b", 1);
    planner.push(command_kind::acquire, "b", 2);
    planner.push(command_kind::acquire, "b", 3);
    planner.push(command_kind::release, "a", 4);
    planner.push(command_kind::acquire, "a", 5);
    planner.push(command_kind::release, "alone", 6);
    planner.push(command_kind::release, "renewed", 7);
    planner.push(command_kind::renew, "renewed", 8);
    planner.push(command_kind::acquire, "renewed", 9);

    const auto pairs = planner.take();
    BOOST_TEST(entries(pairs) == (std::vector<int>{4, 5, 1, 2}));
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{6, 7}));  // pairs and others do not mix
    BOOST_TEST(planner.take().empty());
    planner.finish("b");
    BOOST_TEST(planner.take().empty());  // the other half of the pair is still under way
    planner.finish("b");
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{3}));
}

BOOST_AUTO_TEST_CASE(the_oldest_release_decides_whether_pairs_go_first) {
    planner planner(20, 8);
    planner.push(command_kind::release, "alone", 1);
    planner.push(command_kind::release, "b", 2);
    planner.push(command_kind::acquire, "b", 3);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{1}));
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{2, 3}));
}

BOOST_AUTO_TEST_CASE(a_batch_is_bounded_also_in_pairs) {
    planner planner(20, 3);
    for (int each = 0; each < 4; ++each)
        planner.push(each % 2 ? command_kind::acquire : command_kind::release, each < 2 ? "a" : "b", each);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{0, 1}));
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{2, 3}));

    holdfast::store::batch_planner<int> narrow(20, 1);
    narrow.push(command_kind::release, "a", 1);
    narrow.push(command_kind::acquire, "a", 2);
    BOOST_TEST(entries(narrow.take()) == (std::vector<int>{1}));
}

BOOST_AUTO_TEST_CASE(a_pair_that_was_put_back_apart_comes_one_after_the_other) {
    planner planner(20, 8);
    planner.push(command_kind::release, "a", 1);
    planner.push(command_kind::acquire, "a", 2);
    auto pair = planner.take();
    planner.push(command_kind::acquire, "a", 3);
    for (auto& each : pair)
        each.is_apart = true;
    planner.put_back(std::move(pair));
    for (int next = 1; next <= 3; ++next) {
        const auto one = planner.take();
        BOOST_TEST(entries(one) == (std::vector<int>{next}));
        finish(planner, one);
    }
    BOOST_TEST(planner.size() == 0u);
}

BOOST_AUTO_TEST_CASE(half_a_pair_that_is_put_back_waits_for_nobody) {
    for (const std::size_t dropped : {0u, 1u}) {
        planner planner(20, 8);
        planner.push(command_kind::release, "a", 1);
        planner.push(command_kind::acquire, "a", 2);
        auto pair = planner.take();
        planner.finish("a");
        planner.put_back({pair[1 - dropped]});
        const auto left = planner.take();
        BOOST_TEST(entries(left) == (std::vector<int>{dropped == 0 ? 2 : 1}));
        finish(planner, left);
        BOOST_TEST(planner.size() == 0u);
        BOOST_TEST(planner.take().empty());
    }
}

BOOST_AUTO_TEST_CASE(looks_pass_writes_and_share_a_batch) {
    planner planner(10, 4);
    planner.push(command_kind::acquire, "a", 1);
    const auto write = planner.take();
    planner.push(command_kind::look, "a", 2);
    planner.push(command_kind::look, "a", 3);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{2, 3}));
}

BOOST_AUTO_TEST_CASE(what_was_put_back_keeps_its_place) {
    planner planner(10, 1);
    planner.push(command_kind::acquire, "a", 1);
    planner.push(command_kind::acquire, "a", 2);
    planner.push(command_kind::acquire, "b", 3);
    planner.put_back(planner.take());
    BOOST_TEST(planner.size() == 3u);
    const auto first = planner.take();
    BOOST_TEST(entries(first) == (std::vector<int>{1}));
    finish(planner, first);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{2}));
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{3}));
}

BOOST_AUTO_TEST_CASE(withdraws_what_waits_and_nothing_else) {
    planner planner(10, 4);
    const auto ready = planner.push(command_kind::acquire, "a", 1);
    const auto behind = planner.push(command_kind::acquire, "a", 2);
    planner.push(command_kind::acquire, "a", 3);
    const auto look = planner.push(command_kind::look, "a", 4);

    BOOST_TEST(planner.withdraw(*behind).value() == 2);
    BOOST_TEST(planner.withdraw(*look).value() == 4);
    BOOST_TEST(planner.withdraw(*ready).value() == 1);
    BOOST_TEST(!planner.withdraw(*ready).has_value());
    const auto next = planner.take();  // who stood behind the withdrawn one
    BOOST_TEST(entries(next) == (std::vector<int>{3}));
    BOOST_TEST(!planner.withdraw(next.front().ticket).has_value());
}

BOOST_AUTO_TEST_CASE(the_line_behind_a_write_can_be_taken_out) {
    planner planner(10, 4);
    planner.push(command_kind::acquire, "a", 1);
    const auto first = planner.take();
    planner.push(command_kind::acquire, "a", 2);
    planner.push(command_kind::release, "a", 3);
    planner.push(command_kind::acquire, "b", 4);
    BOOST_TEST(planner.take_line("a") == (std::vector<int>{2, 3}));
    BOOST_TEST(planner.size() == 1u);
    finish(planner, first);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{4}));
}

BOOST_AUTO_TEST_CASE(everything_can_be_taken_out_while_a_batch_is_under_way) {
    planner planner(10, 1);
    planner.push(command_kind::acquire, "a", 1);
    const auto first = planner.take();
    planner.push(command_kind::acquire, "a", 2);
    planner.push(command_kind::acquire, "b", 3);
    planner.push(command_kind::acquire, "b", 4);
    planner.push(command_kind::look, "c", 5);
    BOOST_TEST(planner.take_all().size() == 4u);
    BOOST_TEST(planner.size() == 0u);
    planner.push(command_kind::acquire, "a", 6);
    BOOST_TEST(planner.take().empty());  // "a" is still under way
    finish(planner, first);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{6}));
}

BOOST_AUTO_TEST_CASE(those_who_waited_when_the_batch_was_taken_may_follow_in_order_until_the_first_who_cannot) {
    planner planner(10, 4);
    planner.push(command_kind::acquire, "a", 1);
    planner.push(command_kind::acquire, "a", 2);
    planner.push(command_kind::release, "a", 3);
    planner.push(command_kind::acquire, "a", 4);
    const auto leader = planner.take();
    planner.push(command_kind::acquire, "a", 5);  // came too late to follow

    std::vector<int> asked;
    planner.follow("a", leader.front().sealed, [&](int entry) {
        asked.push_back(entry);
        return entry == 2;
    });
    BOOST_TEST(asked == (std::vector<int>{2, 3}));
    BOOST_TEST(planner.size() == 3u);

    finish(planner, leader);
    const auto next = planner.take();
    BOOST_TEST(entries(next) == (std::vector<int>{3, 4}));
    asked.clear();
    planner.follow("a", next.back().sealed, [&](int entry) {
        asked.push_back(entry);
        return true;
    });
    BOOST_TEST(asked == (std::vector<int>{5}));
    finish(planner, next);
    BOOST_TEST(planner.ready() == 0u);
}

BOOST_AUTO_TEST_CASE(nobody_follows_who_came_after_the_batch_was_taken_unless_it_is_sealed_again) {
    planner planner(10, 4);
    planner.push(command_kind::acquire, "a", 1);
    auto leader = planner.take();
    planner.push(command_kind::acquire, "a", 2);
    const auto everybody = [](int) { return true; };

    planner.follow("a", leader.front().sealed, everybody);
    BOOST_TEST(planner.size() == 1u);
    planner.seal_again(leader.front());
    planner.follow("a", leader.front().sealed, everybody);
    BOOST_TEST(planner.size() == 0u);
}

BOOST_AUTO_TEST_CASE(says_how_many_rows_the_next_batch_has) {
    planner planner(10, 2);
    BOOST_TEST(planner.ready() == 0u);
    for (const char* resource : {"a", "b", "b", "c"})
        planner.push(command_kind::acquire, resource, 0);
    BOOST_TEST(planner.ready() == 2u);
    planner.take();
    BOOST_TEST(planner.ready() == 1u);
}

BOOST_AUTO_TEST_CASE(under_random_use_nothing_is_lost_overtaken_or_doubled) {
    std::mt19937 random(20'240'601);
    planner planner(200, 7);
    std::vector<planner::batch> under_way;
    std::set<std::string> held;
    std::map<std::string, int> last_write;
    int pushed = 0, ended = 0, withdrawn = 0, pairs = 0;
    std::map<int, holdfast::store::ticket> waiting;
    for (int step = 0; step < 50'000; ++step) {
        const auto choice = random() % 10;
        if (choice < 5) {
            const auto kind = static_cast<command_kind>(random() % 4);
            const auto ticket = planner.push(kind, std::string(1, static_cast<char>('a' + random() % 12)), pushed);
            if (ticket) waiting[pushed++] = *ticket;
        } else if (choice == 5 && !waiting.empty()) {
            const auto any = std::next(waiting.begin(), static_cast<long>(random() % waiting.size()));
            BOOST_REQUIRE(planner.withdraw(any->second).value() == any->first);
            waiting.erase(any);
            ++withdrawn;
        } else if (choice == 6 && !under_way.empty() && random() % 4 == 0) {
            for (auto each = under_way.back().rbegin(); each != under_way.back().rend(); ++each) {
                waiting[each->entry] = each->ticket;
                each->is_apart = random() % 2;
                if (each->kind != command_kind::look) held.erase(each->resource);
                if (each->kind != command_kind::look) last_write[each->resource] = each->entry - 1;
            }
            planner.put_back(std::move(under_way.back()));
            under_way.pop_back();
        } else if (choice < 8) {
            auto batch = planner.take();
            BOOST_REQUIRE(batch.size() <= 7u);
            for (std::size_t row = 0; row < batch.size(); ++row) {
                const auto& each = batch[row];
                const bool second = row % 2 == 1 && is_first_of_pair(batch, row - 1);
                BOOST_REQUIRE(each.kind == (second ? command_kind::acquire : batch.front().kind));
                pairs += second;
                waiting.erase(each.entry);
                if (each.kind == command_kind::look) continue;
                BOOST_REQUIRE(held.insert(each.resource).second != second);
                const auto before = last_write.try_emplace(each.resource, -1).first;
                BOOST_REQUIRE(each.entry > before->second);
                before->second = each.entry;
            }
            if (!batch.empty()) under_way.push_back(std::move(batch));
        } else if (!under_way.empty()) {
            const auto& batch = under_way.front();
            for (std::size_t row = 0; row < batch.size(); ++row) {
                const auto& each = batch[row];
                if (each.kind == command_kind::look || is_first_of_pair(batch, row)) continue;
                planner.follow(each.resource, each.sealed, [&](int entry) {
                    BOOST_REQUIRE(waiting.at(entry) < each.sealed);
                    BOOST_REQUIRE(entry > last_write.at(each.resource));
                    if (random() % 3 == 0) return false;
                    last_write[each.resource] = entry;
                    waiting.erase(entry);
                    ++ended;
                    return true;
                });
            }
            finish(planner, under_way.front());
            for (const auto& each : under_way.front())
                held.erase(each.resource);
            ended += static_cast<int>(under_way.front().size());
            under_way.erase(under_way.begin());
        }
        BOOST_REQUIRE(planner.size() == waiting.size());
    }
    while (planner.ready() || !under_way.empty()) {
        for (const auto& batch : under_way) {
            finish(planner, batch);
            ended += static_cast<int>(batch.size());
        }
        under_way.clear();
        if (auto batch = planner.take(); !batch.empty()) under_way.push_back(std::move(batch));
    }
    BOOST_TEST(ended + withdrawn == pushed);
    BOOST_TEST(pairs > 100);
    BOOST_TEST(planner.size() == 0u);
}

BOOST_AUTO_TEST_CASE(commands_on_one_waiting_line_share_a_batch_in_their_order) {
    planner planner(20, 4);
    planner.push(command_kind::queue, "b", 1);
    planner.push(command_kind::queue, "b", 2);
    planner.push(command_kind::queue, "a", 3);
    planner.push(command_kind::acquire, "b", 4);
    planner.push(command_kind::queue, "b", 5);

    const auto together = planner.take();
    BOOST_TEST(entries(together) == (std::vector<int>{3, 1, 2}));  // 5 stands behind another kind
    BOOST_TEST(planner.take().empty());
    planner.finish("b");
    BOOST_TEST(planner.take().empty());  // one of the two is still under way
    planner.finish("b");
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{4}));
    planner.finish("b");
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{5}));
}

BOOST_AUTO_TEST_CASE(a_batch_is_bounded_also_on_one_waiting_line) {
    planner planner(20, 2);
    for (int each = 1; each <= 5; ++each)
        planner.push(command_kind::queue, "a", each);
    const auto first = planner.take();
    BOOST_TEST(entries(first) == (std::vector<int>{1, 2}));
    finish(planner, first);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{3, 4}));
}

BOOST_AUTO_TEST_CASE(what_shared_a_resource_and_was_put_back_keeps_its_order_and_runs_once_at_a_time) {
    planner planner(20, 8);
    for (int each = 1; each <= 3; ++each)
        planner.push(command_kind::queue, "a", each);
    auto together = planner.take();
    planner.push(command_kind::release, "a", 4);
    planner.put_back(std::move(together));
    BOOST_TEST(planner.size() == 4u);

    const auto again = planner.take();
    BOOST_TEST(entries(again) == (std::vector<int>{1, 2, 3}));
    BOOST_TEST(planner.take().empty());
    finish(planner, again);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{4}));
}

BOOST_AUTO_TEST_CASE(what_is_put_back_waits_for_those_who_still_hold_its_resource) {
    planner planner(20, 8);
    for (int each = 1; each <= 3; ++each)
        planner.push(command_kind::queue, "a", each);
    auto together = planner.take();
    planner::batch back{together[1], together[2]};
    planner.put_back(std::move(back));
    BOOST_TEST(planner.take().empty());
    planner.finish("a");
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{2, 3}));
}

BOOST_AUTO_TEST_CASE(announcements_pass_writes_and_stand_in_no_line) {
    planner planner(20, 8);
    planner.push(command_kind::announce, "", 1);
    planner.push(command_kind::announce, "", 2);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{1, 2}));
    planner.push(command_kind::announce, "", 3);
    BOOST_TEST(entries(planner.take()) == (std::vector<int>{3}));
}

BOOST_AUTO_TEST_SUITE_END()
