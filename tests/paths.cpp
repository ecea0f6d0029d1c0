#include <string>

namespace mgt::test {

std::string cases() { return MGT_SOURCE "/tests/cases"; }
std::string source() { return MGT_SOURCE; }
std::string program() { return MGT_PROGRAM; }

}  // namespace mgt::test
