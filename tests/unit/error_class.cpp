#include "holdfast/pg/error_class.hpp"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

namespace {

using holdfast::domain::errc;
using holdfast::pg::classify_failure;
using holdfast::store::command_kind;

struct expectation {
    const char* sqlstate;
    errc write;
    errc look;
};

// The contract's section 5, "Which cause is which".
const expectation table[] = {
    {"", errc::outcome_unknown, errc::unavailable},       // the connection went without a word
    {"08000", errc::outcome_unknown, errc::unavailable},  //
    {"08006", errc::outcome_unknown, errc::unavailable},  //
    {"08P01", errc::outcome_unknown, errc::unavailable},  // PgBouncer gave up
    {"57P01", errc::outcome_unknown, errc::unavailable},  // terminated
    {"57P02", errc::outcome_unknown, errc::unavailable},  // crash
    {"57P03", errc::outcome_unknown, errc::unavailable},  // starting up
    {"55P03", errc::overloaded, errc::overloaded},        // lock_timeout
    {"57014", errc::overloaded, errc::overloaded},        // statement_timeout
    {"40001", errc::overloaded, errc::overloaded},        //
    {"40P01", errc::overloaded, errc::overloaded},        // deadlock
    {"25006", errc::unavailable, errc::unavailable},      // read-only
    {"53100", errc::unavailable, errc::unavailable},      // disk full
    {"53200", errc::unavailable, errc::unavailable},      //
    {"53300", errc::unavailable, errc::unavailable},      // too many connections
    {"42P01", errc::internal, errc::internal},            //
    {"22021", errc::internal, errc::internal},            //
    {"23514", errc::internal, errc::internal},            //
    {"55000", errc::internal, errc::internal},            // not 55P03
    {"40000", errc::internal, errc::internal},            // not 40001
    {"XX000", errc::internal, errc::internal},            //
};

std::ostream& operator<<(std::ostream& out, const expectation& each) {
    return out << "SQLSTATE " << each.sqlstate;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(error_class)

BOOST_DATA_TEST_CASE(what_was_sent_is_told_by_its_sqlstate, boost::unit_test::data::make(table), each) {
    for (const auto write : {command_kind::acquire, command_kind::renew, command_kind::release})
        BOOST_TEST((classify_failure(true, each.sqlstate, write) == each.write));
    BOOST_TEST((classify_failure(true, each.sqlstate, command_kind::look) == each.look));
}

BOOST_DATA_TEST_CASE(what_was_not_sent_has_no_effect, boost::unit_test::data::make(table), each) {
    BOOST_TEST((classify_failure(false, each.sqlstate, command_kind::release) == errc::unavailable));
}

BOOST_AUTO_TEST_CASE(failures_are_told_apart_for_the_operator) {
    using holdfast::pg::failure_class;
    const auto check = [](const char* sqlstate, failure_class wanted) {
        BOOST_TEST((holdfast::pg::failure_class_of(sqlstate) == wanted), sqlstate);
    };
    for (const char* ended : {"", "08006", "57P01", "57P02", "57P03"})
        check(ended, failure_class::connection_lost);
    check("55P03", failure_class::row_locked);
    check("57014", failure_class::timed_out);
    check("40P01", failure_class::deadlock);
    check("40001", failure_class::serialization);
    check("25006", failure_class::read_only);
    check("53300", failure_class::out_of_resources);
    check("23514", failure_class::constraint);
    check("42501", failure_class::refused);
    for (const char* other : {"XX000", "22021", "55000", "40000", "25001"})
        check(other, failure_class::other);
}

BOOST_AUTO_TEST_SUITE_END()
