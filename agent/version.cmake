# SPDX-License-Identifier: Apache-2.0
# Writes FILE, which describes the program's build: VERSION and, if SOURCE is a Git clone, the commit. If the contents
# have not changed, the file is not written, so that nothing is compiled again.
set(commit "")
find_program(git git)
if(git AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND "${git}" -C "${SOURCE}" describe --always --dirty --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(text "${VERSION}")
if(commit)
  string(APPEND text " (${commit})")
endif()
set(content "#include \"version.h\"\n\nconst char kVersion[] = \"tide-agent ${text}\";\n")
set(before "")
if(EXISTS "${FILE}")
  file(READ "${FILE}" before)
endif()
if(NOT content STREQUAL before)
  file(WRITE "${FILE}" "${content}")
endif()
