#include "holdfast/http/command_reader.hpp"

#include "holdfast/http/limits.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace holdfast::http;

namespace {

struct reading {
    bool is_json;
    command_members members;
    std::vector<std::string> errors;
};

reading read(std::string_view body, operation meant = operation::renew) {
    reading result;
    field_errors errors;
    result.is_json = read_command(body, members_of(meant), 86400, result.members, errors);
    for (const auto& error : errors.listed())
        result.errors.push_back(error.field + ':' + std::string(code_of(error.fault)));
    return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(command_reader)

BOOST_AUTO_TEST_CASE(reads_all_members_in_any_order) {
    const auto result = read(R"( { "fencing_token" : 7 , "ttl_seconds":30, "owner":" me\u0041 " } )");
    BOOST_TEST(result.is_json);
    BOOST_TEST(result.errors.empty());
    BOOST_TEST(result.members.owner->text() == "meA");
    BOOST_TEST(result.members.ttl->length().count() == 30);
    BOOST_TEST(result.members.fencing_token->number() == 7);
}

BOOST_AUTO_TEST_CASE(optional_members_may_be_absent) {
    const auto result = read(R"({"owner":"me","ttl_seconds":30})");
    BOOST_TEST(result.errors.empty());
    BOOST_TEST(!result.members.fencing_token);
}

BOOST_AUTO_TEST_CASE(each_request_has_its_members) {
    const auto names = [](operation meant) {
        std::string text;
        for (const auto& rule : members_of(meant))
            text += std::string(name_of(rule.which)) + (rule.required ? "! " : "? ");
        return text;
    };
    BOOST_TEST(names(operation::acquire) == "owner! ttl_seconds! wait_seconds? ");
    BOOST_TEST(names(operation::renew) == "owner! ttl_seconds! fencing_token? ");
    BOOST_TEST(names(operation::release) == "owner! fencing_token? ");
    BOOST_TEST(names(operation::leave) == "owner! ");
    BOOST_TEST(names(operation::look).empty());
}

BOOST_AUTO_TEST_CASE(faults_leave_no_member_behind) {
    const auto result = read(R"({"owner":"\n","ttl_seconds":3e1,"fencing_token":-1})");
    BOOST_TEST(result.errors ==
                   (std::vector<std::string>{"owner:invalid", "ttl_seconds:invalid", "fencing_token:out_of_range"}),
               boost::test_tools::per_element());
    BOOST_TEST(!result.members.owner);
    BOOST_TEST(!result.members.ttl);
    BOOST_TEST(!result.members.fencing_token);
}

BOOST_AUTO_TEST_CASE(a_wait_is_an_integer_from_0_to_50) {
    const auto wait = [](const std::string& literal) {
        return read(R"({"owner":"me","ttl_seconds":1,"wait_seconds":)" + literal + "}", operation::acquire);
    };
    BOOST_TEST(wait("0").members.wait->count() == 0);
    BOOST_TEST(wait("50").members.wait->count() == 50);
    BOOST_TEST(!read(R"({"owner":"me","ttl_seconds":1})", operation::acquire).members.wait);
    for (const char* literal : {"-1", "51", "123456789012345678901234567890"})
        BOOST_TEST(wait(literal).errors == std::vector<std::string>{"wait_seconds:out_of_range"},
                   boost::test_tools::per_element());
    for (const char* literal : {"1.0", "1e1", "\"1\"", "true", "null", "[]"})
        BOOST_TEST(wait(literal).errors == std::vector<std::string>{"wait_seconds:invalid"},
                   boost::test_tools::per_element());
    BOOST_TEST(read(R"({"owner":"me","ttl_seconds":1,"wait_seconds":1})").errors ==
                   std::vector<std::string>{"wait_seconds:unknown"},
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(text_that_is_no_json_adds_no_errors) {
    for (const char* body :
         {"{", "[", "nul", "{\"owner\":}", "{\"x\":1e99999999999", "{\"e9999999999\":1e99999999999,}"}) {
        const auto result = read(body);
        BOOST_TEST(!result.is_json);
        BOOST_TEST(result.errors.empty());
    }
}

BOOST_AUTO_TEST_CASE(strings_survive_the_second_look_at_huge_exponents) {
    const auto result =
        read(R"({"owner":"1e99999999999\"e99999999999\\","ttl_seconds":1,"x":[1E+99999999999,2e-99999999999]})");
    BOOST_TEST(result.is_json);
    BOOST_TEST(result.members.owner->text() == "1e99999999999\"e99999999999\\");
    BOOST_TEST(result.members.ttl->length().count() == 1);
    BOOST_TEST(result.errors == std::vector<std::string>{"x:unknown"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_deepest_text_that_fits_is_read) {
    const std::string deepest = std::string(limits::json_depth_max, '[') + std::string(limits::json_depth_max, ']');
    BOOST_TEST(deepest.size() == limits::body_bytes_max);
    BOOST_TEST(read(deepest).is_json);
    BOOST_TEST(!read(std::string(limits::body_bytes_max, '[')).is_json);
}

BOOST_AUTO_TEST_SUITE_END()
