# MLIR 22, linked as the two shared libraries only: a component library beside
# them would define every symbol twice.
find_package(MLIR 22.1 REQUIRED CONFIG
  HINTS /usr/lib/llvm-22/lib/cmake/mlir)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)

add_library(mega_mlir INTERFACE)
target_include_directories(mega_mlir SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})
target_compile_options(mega_mlir INTERFACE ${definitions})
target_link_libraries(mega_mlir INTERFACE MLIR LLVM mega_options)

# mega_tablegen(target file.td [-gen-x output]...): runs mlir-tblgen; outputs
# land beside the source's path in the build folder.
function(mega_tablegen target source)
  cmake_path(GET source STEM stem)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  file(GLOB_RECURSE depends ${PROJECT_SOURCE_DIR}/dialects/*.td)
  set(outputs)
  set(arguments ${ARGN})
  while(arguments)
    list(POP_FRONT arguments action output)
    string(REPLACE "," ";" action "${action}")
    set(file ${CMAKE_BINARY_DIR}/${folder}/${output})
    add_custom_command(OUTPUT ${file}
      COMMAND ${LLVM_TOOLS_BINARY_DIR}/mlir-tblgen ${action}
        -I ${MLIR_INCLUDE_DIRS} -I ${PROJECT_SOURCE_DIR}
        ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${file}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} ${depends}
      COMMENT "TableGen ${output}" VERBATIM)
    list(APPEND outputs ${file})
  endwhile()
  add_custom_target(${target} DEPENDS ${outputs})
endfunction()

# mega_mlir_library(name SOURCES ... [DEPENDS tablegen...] [LINK ...]
#                   [PRECOMPILE header...] [REUSE library])
# PRECOMPILE makes a precompiled header, REUSE takes that of another library:
# MLIR's headers and the tfm ops are most of the time a pass takes to compile.
function(mega_mlir_library name)
  cmake_parse_arguments(ARG "" "REUSE" "SOURCES;DEPENDS;LINK;PRECOMPILE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC mega_mlir ${ARG_LINK})
  target_compile_options(${name} PRIVATE -fno-exceptions)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  if(ARG_PRECOMPILE)
    target_precompile_headers(${name} PRIVATE ${ARG_PRECOMPILE})
  endif()
  if(ARG_REUSE)
    target_precompile_headers(${name} REUSE_FROM ${ARG_REUSE})
  endif()
endfunction()
