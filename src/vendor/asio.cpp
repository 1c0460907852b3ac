// The one translation unit that compiles Asio's non-template code.
#include <boost/asio/impl/src.hpp>
