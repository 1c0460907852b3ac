#define BOOST_TEST_MODULE holdfast
#include <boost/test/unit_test.hpp>
