# SPDX-License-Identifier: Apache-2.0
# Writes FILE, what the program says of its build: VERSION, and the commit where SOURCE is a clone. Left as it is when
# nothing has changed, so that nothing is compiled again.
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
