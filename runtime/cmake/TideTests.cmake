# SPDX-License-Identifier: Apache-2.0
# How tests in C++ are made: one GoogleTest program for each <name>_test.cpp, with all <name>_test_<part>.cpp beside it.
include_guard(GLOBAL)
include(CTest)
include(GoogleTest)

# What every test includes, compiled once.
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/pch_main.cpp" "")
add_library(tide_test_headers STATIC "${CMAKE_CURRENT_BINARY_DIR}/pch_main.cpp")
set(tide_test_definitions TIDE_TEST_DATA="${TIDE_RUNTIME}/tests/data")
target_compile_definitions(tide_test_headers PRIVATE ${tide_test_definitions})
target_link_libraries(tide_test_headers PRIVATE tide_warnings GTest::gtest)
# What is tested is optimised; the tests' own code only has to be built soon, but for the few that compute much themselves.
set(tide_test_options -O0)
# GCC 12 sees overflows in std::string that are not there once its header comes precompiled.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND tide_test_options -Wno-stringop-overflow -Wno-restrict -Wno-array-bounds)
endif()
set(tide_tests_that_compute exec_model_test daemon_simulation_test daemon_lean_simulation_test budget_corrected_test)
if(TIDE_SANITIZE)
  list(APPEND tide_test_options -g1)
else()
  list(APPEND tide_test_options -g0) # GoogleTest names the line
endif()
# The checks for undefined behaviour are for what is tested, which has all of them.
if(TIDE_SANITIZE MATCHES "undefined")
  list(APPEND tide_test_options -fno-sanitize=undefined)
endif()
target_compile_options(tide_test_headers PRIVATE ${tide_test_options})
target_precompile_headers(tide_test_headers PRIVATE <gtest/gtest.h> <algorithm> <array> <cstdint> <cstring> <deque>
  <functional> <map> <memory> <random> <set> <string> <vector>)

# These are seen by the functions below wherever they are called.
set_property(GLOBAL PROPERTY tide_test_options ${tide_test_options})
set_property(GLOBAL PROPERTY tide_test_definitions ${tide_test_definitions})
set_property(GLOBAL PROPERTY tide_tests_that_compute ${tide_tests_that_compute})

# What the tests run, without the programs.
add_custom_target(tests)

# tide_test_program(NAME): what every test program shares. Files in C beside it are of what is tested.
function(tide_test_program name)
  get_property(options GLOBAL PROPERTY tide_test_options)
  get_property(definitions GLOBAL PROPERTY tide_test_definitions)
  get_property(compute GLOBAL PROPERTY tide_tests_that_compute)
  target_compile_definitions(${name} PRIVATE ${definitions})
  target_include_directories(${name} PRIVATE "${TIDE_RUNTIME}/tests/support")
  target_link_libraries(${name} PRIVATE tide_warnings GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM tide_test_headers)
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${options}>")
  if(name IN_LIST compute)
    target_compile_options(${name} PRIVATE -O1)
    set_target_properties(${name} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON) # they were compiled with -O0
  endif()
  get_target_property(files ${name} SOURCES)
  list(FILTER files INCLUDE REGEX "\\.c$")
  if(files)
    set_source_files_properties(${files} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
  add_dependencies(tests ${name})
endfunction()

# tide_test(FILE [THREADS] [NEEDS LIBRARY...] [CHECKS ROOM...]): the program of one <name>_test.cpp, known to CTest test by
# test. It checks the invariants of the ROOMs of the runtime, and of what they need.
function(tide_test file)
  cmake_parse_arguments(test "THREADS" "" "NEEDS;CHECKS" ${ARGN})
  get_filename_component(file "${file}" ABSOLUTE)
  get_filename_component(name "${file}" NAME_WE)
  get_filename_component(folder "${file}" DIRECTORY)
  # ThreadSanitizer has nothing to see in a test without threads; THREADS says that what it includes has some.
  if(TIDE_SANITIZE STREQUAL "thread" AND NOT test_THREADS)
    file(STRINGS "${file}" threads REGEX "#include <(thread|pthread\\.h|atomic)>")
    if(NOT threads)
      return()
    endif()
  endif()
  file(GLOB parts CONFIGURE_DEPENDS "${folder}/${name}_*.cpp")
  add_executable(${name} "${file}" ${parts})
  target_link_libraries(${name} PRIVATE ${test_NEEDS})
  tide_check_invariants(${name} ${test_CHECKS})
  tide_test_program(${name})
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()
