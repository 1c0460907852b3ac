#ifndef HOLDFAST_TESTS_SUPPORT_LINEARIZABILITY_HPP
#define HOLDFAST_TESTS_SUPPORT_LINEARIZABILITY_HPP

// Whether a history of operations on one resource can be explained by a single lock that served them one after the
// other, each at a moment between its call and its return (sections 2 to 4 of the contract).
//
// The lock, with its time: free, or held by (owner, token, key, acquired_at, end) while the clock is before the end.
//   acquire  free, ended or the owner's own: a new grant with a greater token, stamped by the clock, for exactly the
//            TTL; the owner's own live lease under the same key: that lease as it is; else refused with what is left
//   renew    the owner's own live lease, under the token that is named: its end becomes clock + TTL; else not found, or
//            forbidden; release likewise frees it
//   look     the live lease, or not found
// An operation whose outcome is not known may have taken effect, once, at any moment until it is final.
//
// The search. Answers are gone through in the order of their returns, with the set of all states in which the lock may
// be ("just in time": an operation is carried out only when one that returns now needs it; before its return it must
// be). Operations that change nothing are carried out as soon as a state explains them: nothing is lost by that.
// Three things keep the set small: the exact times that grants and renews carry, the order of the tokens, and that
// operations of unknown outcome are used only where the rest cannot be explained without (first as few as possible;
// when that finds no explanation, all ways).
//
// Sound: what is found is an explanation, and "illegal" is said only after all ways have been tried. Every
// inexactness is on the side of the history:
//   * The stamp of a grant or renew was read while its row was locked; others see it when it commits, at any moment
//     from the stamp to the return. Conditions are held against the stamp, not the commit.
//   * A release has no stamp: it was judged at some moment after its call and after the stamp before it.
//   * The lease of an unknown grant or renew is a range of moments, until an answer shows it exactly.
//   * A state counts from the earliest moment at which it can have begun, although the one before counts until it was
//     left.
//   * A store may stamp its own grant anew before it answers: others may have seen it under the earlier stamp.
// What it cannot see, therefore: a look that misses a change which was stamped but not yet answered; a renew that was
// stamped before the end and committed after it, between two looks; an answer that is wrong by less than the
// uncertainty of an unknown operation; and whatever nobody asked for (a wrong end that no answer shows).

#include "support/lock_history.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::tests {

enum class history_verdict {
    legal,      ///< An explanation was found.
    illegal,    ///< There is none.
    undecided,  ///< None was found within the bounds of the search.
};

struct history_judgement {
    history_verdict verdict = history_verdict::legal;
    std::string why;             ///< Of all but `legal`: the first answer without explanation, and what led to it.
    std::size_t unknowns = 0;    ///< Operations of unknown outcome that the explanation made use of.
    std::size_t states_max = 0;  ///< The most states at one time.
};

/// The lock is free at the beginning. Clocks may differ by `skew_us`.
history_judgement judge_history(const std::vector<lock_call>& calls, std::int64_t skew_us = 0);

}  // namespace holdfast::tests

#endif
