# Finds libraft, whose core cluster mode is built on (src/cluster/core.c), and sets TUBED_RAFT to its
# version, or to "" if tubed is built without cluster mode. The target is tubed_raft.
#
# Only versions >= 0.22.1 and < 0.23 are accepted: core.c relies on what their sources do. The static
# library is preferred, because tubed uses a small part of the library and needs no package of it
# then.
set(TUBED_CLUSTER AUTO CACHE STRING "Cluster mode: ON, OFF, or AUTO, which is ON if libraft is found")
set_property(CACHE TUBED_CLUSTER PROPERTY STRINGS AUTO ON OFF)
set(TUBED_RAFT_ROOT "" CACHE PATH "Where include/raft.h and lib/libraft.a are; default: the system's")
set(TUBED_RAFT_SOURCE "" CACHE PATH
  "An unpacked source package of libraft, to build its core with assertions and sanitizers for tests")
set(TUBED_RAFT_SANITIZE "${TUBED_SANITIZE}" CACHE STRING
  "The sanitizers of that core; others than TUBED_SANITIZE are quicker than sanitizing everything")

# tubed_raft_version(header variable): the version that a raft.h states, or "".
function(tubed_raft_version header variable)
  set(parts "")
  foreach(part IN ITEMS MAJOR MINOR RELEASE)
    set(lines "")
    if(EXISTS ${header})
      file(STRINGS ${header} lines REGEX "^#define RAFT_VERSION_${part} +[0-9]+$")
    endif()
    string(REGEX REPLACE ".* " "" line "${lines}")
    list(APPEND parts "${line}")
  endforeach()
  list(JOIN parts . version)
  if(NOT version VERSION_GREATER_EQUAL 0.22.1 OR NOT version VERSION_LESS 0.23)
    set(version "")
  endif()
  set(${variable} "${version}" PARENT_SCOPE)
endfunction()

# The core as libraft's own Makefile.am builds it for packages ("v0"), but with assertions, and
# without what needs libuv.
function(tubed_raft_from_source source)
  set(root ${CMAKE_BINARY_DIR}/libraft)
  set(enable_v0 "")
  configure_file(${source}/include/raft.h.in ${root}/include/raft.h @ONLY)
  # Its files include "../include/raft.h".
  file(COPY ${source}/src DESTINATION ${root})
  set(sources "")
  foreach(name IN ITEMS byte client compress configuration convert election entry err heap legacy log
      membership message progress queue random raft recv recv_append_entries
      recv_append_entries_result recv_install_snapshot recv_request_vote recv_request_vote_result
      recv_timeout_now replication restore snapshot state syscall timeout tracing trail)
    if(EXISTS ${root}/src/${name}.c)
      list(APPEND sources ${root}/src/${name}.c)
    endif()
  endforeach()
  add_library(tubed_raft STATIC ${sources})
  target_include_directories(tubed_raft SYSTEM PUBLIC ${root}/include)
  target_compile_definitions(tubed_raft PRIVATE V0_ENABLED _GNU_SOURCE)
  target_compile_options(tubed_raft PRIVATE -w -UNDEBUG)
  set_target_properties(tubed_raft PROPERTIES C_STANDARD 11 C_EXTENSIONS ON UNITY_BUILD OFF)
  if(TUBED_RAFT_SANITIZE)
    target_compile_options(tubed_raft PRIVATE -fsanitize=${TUBED_RAFT_SANITIZE}
      -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(tubed_raft INTERFACE -fsanitize=${TUBED_RAFT_SANITIZE})
  endif()
endfunction()

function(tubed_find_raft version)
  set(${version} "" PARENT_SCOPE)
  if(TUBED_RAFT_SOURCE)
    tubed_raft_version(${TUBED_RAFT_SOURCE}/include/raft.h.in found)
    if(found)
      tubed_raft_from_source(${TUBED_RAFT_SOURCE})
    else()
      message(FATAL_ERROR "TUBED_RAFT_SOURCE: ${TUBED_RAFT_SOURCE} is no libraft >= 0.22.1, < 0.23")
    endif()
    set(${version} "${found}" PARENT_SCOPE)
    return()
  endif()
  if(TUBED_RAFT_ROOT)
    set(places PATHS ${TUBED_RAFT_ROOT} NO_DEFAULT_PATH)
  else()
    pkg_check_modules(libraft QUIET raft>=0.22.1)
    if(NOT libraft_FOUND)
      return()
    endif()
    set(places HINTS ${libraft_INCLUDE_DIRS} ${libraft_LIBRARY_DIRS})
  endif()
  # Not cached: each configuration looks for the library again.
  find_path(include raft.h ${places} PATH_SUFFIXES include NO_CACHE)
  find_library(library NAMES libraft.a raft ${places}
    PATH_SUFFIXES lib lib/${CMAKE_LIBRARY_ARCHITECTURE} NO_CACHE)
  if(include AND library)
    tubed_raft_version(${include}/raft.h found)
    if(found)
      add_library(tubed_raft UNKNOWN IMPORTED GLOBAL)
      set_target_properties(tubed_raft PROPERTIES IMPORTED_LOCATION ${library}
        INTERFACE_INCLUDE_DIRECTORIES ${include})
      set(${version} "${found}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

set(TUBED_RAFT "")
if(TUBED_CLUSTER)
  tubed_find_raft(TUBED_RAFT)
  if(TUBED_RAFT)
    message(STATUS "Cluster mode: libraft ${TUBED_RAFT}")
  elseif(TUBED_CLUSTER STREQUAL AUTO)
    message(STATUS "Cluster mode: not built, because there is no libraft >= 0.22.1, < 0.23")
  else()
    message(FATAL_ERROR "Cluster mode needs libraft >= 0.22.1, < 0.23 (libraft-dev, raft-devel)")
  endif()
endif()
