# SPDX-License-Identifier: Apache-2.0
# The functions that make the targets of this project: one for a module of the runtime, one for everything else.
include_guard(GLOBAL)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

set(tide_has_system ON)
if(CMAKE_SYSTEM_NAME STREQUAL "Generic")
  set(tide_has_system OFF)
endif()
option(TIDE_HOST "Build ports, links and tests for this machine" ${tide_has_system})
option(TIDE_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(TIDE_INSTALL "Install the library, its headers and what finds it" ${PROJECT_IS_TOP_LEVEL})
option(TIDE_WARNINGS_ARE_ERRORS "Let no warning pass" ${PROJECT_IS_TOP_LEVEL})
set(TIDE_OPTIONS "" CACHE STRING "Options of tide/options.h for the whole runtime: TIDE_RELIABLE_STREAMS=0;TIDE_CONTROL_PLACES=3")
# On by default on a host, so that one runtime serves programs that record and programs that do not. A program without a
# ring pays one branch.
option(TIDE_TRACE "Record what happens to each instance (tide/trace.h)" ${TIDE_HOST})
if(TIDE_TRACE)
  list(APPEND TIDE_OPTIONS TIDE_TRACE=1)
endif()
set(TIDE_SANITIZE "" CACHE STRING "Sanitizers for all code: address,undefined or thread")
set(tide_sanitized OFF)
if(TIDE_SANITIZE)
  set(tide_sanitized ON)
endif()
option(TIDE_INVARIANTS "Check the runtime's invariants in all programs, not only in tests and the simulator" ${tide_sanitized})
if(TIDE_INVARIANTS)
  add_compile_definitions(TIDE_INVARIANTS=1)
endif()

add_library(tide_warnings INTERFACE)
target_compile_options(tide_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)

# With -O3, GCC 12 reports overlaps in concatenations of std::string that do not exist.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(tide_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# GCC's flow warnings are unreliable in instrumented code; the ordinary builds decide.
if(TIDE_WARNINGS_ARE_ERRORS AND NOT (TIDE_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU"))
  target_compile_options(tide_warnings INTERFACE -Werror)
endif()

# tide_unity(TARGET FILES): compiles this many of its files as one, which halves the time of a build from scratch.
option(TIDE_UNITY "Compile several files of a library as one; OFF: after a change less is compiled" ON)
function(tide_unity target files)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TIDE_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# tide_unsanitized(TARGET...): without the sanitizers of the build, for a library that an ordinary Python loads.
function(tide_unsanitized)
  if(NOT TIDE_SANITIZE)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE -fno-sanitize=all -U__SANITIZE_ADDRESS__ -U__SANITIZE_THREAD__)
    target_link_options(${target} PRIVATE -fno-sanitize=all)
  endforeach()
endfunction()

if(TIDE_SANITIZE)
  add_compile_options(-fsanitize=${TIDE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TIDE_SANITIZE})
  if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND TIDE_SANITIZE STREQUAL "thread") # GCC defines these macros itself
    add_compile_definitions(__SANITIZE_THREAD__=1)
  elseif(CMAKE_C_COMPILER_ID MATCHES "Clang")
    add_compile_definitions(__SANITIZE_ADDRESS__=1)
  endif()
  add_library(tide_sanitizer_options OBJECT "${CMAKE_CURRENT_LIST_DIR}/sanitizer_options.c")
  tide_unsanitized(tide_sanitizer_options)
  link_libraries("$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:$<TARGET_OBJECTS:tide_sanitizer_options>>")
endif()

# tide_room(NAME SOURCES FOLDER... [NEEDS ROOM...]): a static library tide_NAME of all C files of the folders. For the
# tests also the same files with checked invariants (tide_NAME_checked), unless all programs check them.
function(tide_room name)
  cmake_parse_arguments(room "" "" "SOURCES;NEEDS" ${ARGN})
  list(TRANSFORM room_SOURCES APPEND "/*.c")
  list(TRANSFORM room_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  file(GLOB files CONFIGURE_DEPENDS ${room_SOURCES})
  if(NOT files)
    return()
  endif()
  add_library(tide_${name} STATIC ${files})
  target_include_directories(tide_${name} PUBLIC "${TIDE_RUNTIME}/include")
  target_compile_definitions(tide_${name} PUBLIC ${TIDE_OPTIONS})
  target_compile_options(tide_${name} PRIVATE -ffreestanding -Wconversion)
  target_link_libraries(tide_${name} PRIVATE tide_warnings)
  foreach(need IN LISTS room_NEEDS)
    target_link_libraries(tide_${name} PUBLIC tide_${need})
  endforeach()
  if(TIDE_HOST AND TIDE_TESTS AND NOT TIDE_INVARIANTS)
    add_library(tide_${name}_checked OBJECT EXCLUDE_FROM_ALL ${files})
    target_include_directories(tide_${name}_checked PUBLIC "${TIDE_RUNTIME}/include")
    # A broken invariant prints its file. The path is shortened, so that the simulator's image does not depend on the
    # folder of the tree.
    target_compile_options(tide_${name}_checked PRIVATE -ffreestanding -Wconversion "-fmacro-prefix-map=${TIDE_RUNTIME}=runtime")
    target_compile_definitions(tide_${name}_checked PRIVATE ${TIDE_OPTIONS} TIDE_INVARIANTS=1)
    target_link_libraries(tide_${name}_checked PRIVATE tide_warnings)
    set_property(GLOBAL PROPERTY tide_${name}_needs ${room_NEEDS})
  endif()
endfunction()

# tide_check_invariants(TARGET ROOM...): the program checks the invariants of these modules and of their dependencies.
# It links their checked objects before the libraries, from which the linker then takes nothing.
function(tide_check_invariants target)
  set(rooms ${ARGN})
  set(linked "")
  while(rooms)
    list(POP_FRONT rooms room)
    if(TARGET tide_${room}_checked AND NOT room IN_LIST linked)
      list(APPEND linked ${room})
      target_link_libraries(${target} PRIVATE tide_${room}_checked)
      get_property(needs GLOBAL PROPERTY tide_${room}_needs)
      list(APPEND rooms ${needs})
    endif()
  endwhile()
endfunction()
