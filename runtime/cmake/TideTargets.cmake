# SPDX-License-Identifier: Apache-2.0
# How targets of this project are made: one function for a room of the runtime, one for everything else.
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

option(TIDE_HOST "Build ports, links and tests for this machine" ON)
option(TIDE_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
set(TIDE_SANITIZE "" CACHE STRING "Sanitizers for all code: address,undefined or thread")

add_library(tide_warnings INTERFACE)
target_compile_options(tide_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)

# With -O3 GCC 12 sees overlaps in concatenations of std::string that are not there.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(tide_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()

# GCC's flow warnings are unreliable in instrumented code; the ordinary builds have the last word.
if(NOT TIDE_SANITIZE)
  target_compile_options(tide_warnings INTERFACE -Werror)
endif()

if(TIDE_SANITIZE)
  add_compile_options(-fsanitize=${TIDE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TIDE_SANITIZE})
endif()

# tide_room(NAME SOURCES FOLDER [NEEDS ROOM...]): a static library tide_NAME of all C files of the folder.
function(tide_room name)
  cmake_parse_arguments(room "" "SOURCES" "NEEDS" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${room_SOURCES}/*.c")
  if(NOT files)
    return()
  endif()
  add_library(tide_${name} STATIC ${files})
  target_include_directories(tide_${name} PUBLIC "${TIDE_RUNTIME}/include")
  target_compile_options(tide_${name} PRIVATE -ffreestanding -Wconversion)
  target_link_libraries(tide_${name} PRIVATE tide_warnings)
  foreach(need IN LISTS room_NEEDS)
    target_link_libraries(tide_${name} PUBLIC tide_${need})
  endforeach()
endfunction()
