#ifndef HOLDFAST_TESTS_SUPPORT_WAIT_QUEUE_CONFORMANCE_HPP
#define HOLDFAST_TESTS_SUPPORT_WAIT_QUEUE_CONFORMANCE_HPP

// The rules of waiting in line that every store::wait_queue keeps together with its store::lease_store. A suite runs
// them all with
//     HOLDFAST_WAIT_QUEUE_CONFORMANCE()
// after it has defined make_queue_under_test(), which returns a std::unique_ptr<queue_under_test>.

#include "holdfast/store/wait_queue.hpp"

#include "support/lease_store_conformance.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tests {

/// One of the nodes that share the leases and lines under test. Asks one command at a time and waits for the answer,
/// and requires that there is one.
class queue_node {
public:
    virtual ~queue_node() = default;

    /// Its leases, and the context that its queue answers on, too.
    virtual store_under_test& leases() = 0;
    virtual store::wait_queue& queue() = 0;
    /// Waits a while until this node has been told to look at this place again, since the last call; false if it is
    /// not.
    virtual bool hears_of(const domain::place& place) = 0;
    /// What a survey says that begins now.
    virtual std::vector<domain::surveyed_place> survey() = 0;

    domain::stand_outcome stand(const std::string& name, const std::string& who, const std::string& key_text = "");
    /// Without waiting.
    domain::stand_outcome ask(const std::string& name, const std::string& who);
    domain::claim_outcome claim(const domain::place& place, const std::string& who, const std::string& key_text = "");
    domain::withdraw_outcome withdraw(const domain::place& place);
    domain::leave_outcome leave(const std::string& name, const std::string& who);
    domain::hand_over_outcome hand_over(const std::string& name);
    domain::queue_release_outcome release(const std::string& name, const std::string& who,
                                          std::optional<domain::fencing_token> token = std::nullopt);
    domain::queue_release_outcome give_back(const domain::lock& lock);

    /// Requires that it stands in line.
    domain::place must_stand(const std::string& name, const std::string& who, const std::string& key_text = "");
    /// Requires that the lock is offered to this place.
    domain::lock must_claim(const domain::place& place, const std::string& who, const std::string& key_text = "");
    /// Requires that it is not; when the lease before it ends.
    std::chrono::milliseconds must_not_be_offered(const domain::place& place, const std::string& who);
    /// Requires that this is this request's place no more.
    void must_be_gone(const domain::place& place, const std::string& who);
    /// Requires that the lock is released; whom that concerns.
    std::vector<domain::wake> must_release(const std::string& name, const std::string& who);
    domain::wake wake_of(const domain::place& place) { return {queue().node().value(), place.number()}; }
};

/// Two nodes over one set of leases and lines.
class queue_under_test {
public:
    /// How many places a resource may have.
    static constexpr std::size_t places_max = 3;

    virtual ~queue_under_test() = default;

    virtual queue_node& here() = 0;
    virtual queue_node& there() = 0;
    /// There is no sign of life any more from the node there, and it is not used any more.
    virtual void kill_there() = 0;
    /// Lets this much time pass by the clock that judges leases, offers, places and nodes.
    virtual void pass(std::chrono::milliseconds length) = 0;
};

}  // namespace holdfast::tests

// clang-format off
#define HOLDFAST_WAIT_QUEUE_RULES(RULE)                                      \
    RULE(a_free_lock_is_granted_at_once)                                     \
    RULE(the_line_is_served_in_order_of_arrival)                             \
    RULE(a_place_tells_its_position_and_when_the_lease_ends)                 \
    RULE(a_release_hands_over_in_its_own_transaction)                        \
    RULE(a_confirmation_keeps_the_token_and_starts_the_lease)                \
    RULE(a_release_judges_before_it_hands_over)                              \
    RULE(nobody_overtakes_a_living_waiter)                                   \
    RULE(an_ended_lease_is_handed_over_once)                                 \
    RULE(a_holder_acquires_again_while_others_wait)                          \
    RULE(a_holder_renews_while_others_wait)                                  \
    RULE(an_offer_is_no_lock_yet)                                            \
    RULE(an_offer_that_is_not_confirmed_passes_on)                           \
    RULE(a_late_claim_confirms_nothing)                                      \
    RULE(a_withdrawn_place_keeps_its_order_only)                             \
    RULE(a_kept_place_holds_nobody_back)                                     \
    RULE(a_kept_place_is_taken_over_on_another_node)                         \
    RULE(a_place_is_kept_for_five_seconds)                                   \
    RULE(an_older_request_is_told_and_changes_nothing)                       \
    RULE(asking_again_takes_an_offer_at_once)                                \
    RULE(a_withdrawal_passes_an_offer_on)                                    \
    RULE(leaving_gives_the_place_up)                                         \
    RULE(leaving_passes_an_offer_on)                                         \
    RULE(without_a_place_there_is_nothing_to_leave)                          \
    RULE(a_line_has_so_many_places_kept_ones_counted)                        \
    RULE(what_was_not_delivered_is_given_back)                               \
    RULE(what_was_granted_at_once_is_given_back)                             \
    RULE(a_replayed_grant_is_not_given_back)                                 \
    RULE(a_replayed_grant_is_not_given_back_though_the_lock_was_free)        \
    RULE(a_renewed_grant_is_not_given_back)                                  \
    RULE(another_grant_is_not_given_back)                                    \
    RULE(a_repeated_claim_is_answered_under_its_key)                         \
    RULE(standing_under_the_key_of_a_live_grant_repeats_it)                  \
    RULE(a_dead_nodes_places_are_passed_over_and_kept)                       \
    RULE(wakes_reach_the_node)                                               \
    RULE(a_moved_end_reaches_every_node_that_waits)                          \
    RULE(a_survey_has_the_living_places_of_its_node)
// clang-format on

namespace holdfast::tests::conformance {
#define HOLDFAST_DECLARE_RULE(name) void name(queue_under_test& queues);
HOLDFAST_WAIT_QUEUE_RULES(HOLDFAST_DECLARE_RULE)
#undef HOLDFAST_DECLARE_RULE
}  // namespace holdfast::tests::conformance

#define HOLDFAST_WAIT_QUEUE_CASE(name)               \
    BOOST_AUTO_TEST_CASE(name) {                     \
        const auto queues = make_queue_under_test(); \
        holdfast::tests::conformance::name(*queues); \
    }

/// The suite defines make_queue_under_test() before.
#define HOLDFAST_WAIT_QUEUE_CONFORMANCE() HOLDFAST_WAIT_QUEUE_RULES(HOLDFAST_WAIT_QUEUE_CASE)

#endif
