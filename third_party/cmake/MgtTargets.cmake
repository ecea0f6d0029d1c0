# How a module of lib/ becomes a target.
#
#   mgt_library(NAME SOURCES ... [TORCH] [LINK mgt_core ...])
#     Target mgt_NAME. Its headers are found as "NAME/header.h" by those who link it and by nobody else, so a wrong
#     include does not compile. TORCH: the sources see LibTorch through the one precompiled header.
#   mgt_entries(NAME)
#     Finds every folder below the caller's with an entry.cpp, adds the folder's sources to mgt_NAME, and generates the
#     table that `mgt::NAME::entries()` returns. Adding a part is adding a folder.

set(MGT_INCLUDE_ROOT ${PROJECT_BINARY_DIR}/include)

# Warnings that are off: designated initializers leave out members on purpose, and GCC 12 sees overlaps and overruns in
# std::string that are not there (GCC bugs 105651 and 105762).
function(mgt_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    -Wno-missing-field-initializers "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds>"
    $<$<BOOL:${MGT_WERROR}>:-Werror>)
  if(MGT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${MGT_SANITIZE} -fno-omit-frame-pointer -g)
    target_link_options(${target} PUBLIC -fsanitize=${MGT_SANITIZE})
  endif()
endfunction()

# The precompiled header stands in one target of its own, which every torch source reuses. Called once, at the top.
# Included by name, and with -fpch-preprocess, ccache can keep it (MgtCompilerCache).
function(mgt_torch_header)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/torch_pch.cpp CONTENT "")
  add_library(mgt_torch_pch STATIC ${PROJECT_BINARY_DIR}/torch_pch.cpp)
  target_link_libraries(mgt_torch_pch PUBLIC LibTorch::cpu)
  target_include_directories(mgt_torch_pch PRIVATE ${PROJECT_SOURCE_DIR}/third_party)
  target_precompile_headers(mgt_torch_pch PRIVATE <torch_pch.h>)
  target_compile_options(mgt_torch_pch PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  mgt_compile_options(mgt_torch_pch)
endfunction()

function(mgt_use_torch target)
  target_link_libraries(${target} PUBLIC LibTorch::cpu)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/third_party)
  target_precompile_headers(${target} REUSE_FROM mgt_torch_pch)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

function(mgt_library name)
  cmake_parse_arguments(arg "TORCH" "" "SOURCES;LINK" ${ARGN})
  add_library(mgt_${name} STATIC ${arg_SOURCES})
  set_target_properties(mgt_${name} PROPERTIES UNITY_BUILD ${MGT_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  file(MAKE_DIRECTORY ${MGT_INCLUDE_ROOT}/${name})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${MGT_INCLUDE_ROOT}/${name}/${name} SYMBOLIC)
  target_include_directories(mgt_${name} PUBLIC ${MGT_INCLUDE_ROOT}/${name})
  target_link_libraries(mgt_${name} PUBLIC ${arg_LINK})
  mgt_compile_options(mgt_${name})
  if(arg_TORCH)
    mgt_use_torch(mgt_${name})
  endif()
endfunction()

function(mgt_entries name)
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/entry.cpp)
  list(SORT found)
  set(declarations "")
  set(rows "")
  foreach(entry ${found})
    get_filename_component(folder ${entry} DIRECTORY)
    get_filename_component(part ${folder} NAME)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
    target_sources(mgt_${name} PRIVATE ${sources})
    string(APPEND declarations "namespace ${part} { extern const Entry entry; }\n")
    string(APPEND rows "      &${part}::entry,\n")
  endforeach()
  set(table ${CMAKE_CURRENT_BINARY_DIR}/${name}_entries.cpp)
  file(CONFIGURE OUTPUT ${table} CONTENT
"#include \"${name}/entry.h\"

namespace mgt::${name} {
${declarations}
const std::vector<const Entry*>& entries() {
  static const std::vector<const Entry*> table = {
${rows}  };
  return table;
}

}  // namespace mgt::${name}
")
  target_sources(mgt_${name} PRIVATE ${table})
endfunction()
