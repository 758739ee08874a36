# SPDX-License-Identifier: Apache-2.0
# tide::runtime: one library of all modules with the port of this machine, and its installation.
include_guard(GLOBAL)

set(parts base trace queue budget cdr messages xrce link_serial daemon session link_custom exec compat utilities rtps
  rtps_agent)
if(TIDE_HOST)
  list(APPEND parts platform_posix datagrams budget_posix port_posix rtps_posix)
endif()
set(objects "")
foreach(part IN LISTS parts)
  list(APPEND objects "$<TARGET_OBJECTS:tide_${part}>")
endforeach()
add_library(tide_runtime STATIC EXCLUDE_FROM_ALL ${objects})
add_library(tide::runtime ALIAS tide_runtime)
set_target_properties(tide_runtime PROPERTIES OUTPUT_NAME tide EXPORT_NAME runtime LINKER_LANGUAGE C)
target_compile_features(tide_runtime INTERFACE c_std_99)
target_include_directories(tide_runtime PUBLIC
  "$<BUILD_INTERFACE:${TIDE_RUNTIME}/include>" "$<INSTALL_INTERFACE:include/tide-runtime>")
target_compile_definitions(tide_runtime PUBLIC ${TIDE_OPTIONS})
if(TIDE_HOST)
  find_package(Threads REQUIRED)
  target_link_libraries(tide_runtime PUBLIC Threads::Threads)
endif()
if(NOT TIDE_INSTALL)
  return()
endif()

# Installed in its own folder below include, because ROS 2 has headers of the same names.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set_target_properties(tide_runtime PROPERTIES EXCLUDE_FROM_ALL FALSE)
set(place "${CMAKE_INSTALL_LIBDIR}/cmake/tide")
set(TIDE_PACKAGE_FOLDER "${place}" CACHE INTERNAL "Where find_package looks for tide, below the prefix")
install(TARGETS tide_runtime EXPORT tide-runtime-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime)
install(DIRECTORY "${TIDE_RUNTIME}/include/" DESTINATION include/tide-runtime COMPONENT runtime)
install(EXPORT tide-runtime-targets NAMESPACE tide:: DESTINATION "${place}" COMPONENT runtime)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/tide-config.cmake.in"
  "${CMAKE_CURRENT_BINARY_DIR}/tide-config.cmake" INSTALL_DESTINATION "${place}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/tide-config-version.cmake" COMPATIBILITY SameMinorVersion)
set(definitions ${TIDE_OPTIONS})
list(TRANSFORM definitions PREPEND "-D")
list(JOIN definitions " " TIDE_DEFINITIONS)
configure_file("${CMAKE_CURRENT_LIST_DIR}/tide.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/tide.pc" @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tide-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/tide-config-version.cmake"
  "${CMAKE_CURRENT_LIST_DIR}/TideMessages.cmake" DESTINATION "${place}" COMPONENT runtime)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/tide.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT runtime)
if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall COMMAND "${CMAKE_COMMAND}" -DBUILD=${CMAKE_BINARY_DIR}
    -P "${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake" VERBATIM)
endif()
