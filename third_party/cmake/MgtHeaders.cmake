# Header-only dependencies, found by their header so that a bundle of headers serves as well as a system package.
#
#   mgt_spdlog   spdlog and fmt, used header-only (fmt stays away from LibTorch's own copy: only core/log.cpp sees it)
#   mgt_cli11    CLI11
#   mgt_catch2   Catch2, version 2 or 3
find_path(SPDLOG_INCLUDE_DIR spdlog/spdlog.h REQUIRED)
find_path(FMT_INCLUDE_DIR fmt/format.h REQUIRED)
add_library(mgt_spdlog INTERFACE)
target_include_directories(mgt_spdlog SYSTEM INTERFACE ${SPDLOG_INCLUDE_DIR} ${FMT_INCLUDE_DIR})
target_compile_definitions(mgt_spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)
target_link_libraries(mgt_spdlog INTERFACE Threads::Threads)

find_path(CLI11_INCLUDE_DIR CLI/CLI.hpp REQUIRED)
add_library(mgt_cli11 INTERFACE)
target_include_directories(mgt_cli11 SYSTEM INTERFACE ${CLI11_INCLUDE_DIR})
