// The one header that every test includes: Catch2 of either version, after LibTorch where both are needed (c10 defines
// a macro CHECK), and where the test data lies.
#pragma once

#ifdef CHECK
#undef CHECK
#endif

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace mgt::test {

// Where things lie; in a file of its own (paths.cpp), so that objects do not depend on the place of the clone.
std::string cases();    // the folder of golden numbers and bad inputs
std::string source();   // the source tree
std::string program();  // the built mgt

}  // namespace mgt::test
