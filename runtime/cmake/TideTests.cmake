# SPDX-License-Identifier: Apache-2.0
# The functions that make tests in C++: one GoogleTest program for each module, of all its <name>_test.cpp and
# <name>_test_<part>.cpp, compiled as few units. Therefore all declarations of a file are in a namespace with the file's name.
# CTest runs whole programs.
include_guard(GLOBAL)
include(CTest)
include(GoogleTest)

# The headers that every test includes, compiled once.
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/pch_main.cpp" "")
add_library(tide_test_headers STATIC "${CMAKE_CURRENT_BINARY_DIR}/pch_main.cpp")
set(tide_test_definitions TIDE_TEST_DATA="${TIDE_RUNTIME}/tests/data")
target_compile_definitions(tide_test_headers PRIVATE ${tide_test_definitions})
target_link_libraries(tide_test_headers PRIVATE tide_warnings GTest::gtest)
# As in programs, even if all libraries are compiled as position-independent code: a compiler refuses precompiled
# headers that were made with other settings.
set_target_properties(tide_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
# The tested code is optimised. The tests' own code only has to compile fast, except in the few tests that compute much.
set(tide_test_options -O0)
# With a precompiled header of std::string, GCC 12 reports overflows in it that do not exist. It also takes the else
# within GoogleTest's macros for one of the preceding `if`.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND tide_test_options -Wno-stringop-overflow -Wno-restrict -Wno-array-bounds -Wno-dangling-else)
endif()
set(tide_tests_that_compute exec_model_test daemon_simulation_test daemon_lean_simulation_test budget_corrected_test
  rtps_participant_test)
if(TIDE_SANITIZE)
  list(APPEND tide_test_options -g1)
else()
  list(APPEND tide_test_options -g0) # GoogleTest names the line
endif()
# The tests' own code has no checks for undefined behaviour; the tested code has all of them.
if(TIDE_SANITIZE MATCHES "undefined")
  list(APPEND tide_test_options -fno-sanitize=undefined)
endif()
target_compile_options(tide_test_headers PRIVATE ${tide_test_options})
target_precompile_headers(tide_test_headers PRIVATE <gtest/gtest.h> <algorithm> <array> <cstdint> <cstring> <deque>
  <functional> <map> <memory> <random> <set> <string> <vector>)

# Stored as global properties, so that the functions below can read them in whatever folder they are called.
set_property(GLOBAL PROPERTY tide_test_options ${tide_test_options})
set_property(GLOBAL PROPERTY tide_test_definitions ${tide_test_definitions})
set_property(GLOBAL PROPERTY tide_tests_that_compute ${tide_tests_that_compute})

# tide_test_delays: random delays at locks and events of the program that links it.
add_library(tide_test_delays OBJECT EXCLUDE_FROM_ALL "${TIDE_RUNTIME}/tests/support/delays.cpp")
target_include_directories(tide_test_delays PRIVATE "${TIDE_RUNTIME}/include")
target_link_libraries(tide_test_delays PRIVATE tide_warnings GTest::gtest)
target_link_options(tide_test_delays INTERFACE -Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_mutex_unlock
  -Wl,--wrap=tide_port_platform)

# gate_tests are the programs that `make test` runs; tests also contains those of `make test-all`.
add_custom_target(gate_tests)
add_custom_target(tests)

# tide_test_program(NAME [FULL]): the common properties of every test program, and its entry in CTest, with the label
# gate or full. C files next to it belong to the tested code.
function(tide_test_program name)
  cmake_parse_arguments(program "FULL" "" "" ${ARGN})
  get_property(options GLOBAL PROPERTY tide_test_options)
  get_property(definitions GLOBAL PROPERTY tide_test_definitions)
  get_property(compute GLOBAL PROPERTY tide_tests_that_compute)
  target_compile_definitions(${name} PRIVATE ${definitions})
  target_include_directories(${name} PRIVATE "${TIDE_RUNTIME}/tests/support")
  target_link_libraries(${name} PRIVATE tide_warnings GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM tide_test_headers)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${options}>")
  get_target_property(sources ${name} SOURCES)
  set(files ${sources})
  list(FILTER files INCLUDE REGEX "\\.c$")
  if(files)
    set_source_files_properties(${files} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
  foreach(file IN LISTS compute) # the headers were compiled with -O0
    set(files ${sources})
    list(FILTER files INCLUDE REGEX "(^|/)${file}\\.cpp$")
    if(files)
      set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON
        SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  get_target_property(type ${name} TYPE)
  get_target_property(alone ${name} EXCLUDE_FROM_ALL)
  if(NOT type STREQUAL "EXECUTABLE" OR alone)
    return()
  endif()
  add_dependencies(tests ${name})
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set(label full)
  if(NOT program_FULL)
    set(label gate)
    add_dependencies(gate_tests ${name})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS ${label})
endfunction()

# tide_test_room(NAME FILES FILE... [FULL] [THREADS] [NEEDS LIBRARY...] [CHECKS ROOM...] [FOLDERS FOLDER...]
# [DEFINITIONS DEFINITION...]): the program NAME of all FILEs, <name>_test.cpp, and the parts next to them. It checks
# the invariants of the ROOMs of the runtime, and of their dependencies. Each FILE is also a program of its own, which
# only scripts/one_test.sh builds.
function(tide_test_room room)
  cmake_parse_arguments(test "THREADS;FULL" "" "FILES;NEEDS;CHECKS;FOLDERS;DEFINITIONS" ${ARGN})
  set(full "")
  if(test_FULL)
    set(full FULL)
  endif()
  set(sources "")
  set(programs "")
  foreach(file IN LISTS test_FILES)
    get_filename_component(file "${file}" ABSOLUTE)
    get_filename_component(name "${file}" NAME_WE)
    get_filename_component(folder "${file}" DIRECTORY)
    # ThreadSanitizer has nothing to check in a test without threads; THREADS means that an included file has some.
    if(TIDE_SANITIZE STREQUAL "thread" AND NOT test_THREADS)
      file(STRINGS "${file}" threads REGEX "#include <(thread|pthread\\.h|atomic)>")
      if(NOT threads)
        continue()
      endif()
    endif()
    file(GLOB parts CONFIGURE_DEPENDS "${folder}/${name}_*.cpp")
    list(APPEND sources "${file}" ${parts})
    if(NOT name STREQUAL room)
      add_executable(${name} EXCLUDE_FROM_ALL "${file}" ${parts})
      list(APPEND programs ${name})
    endif()
  endforeach()
  if(NOT sources)
    return()
  endif()
  add_executable(${room} ${sources})
  set_target_properties(${room} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  foreach(program IN LISTS room programs)
    target_include_directories(${program} PRIVATE ${test_FOLDERS})
    target_compile_definitions(${program} PRIVATE ${test_DEFINITIONS})
    target_link_libraries(${program} PRIVATE ${test_NEEDS})
    tide_check_invariants(${program} ${test_CHECKS})
    tide_test_program(${program} ${full})
  endforeach()
endfunction()

# tide_test(FILE [FULL] [THREADS] [NEEDS LIBRARY...] [CHECKS ROOM...] ...): a program of one <name>_test.cpp and its parts.
function(tide_test file)
  get_filename_component(name "${file}" NAME_WE)
  tide_test_room(${name} FILES "${file}" ${ARGN})
endfunction()
