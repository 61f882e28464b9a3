# The environment of tests under sanitizers: their options, their lists of exceptions (tests/sanitizers), and a factor on time limits.
if(CELLOOM_SANITIZE MATCHES "thread")
  set(factor 15)
elseif(CELLOOM_SANITIZE)
  set(factor 6)
else()
  set(factor 1)
endif()
set(CELLOOM_TEST_TIME_FACTOR ${factor} CACHE STRING "By how much tests' time limits grow, for slow builds and busy machines")

set(CELLOOM_TEST_ENVIRONMENT "QT_QPA_PLATFORM=offscreen")
if(CELLOOM_SANITIZE)
  set(CELLOOM_SANITIZER_REPORTS ${CMAKE_BINARY_DIR}/reports)
  set(lists ${CMAKE_SOURCE_DIR}/tests/sanitizers)
  # An exit code that no program of ours uses; one file of reports a process, since tests keep the words of their children to themselves.
  set(common "max_allocation_size_mb=400:exitcode=77:log_path='${CELLOOM_SANITIZER_REPORTS}/report':log_exe_name=1")
  # soak says how many kills it makes: each costs a start of the engine, which takes seconds here. tests/slow_builds.h is about the other.
  list(APPEND CELLOOM_TEST_ENVIRONMENT "CELLOOM_SOAK_KILLS=2" "CELLOOM_TEST_EVERY=4")
  math(EXPR function_timeout "300000 * ${CELLOOM_TEST_TIME_FACTOR}") # QtTest's own limit of five minutes a test function
  list(APPEND CELLOOM_TEST_ENVIRONMENT
    # Too large an allocation fails as it does for users, rather than ending the program: above the limit of a trial of typed code, which
    # cannot limit its addresses here, and below what its parent ends it for (engine/script/limited_child.cpp).
    "ASAN_OPTIONS=${common}:suppressions='${lists}/asan.supp':allocator_may_return_null=1:detect_stack_use_after_return=1:check_initialization_order=1:strict_init_order=1"
    "LSAN_OPTIONS=suppressions='${lists}/lsan.supp':print_suppressions=0"
    "UBSAN_OPTIONS=${common}:suppressions='${lists}/ubsan.supp':print_stacktrace=1"
    # die_after_fork: tests fork after QtTest has started its watchdog thread; the children run on without being watched.
    "TSAN_OPTIONS=${common}:suppressions='${lists}/tsan.supp':allocator_may_return_null=1:die_after_fork=0:second_deadlock_stack=1"
    "QTEST_FUNCTION_TIMEOUT=${function_timeout}")
endif()
if(CELLOOM_SANITIZE MATCHES "thread")
  # LibTorch's OpenMP runtime starts, feeds and joins its workers by means that ThreadSanitizer does not know: with one thread there is nothing
  # to wait for. The limit holds where a recipe or an option asks for more threads, too. The price: loops over at::parallel_for are not judged.
  list(APPEND CELLOOM_TEST_ENVIRONMENT "OMP_NUM_THREADS=1" "OMP_THREAD_LIMIT=1")
endif()

# What every test of ours gets.
function(celloom_test_properties name)
  target_compile_definitions(tst_${name} PRIVATE CELLOOM_TEST_TIME_FACTOR=${CELLOOM_TEST_TIME_FACTOR})
  if(NOT CELLOOM_TEST_TIME_FACTOR EQUAL 1)
    target_include_directories(tst_${name} BEFORE PRIVATE ${CMAKE_SOURCE_DIR}/tests/sanitizers/patience)
  endif()
  math(EXPR timeout "600 * ${CELLOOM_TEST_TIME_FACTOR}")
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${CELLOOM_TEST_ENVIRONMENT}" TIMEOUT ${timeout})
  if(CELLOOM_SANITIZE)
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED sanitizer_reports)
  endif()
endfunction()

# Two ctest entries around all others, run with any choice of them.
function(celloom_sanitizer_reports)
  foreach(mode clear show)
    add_test(NAME sanitizer_reports_${mode} COMMAND ${CMAKE_COMMAND} -DMODE=${mode} -DREPORTS=${CELLOOM_SANITIZER_REPORTS}
      -P ${CMAKE_SOURCE_DIR}/tests/sanitizers/reports.cmake)
  endforeach()
  set_tests_properties(sanitizer_reports_clear PROPERTIES FIXTURES_SETUP sanitizer_reports)
  set_tests_properties(sanitizer_reports_show PROPERTIES FIXTURES_CLEANUP sanitizer_reports)
endfunction()
