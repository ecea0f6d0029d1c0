# LibTorch as imported targets, without find_package(Torch): that one needs a CUDA toolkit for a CUDA build of torch
# and links libtorch_cuda into everything. Here the program links the CPU libraries alone.
#
#   LibTorch::cpu   libtorch_cpu, libc10, headers, and the definitions that c10d's headers need
#
# Looked for in: MGT_TORCH (CMake or environment), CMAKE_PREFIX_PATH, and the prefix that scripts/setup fills.
set(_hints ${MGT_TORCH} $ENV{MGT_TORCH})
if(DEFINED ENV{XDG_CACHE_HOME})
  list(APPEND _hints $ENV{XDG_CACHE_HOME}/mgt/libtorch-2.11.0/torch)
else()
  list(APPEND _hints $ENV{HOME}/.cache/mgt/libtorch-2.11.0/torch)
endif()
find_path(LibTorch_INCLUDE_DIR ATen/core/Tensor.h HINTS ${_hints} PATH_SUFFIXES include torch/include)
get_filename_component(_root "${LibTorch_INCLUDE_DIR}" DIRECTORY)
find_library(LibTorch_CPU_LIBRARY torch_cpu HINTS ${_root}/lib)
find_library(LibTorch_C10_LIBRARY c10 HINTS ${_root}/lib)
if(EXISTS ${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h)
  file(STRINGS ${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h _lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9]+" "." LibTorch_VERSION "${_lines}")
  string(REGEX REPLACE "^\\." "" LibTorch_VERSION "${LibTorch_VERSION}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "run scripts/setup, or give a LibTorch >= 2.11 by MGT_TORCH or CMAKE_PREFIX_PATH")
if(LibTorch_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "LibTorch ${LibTorch_VERSION} at ${_root} is too old: mgt needs 2.11 or later")
endif()

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  set(LibTorch_LIBRARY_DIR ${_root}/lib)
  add_library(LibTorch::c10 SHARED IMPORTED)
  set_target_properties(LibTorch::c10 PROPERTIES IMPORTED_LOCATION ${LibTorch_C10_LIBRARY})
  add_library(LibTorch::cpu SHARED IMPORTED)
  set_target_properties(LibTorch::cpu PROPERTIES IMPORTED_LOCATION ${LibTorch_CPU_LIBRARY})
  target_include_directories(LibTorch::cpu SYSTEM INTERFACE
    ${LibTorch_INCLUDE_DIR} ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include)
  target_compile_definitions(LibTorch::cpu INTERFACE USE_DISTRIBUTED USE_C10D_GLOO AT_PER_OPERATOR_HEADERS)
  target_link_libraries(LibTorch::cpu INTERFACE LibTorch::c10)
endif()
