# Sanitizers write what they find to files in REPORTS, one a process: so that what a child process of a test did is seen, too.
# An empty one counts: its process was kept from writing it.
# MODE=clear empties the folder before the tests; MODE=show fails when there are any after them.
file(GLOB reports ${REPORTS}/*)
if(MODE STREQUAL "clear")
  file(REMOVE_RECURSE ${REPORTS})
  file(MAKE_DIRECTORY ${REPORTS})
  return()
endif()
set(count 0)
foreach(report IN LISTS reports)
  file(READ ${report} text LIMIT 1000000)
  if(NOT text STREQUAL "" AND NOT text MATCHES "SUMMARY: |runtime error: |DEADLYSIGNAL|CHECK failed")
    continue() # a warning: a test asked for more memory than there is, and got none
  endif()
  math(EXPR count "${count} + 1")
  string(SUBSTRING "${text}" 0 6000 start)
  message("== ${report}\n${start}")
endforeach()
if(count)
  message(FATAL_ERROR "${count} processes were reported by a sanitizer; the files above are in ${REPORTS}.")
endif()
