# Speeds up builds for developers: a compiler cache and a fast linker, if they are installed.
# Neither changes the result. Included before the project's targets.

# The cache also hits from a clone in another directory: paths below the source are hashed relative
# to it, and the directory of the build is not hashed.
if(TUBED_QUICK_BUILD AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TUBED_CCACHE ccache DOC "The compiler cache of TUBED_QUICK_BUILD; optional")
  if(TUBED_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${TUBED_CCACHE})
    set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
endif()

# mold is the fastest; clang finds lld as `lld` only if it is of the compiler's own release.
if(TUBED_QUICK_BUILD)
  include(CheckLinkerFlag)
  foreach(linker IN ITEMS mold lld)
    check_linker_flag(CXX -fuse-ld=${linker} TUBED_LINKS_WITH_${linker})
    if(TUBED_LINKS_WITH_${linker})
      add_link_options(-fuse-ld=${linker})
      break()
    endif()
  endforeach()
endif()
