# yaml-cpp in a bundle of scripts/setup: the static library, where Debian's own file names the shared one.
get_filename_component(_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET yaml-cpp)
  add_library(yaml-cpp STATIC IMPORTED)
  set_target_properties(yaml-cpp PROPERTIES
    IMPORTED_LOCATION "${_prefix}/lib/libyaml-cpp.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_prefix}/include")
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
