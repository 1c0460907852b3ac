#ifndef HOLDFAST_HTTP_UNIQUE_ID_HPP
#define HOLDFAST_HTTP_UNIQUE_ID_HPP

#include <boost/uuid/random_generator.hpp>

#include <string>

namespace holdfast::http {

/// Makes random UUIDs for request and error ids. They tell apart; they keep no secret. One thread only.
class unique_ids {
public:
    std::string make();

private:
    boost::uuids::random_generator_mt19937 generator_;
};

}  // namespace holdfast::http

#endif
