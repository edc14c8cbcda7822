# Language level, warnings, sanitizers, ccache; the two thin target wrappers.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Precompiled headers are cached only if asked for.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

if(MEGA_ASSERTIONS)
  # CMake's Release adds -DNDEBUG; take it away again.
  foreach(config RELEASE RELWITHDEBINFO)
    string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_${config} "${CMAKE_CXX_FLAGS_${config}}")
  endforeach()
endif()

# Release is -O2: the hot loops live in kernels that ask for more themselves,
# and MLIR-heavy files compile in half the time.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

add_library(mega_options INTERFACE)
target_include_directories(mega_options INTERFACE
  ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
target_compile_options(mega_options INTERFACE
  -Wall -Wextra -Werror -Wno-unused-parameter -Wnon-virtual-dtor
  -Wno-missing-field-initializers -fdiagnostics-color=auto
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
target_compile_definitions(mega_options INTERFACE
  MEGA_VERSION="${PROJECT_VERSION}")
if(MEGA_SANITIZE)
  target_compile_options(mega_options INTERFACE
    -fsanitize=${MEGA_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(mega_options INTERFACE -fsanitize=${MEGA_SANITIZE})
endif()
if(MEGA_FUZZ)
  # Coverage for libFuzzer, and an end at the first report. What clang warns of
  # beyond g++ is no error here.
  target_compile_options(mega_options INTERFACE
    -fsanitize=fuzzer-no-link -fno-sanitize-recover=all
    -fno-sanitize=vptr,function -Wno-error)
endif()

# mega_library(name SOURCES ... [LINK ...]): a static library of this project.
function(mega_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC mega_options ${ARG_LINK})
endfunction()

# Installed programs find their libraries beside them (lib/ of the archive that
# scripts/package.sh makes) or where they were linked from. DT_RPATH, because
# libraries' own libraries have to be found there as well.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
set(CMAKE_BUILD_RPATH "$ORIGIN/../lib")
add_link_options(-Wl,--disable-new-dtags)

# mega_tool(name SOURCES ... [LINK ...]): an executable, installed with the rest
# or, as component `name`, on its own.
function(mega_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE mega_options ${ARG_LINK})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    COMPONENT ${name})
endfunction()
