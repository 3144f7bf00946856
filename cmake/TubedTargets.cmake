# One library for each folder of src/.

add_library(tubed_options INTERFACE)
target_compile_options(tubed_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  -Wcast-qual $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Wold-style-cast>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
# Assertions name files relative to the tree, independent of the build directory.
target_compile_options(tubed_options INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)
# An access outside of a container, or to an empty optional, ends the process in place of reading other memory.
target_compile_definitions(tubed_options INTERFACE _GLIBCXX_ASSERTIONS)
if(TUBED_WERROR)
  target_compile_options(tubed_options INTERFACE -Werror)
endif()
if(TUBED_SANITIZE)
  target_compile_options(tubed_options INTERFACE -fsanitize=${TUBED_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(tubed_options INTERFACE -fsanitize=${TUBED_SANITIZE})
endif()
if(TUBED_NOT_SANITIZED)
  target_compile_options(tubed_options INTERFACE -fno-sanitize=${TUBED_NOT_SANITIZED})
endif()
if(TUBED_PLANTS)
  target_compile_definitions(tubed_options INTERFACE TUBED_WITH_PLANTS)
endif()

# tubed_optimize_less(target LEVEL): compiles `target` with LEVEL, -O0 or -O1, in a build for developers, where
# optimizing it takes longer than all its runs. A library that a measured program links has -O1 at least: the linker
# keeps one copy of an inline function, possibly from this library, for the whole program.
function(tubed_optimize_less target level)
  if(TUBED_QUICK_BUILD)
    target_compile_options(${target} PRIVATE ${level})
  endif()
endfunction()

# tubed_seldom(target): compiles code that runs seldom with -O1 in such a build, and with -O0 if it has a sanitizer.
function(tubed_seldom target)
  if(TUBED_SANITIZE)
    tubed_optimize_less(${target} -O0)
  else()
    tubed_optimize_less(${target} -O1)
  endif()
endfunction()

# tubed_small(target): builds code that runs seldom for size, each file by itself. The headers of
# command lines and settings generate much code whose speed does not matter.
function(tubed_small target)
  tubed_seldom(${target})
  if(NOT TUBED_QUICK_BUILD)
    target_compile_options(${target} PRIVATE -Os -fno-lto)
  endif()
endfunction()

# The compiler's collection of garbage waits until 512 MiB are in use.
if((TUBED_QUICK_BUILD OR TUBED_QUICK_COMPILE) AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(--param=ggc-min-expand=500 --param=ggc-min-heapsize=524288)
endif()
# The headers of other libraries that most folders include are precompiled.
if(TUBED_QUICK_COMPILE)
  set(CMAKE_PCH_WARN_INVALID OFF)  # a library with other options includes the headers
  file(WRITE ${PROJECT_BINARY_DIR}/precompiled.cc "")
  add_library(tubed_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
  target_link_libraries(tubed_precompiled PRIVATE tubed_options fmt::fmt)
  target_precompile_headers(tubed_precompiled PRIVATE <algorithm> <array> <chrono> <cstdint> <deque> <functional> <map>
    <memory> <optional> <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)
endif()

# tubed_library(folder SOURCES… DEPENDS…): the library tubed_<folder>.
function(tubed_library folder)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(tubed_${folder} STATIC ${arg_SOURCES})
  target_include_directories(tubed_${folder} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tubed_${folder} PUBLIC ${arg_DEPENDS} PRIVATE tubed_options)
  if(TUBED_QUICK_COMPILE AND arg_SOURCES MATCHES "[.]cc")
    target_precompile_headers(tubed_${folder} REUSE_FROM tubed_precompiled)
  endif()
endfunction()
