#ifndef HOLDFAST_TESTS_SUPPORT_LEASE_STORE_CONFORMANCE_HPP
#define HOLDFAST_TESTS_SUPPORT_LEASE_STORE_CONFORMANCE_HPP

// The rules of the contract that every store keeps, whatever it is made of. A suite runs them all with
//     HOLDFAST_LEASE_STORE_CONFORMANCE()
// after it has defined make_store_under_test(), which returns a std::unique_ptr<store_under_test>.

#include "holdfast/store/lease_store.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>

namespace holdfast::tests {

// Short ways to make validated values. They throw for what is not valid: a test's own mistake.
domain::resource_name resource(const std::string& text);
domain::owner_name owner(const std::string& text);
domain::ttl seconds(std::int64_t count);
domain::fencing_token token(std::int64_t number);
domain::idempotency_key key(const std::string& text);

/// A store and the time it lives in. Asks one command at a time and waits for the answer.
class store_under_test {
public:
    virtual ~store_under_test() = default;

    virtual store::lease_store& store() = 0;
    /// On which the store answers. Run by the calls below.
    virtual boost::asio::io_context& context() = 0;
    /// Lets this much time pass by the clock that judges leases.
    virtual void pass(std::chrono::milliseconds length) = 0;

    domain::result<domain::acquire_outcome> acquire(domain::acquire_command command);
    domain::result<domain::renew_outcome> renew(domain::renew_command command);
    domain::result<domain::release_result> release(domain::release_command command);
    domain::result<domain::look_outcome> look(domain::look_command command);

    /// Requires that it is granted. An empty `key_text` is no key.
    domain::lock must_acquire(const std::string& name, const std::string& who, std::int64_t ttl_seconds,
                              const std::string& key_text = "");
    /// Requires that it is refused; how long until one may ask again.
    std::chrono::milliseconds must_be_refused(const std::string& name, const std::string& who);
    bool is_held(const std::string& name);

    /// What each command may take.
    std::chrono::milliseconds budget{5'000};
};

}  // namespace holdfast::tests

// clang-format off
#define HOLDFAST_LEASE_STORE_RULES(RULE)                                     \
    RULE(grants_a_free_lock_for_exactly_the_ttl)                             \
    RULE(refuses_what_another_holds)                                         \
    RULE(says_when_to_ask_again)                                             \
    RULE(grants_after_expiry_to_another_owner)                               \
    RULE(grants_again_to_the_holder_under_a_greater_token)                   \
    RULE(tokens_grow_over_release_and_expiry)                                \
    RULE(repeats_the_grant_for_the_same_owner_and_key)                       \
    RULE(shows_a_repeated_grant_as_it_is_now)                                \
    RULE(makes_a_new_grant_for_another_key_or_none)                          \
    RULE(a_grant_without_key_clears_the_stored_key)                          \
    RULE(the_key_of_an_ended_grant_makes_a_new_one)                          \
    RULE(another_owner_under_the_same_key_is_refused)                        \
    RULE(renew_moves_the_end_and_keeps_the_rest)                             \
    RULE(renew_may_shorten)                                                  \
    RULE(renew_refuses_other_owners_and_other_tokens)                        \
    RULE(renew_never_revives)                                                \
    RULE(release_frees_at_once)                                              \
    RULE(release_refuses_other_owners_and_other_tokens)                      \
    RULE(release_of_nothing_is_not_found)                                    \
    RULE(look_shows_the_lock_or_nothing)                                     \
    RULE(resources_are_told_apart_byte_for_byte)                             \
    RULE(names_of_every_kind_survive)                                        \
    RULE(longest_names_and_ttl)                                              \
    RULE(sql_in_a_name_is_a_name)
// clang-format on

namespace holdfast::tests::conformance {
#define HOLDFAST_DECLARE_RULE(name) void name(store_under_test& store);
HOLDFAST_LEASE_STORE_RULES(HOLDFAST_DECLARE_RULE)
#undef HOLDFAST_DECLARE_RULE
}  // namespace holdfast::tests::conformance

#define HOLDFAST_LEASE_STORE_CASE(name)             \
    BOOST_AUTO_TEST_CASE(name) {                    \
        const auto store = make_store_under_test(); \
        holdfast::tests::conformance::name(*store); \
    }

/// The suite defines make_store_under_test() before.
#define HOLDFAST_LEASE_STORE_CONFORMANCE() HOLDFAST_LEASE_STORE_RULES(HOLDFAST_LEASE_STORE_CASE)

#endif
