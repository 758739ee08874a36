# SPDX-License-Identifier: Apache-2.0
# Messages in C for a program.
#
#   tide_generate_messages(TARGET robot_messages
#     [PACKAGES std_msgs geometry_msgs/Twist] [FILES my_msgs/msg/Wheel.msg] [ALL_COMMON]
#     [STRING_CAPACITY 64] [SEQUENCE_CAPACITY 16] [CAPACITIES capacities.toml]
#     [CAPACITY sensor_msgs/msg/Image.data=40000 ...] [SEARCH folder ...] [REGISTRY])
#
# makes a static library `robot_messages` that a program links. The generator runs while CMake configures, and again
# when a definition or the generator changes. It writes only files whose contents change. TIDE_PYTHON: the Python that
# has ROS 2's message packages; by default the one of .venv in tide's folder, of the active environment, or python3.
include_guard(GLOBAL)

# The generator is next to this tree, or installed in a Python by tide's wheel.
set(TIDE_MESSAGES_ROOT "${CMAKE_CURRENT_LIST_DIR}/../..")
if(NOT EXISTS "${TIDE_MESSAGES_ROOT}/tools/tide_tools/generate")
  set(TIDE_MESSAGES_ROOT "")
endif()
set(TIDE_MESSAGES_ROOT "${TIDE_MESSAGES_ROOT}" CACHE INTERNAL "Where the generator is beside this tree")

function(tide_find_message_python)
  if(TIDE_PYTHON)
    return()
  endif()
  foreach(candidate IN ITEMS "${TIDE_MESSAGES_ROOT}/.venv/bin/python" "$ENV{VIRTUAL_ENV}/bin/python" python3)
    set(needs "rosidl_adapter, jinja2, typer, sys")
    if(NOT TIDE_MESSAGES_ROOT)
      string(APPEND needs ", tide_tools.generate")
    endif()
    execute_process(COMMAND "${candidate}" -c "import ${needs}; print(sys.executable)"
      RESULT_VARIABLE result OUTPUT_VARIABLE executable OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(result EQUAL 0)
      set(TIDE_PYTHON "${executable}" CACHE FILEPATH "Python with ROS 2's message packages")
      return()
    endif()
  endforeach()
endfunction()

function(tide_generate_messages)
  cmake_parse_arguments(messages "ALL_COMMON;REGISTRY" "TARGET;STRING_CAPACITY;SEQUENCE_CAPACITY;CAPACITIES"
    "PACKAGES;FILES;CAPACITY;SEARCH" ${ARGN})
  if(NOT messages_TARGET)
    list(POP_FRONT messages_UNPARSED_ARGUMENTS messages_TARGET)
  endif()
  if(messages_UNPARSED_ARGUMENTS OR NOT messages_TARGET)
    message(FATAL_ERROR "tide_generate_messages: unknown '${messages_UNPARSED_ARGUMENTS}'; see cmake/TideMessages.cmake")
  endif()
  tide_find_message_python()
  if(NOT TIDE_PYTHON)
    message(FATAL_ERROR "tide_generate_messages needs a Python with tide and ROS 2's message packages: install tide's "
      "wheel with [messages] (in its own tree: scripts/setup.sh run), or set TIDE_PYTHON")
  endif()

  set(out "${CMAKE_CURRENT_BINARY_DIR}/${messages_TARGET}")
  set(arguments --out "${out}" ${messages_PACKAGES})
  foreach(file IN LISTS messages_FILES)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND arguments "${file}")
  endforeach()
  foreach(folder IN LISTS messages_SEARCH)
    cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND arguments --search "${folder}")
  endforeach()
  foreach(rule IN LISTS messages_CAPACITY)
    list(APPEND arguments --capacity "${rule}")
  endforeach()
  if(messages_CAPACITIES)
    cmake_path(ABSOLUTE_PATH messages_CAPACITIES BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND arguments --capacities "${messages_CAPACITIES}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${messages_CAPACITIES}")
  endif()
  if(messages_STRING_CAPACITY)
    list(APPEND arguments --string-capacity "${messages_STRING_CAPACITY}")
  endif()
  if(messages_SEQUENCE_CAPACITY)
    list(APPEND arguments --sequence-capacity "${messages_SEQUENCE_CAPACITY}")
  endif()
  if(messages_ALL_COMMON)
    list(APPEND arguments --all-common)
  endif()
  if(messages_REGISTRY)
    list(APPEND arguments --registry)
  endif()

  set(environment "")
  if(TIDE_MESSAGES_ROOT)
    set(environment "PYTHONPATH=${TIDE_MESSAGES_ROOT}/tools")
  endif()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env ${environment} "${TIDE_PYTHON}" -m tide_tools.main generate ${arguments}
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_VARIABLE problem ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${problem}")
  endif()
  include("${out}/tide_messages.cmake")
  file(STRINGS "${out}/tide_inputs.txt" inputs)
  file(GLOB generator "${TIDE_MESSAGES_ROOT}/tools/tide_tools/generate/*.py"
    "${TIDE_MESSAGES_ROOT}/tools/tide_tools/generate/templates/*.j2")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs} ${generator})

  add_library(${messages_TARGET} STATIC ${TIDE_MESSAGE_SOURCES})
  target_include_directories(${messages_TARGET} PUBLIC "$<BUILD_INTERFACE:${out}>")
  target_compile_options(${messages_TARGET} PRIVATE -ffreestanding)
  if(TARGET tide_messages)
    target_compile_options(${messages_TARGET} PRIVATE -Wconversion)
    target_link_libraries(${messages_TARGET} PRIVATE $<BUILD_INTERFACE:tide_warnings>
      PUBLIC $<BUILD_INTERFACE:tide_messages> $<INSTALL_INTERFACE:tide::runtime>)
  else()
    target_link_libraries(${messages_TARGET} PUBLIC tide::runtime)
  endif()
endfunction()
