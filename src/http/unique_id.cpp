#include "holdfast/http/unique_id.hpp"

#include <boost/uuid/uuid_io.hpp>

namespace holdfast::http {

std::string unique_ids::make() {
    return boost::uuids::to_string(generator_());
}

}  // namespace holdfast::http
