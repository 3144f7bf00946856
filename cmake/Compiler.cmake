# How a build for developers is made quicker: a compiler cache and a fast linker, each where it is
# installed. Neither changes what is built. Included before the project's targets.

# The cache hits from a clone in another directory too: paths below the source are hashed relative to
# it, and the directory of the build is not hashed.
if(TUBED_QUICK_BUILD AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TUBED_CCACHE ccache DOC "The compiler cache of TUBED_QUICK_BUILD; optional")
  if(TUBED_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${TUBED_CCACHE})
  endif()
endif()

# mold is the fastest; lld must be of the compiler's own release for clang to find it as `lld`.
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
