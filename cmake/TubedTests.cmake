# Registers tests with ctest. Every test is either `fast` or `slow`:
#
# - `fast`: takes at most 1 s of processor time, and little more real time. tools/check runs the fast
#   tests, and reports those that took long. A test is fast unless its labels say otherwise.
# - `slow`: any longer test.
#
# Other labels: `daemon`, `clients` and `bench` start the programs. `more` tests are not run by tools/test but by
# tools/test --more: they wait for the server, or need packages that few developers have; all `clients` and `bench`
# tests are `more`. `real-time` tests wait for timers of the server in real time, and are not run with a sanitizer;
# `slow-under-asan` tests are not run with the address sanitizer, because they take too long for what they run of
# the code.

# A build without sanitizers, for this machine. It alone has the tests that run no program of the build, and
# those that count instructions.
set(TUBED_PLAIN_BUILD ON)
if(TUBED_SANITIZE OR CMAKE_CROSSCOMPILING)
  set(TUBED_PLAIN_BUILD OFF)
endif()

# The tests start the programs of this build by default. To test a package's, for example:
#   cmake --preset dev -DTUBED_TESTED_TUBED=/usr/bin/tubed -DTUBED_TESTED_TUBECTL=/usr/bin/tubectl
set(TUBED_TESTED_TUBED "" CACHE FILEPATH "The tubed that tests start; default: the one built here")
set(TUBED_TESTED_TUBECTL "" CACHE FILEPATH "The same for tubectl")
set(tested_tubed $<TARGET_FILE:tubed>)
set(tested_tubectl $<TARGET_FILE:tubectl>)
if(TUBED_TESTED_TUBED)
  set(tested_tubed ${TUBED_TESTED_TUBED})
endif()
if(TUBED_TESTED_TUBECTL)
  set(tested_tubectl ${TUBED_TESTED_TUBECTL})
endif()

# tubed_add_test(NAME name COMMAND command… [LABELS label…] [ENVIRONMENT variable=value…]
#   [TIMEOUT seconds] [COST number])
#
# The first word of the command may be a target; CMAKE_CROSSCOMPILING_EMULATOR runs what is compiled for
# another architecture. TIMEOUT, 3600 by default, is the last resort against a hang. It is longer
# than the ten minutes after which a single wait of a test fails with a message, however slow the machine
# is. The longest tests have a COST, and begin first.
function(tubed_add_test)
  cmake_parse_arguments(arg "" "NAME;TIMEOUT;COST" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "tubed_add_test(${arg_NAME}): unknown: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  list(POP_FRONT arg_COMMAND program)
  if(TARGET ${program})
    get_target_property(imported ${program} IMPORTED)
    set(program $<TARGET_FILE:${program}>)
    if(NOT imported)
      list(PREPEND program ${CMAKE_CROSSCOMPILING_EMULATOR})
    endif()
  endif()
  if(NOT slow IN_LIST arg_LABELS)
    list(APPEND arg_LABELS fast)
  endif()
  if(clients IN_LIST arg_LABELS OR bench IN_LIST arg_LABELS)
    list(APPEND arg_LABELS more)
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${program} ${arg_COMMAND})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 3600)
  endif()
  if(NOT arg_COST)
    set(arg_COST 0)
  endif()
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT}
    COST ${arg_COST} ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

# tubed_test(name [HOT] [SLOW | SLOW_CASES] SOURCES… DEPENDS… [ENVIRONMENT…]): a doctest binary.
# HOT: it runs for longer than it takes to optimize it a little. SLOW: all cases are slow. SLOW_CASES: some
# cases are in the test suite "slow"; ctest runs these as <name>_slow, as a separate test.
function(tubed_test name)
  cmake_parse_arguments(arg "HOT;SLOW;SLOW_CASES" "" "SOURCES;DEPENDS;ENVIRONMENT" ${ARGN})
  # All binaries share doctest's main, because doctest takes longer to compile than most tests.
  if(NOT TARGET tubed_doctest_main)
    add_library(tubed_doctest_main OBJECT ${PROJECT_SOURCE_DIR}/tests/doctest_main.cc)
    target_link_libraries(tubed_doctest_main PUBLIC doctest::doctest PRIVATE tubed_options)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} tubed_doctest_main tubed_options)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  if(arg_HOT AND NOT TUBED_SANITIZE)  # which makes optimizing three times dearer
    tubed_optimize_less(${name} -O1)
  else()
    tubed_optimize_less(${name} -O0)
  endif()
  if(TUBED_SANITIZE)
    target_compile_definitions(${name} PRIVATE TUBED_SANITIZED)  # tests/share.h
  endif()
  if(arg_SLOW_CASES)
    tubed_add_test(NAME ${name} COMMAND ${name} --test-suite-exclude=slow
      ENVIRONMENT ${arg_ENVIRONMENT})
    tubed_add_test(NAME ${name}_slow COMMAND ${name} --test-suite=slow LABELS slow COST 100
      ENVIRONMENT ${arg_ENVIRONMENT})
    # A suite without cases fails.
    set_tests_properties(${name}_slow PROPERTIES
      FAIL_REGULAR_EXPRESSION "test cases: +0 ")
  elseif(arg_SLOW)
    tubed_add_test(NAME ${name} COMMAND ${name} LABELS slow COST 100 ENVIRONMENT ${arg_ENVIRONMENT})
  else()
    tubed_add_test(NAME ${name} COMMAND ${name} ENVIRONMENT ${arg_ENVIRONMENT})
  endif()
endfunction()
