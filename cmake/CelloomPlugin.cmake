# For libraries of cells outside of Celloom's tree: set CELLOOM_DIR to Celloom's sources, include this file, and call celloom_plugin(name sources…).
# It makes name.so with <celloom/cell.h> and LibTorch, the same that Celloom uses: in CELLOOM_DIR/.deps, or where CELLOOM_DEPS (environment) or
# CELLOOM_DEPS_DIR says.
if(NOT EXISTS "${CELLOOM_DIR}/engine/plugin/include/celloom/cell.h")
  message(FATAL_ERROR "CELLOOM_DIR is \"${CELLOOM_DIR}\", which has no Celloom. Give -DCELLOOM_DIR=path/to/celloom.")
endif()
set(celloom_default_deps "${CELLOOM_DIR}/.deps")
if(DEFINED ENV{CELLOOM_DEPS})
  set(celloom_default_deps "$ENV{CELLOOM_DEPS}")
endif()
set(CELLOOM_DEPS_DIR "${celloom_default_deps}" CACHE PATH "Where Celloom's scripts/deps put LibTorch")
set(celloom_torch "${CELLOOM_DEPS_DIR}/libtorch/torch")
if(NOT EXISTS "${celloom_torch}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "LibTorch is not in ${CELLOOM_DEPS_DIR}. Run Celloom's scripts/deps first.")
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

function(celloom_plugin name)
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden)
  target_include_directories(${name} PRIVATE "${CELLOOM_DIR}/engine/plugin/include")
  target_include_directories(${name} SYSTEM PRIVATE "${celloom_torch}/include" "${celloom_torch}/include/torch/csrc/api/include")
  target_link_libraries(${name} PRIVATE "${celloom_torch}/lib/libtorch_cpu.so" "${celloom_torch}/lib/libc10.so")
  target_link_options(${name} PRIVATE "-Wl,-rpath-link,${celloom_torch}/lib" "-Wl,-rpath-link,${CELLOOM_DEPS_DIR}/libtorch/nvidia/cu13/lib")
  set_target_properties(${name} PROPERTIES SKIP_BUILD_RPATH ON) # the engine has loaded LibTorch already
endfunction()
