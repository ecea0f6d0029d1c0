# ccache, where there is one, so that a fresh clone builds from what an earlier one compiled. Included before any target.
#
# Paths below the source folder are made relative, so that the clone's place does not matter. The precompiled header
# needs the sloppiness here and -fpch-preprocess, which mgt_use_torch gives (ccache's manual, "Precompiled headers").
find_program(MGT_CCACHE ccache)
mark_as_advanced(MGT_CCACHE)
if(MGT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_ABSSTDERR=true
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${MGT_CCACHE})
endif()
