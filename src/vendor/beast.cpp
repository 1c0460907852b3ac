// The one translation unit that compiles Beast's non-template code.
#include <boost/beast/src.hpp>
