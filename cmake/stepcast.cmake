option(STEPCAST_PRECOMPILED_HEADERS "Precompile headers of the standard library: the build takes a third less time" ON)

# Warnings and floating-point rules that every target shares.
function(stepcast_options target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${STEPCAST_WERROR}>>:-Werror>
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,Clang>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-shadow>  # a unity build sees other files' constants
    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>  # gcc and clang compute the same bits
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>  # g++ 12 warns of std::string's code (bug 105651)
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra,-Wno-restrict>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${STEPCAST_WERROR}>>:-Werror=all-warnings>)
endfunction()

# Headers of the standard library and fmt that most files read. <filesystem> is not among them: with it,
# argument-dependent lookup finds std::quoted in files that do not include <iomanip>.
set(STEPCAST_COMMON_HEADERS
  <algorithm> <array> <chrono> <cmath> <cstdint> <fstream> <functional> <map> <memory> <numeric> <optional> <set> <span>
  <sstream> <stdexcept> <string> <string_view> <utility> <vector> <fmt/format.h>)

# Precompiles these headers, and others that are given, for a target. REUSE names a target with the same compiler flags whose
# result is used instead.
function(stepcast_precompile target)
  cmake_parse_arguments(arg "" "REUSE" "" ${ARGN})
  if(NOT STEPCAST_PRECOMPILED_HEADERS)
    return()
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)  # its definitions have to be those of the precompiled headers
  if(arg_REUSE)
    target_precompile_headers(${target} REUSE_FROM ${arg_REUSE})
    return()
  endif()
  list(TRANSFORM STEPCAST_COMMON_HEADERS REPLACE "<(.*)>" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE headers)
  list(TRANSFORM arg_UNPARSED_ARGUMENTS REPLACE "<(.*)>" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE others)
  target_precompile_headers(${target} PRIVATE ${headers} ${others})
endfunction()

# Sets `variable` to all .cpp files below the current folder except paths that match the regular expression `exclude`.
# Exclude folders with their own CMakeLists.txt, which are separate libraries.
function(stepcast_sources variable exclude)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
  if(exclude)
    list(FILTER sources EXCLUDE REGEX "${exclude}")
  endif()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# Leaves the given sources that match the regular expression `apart` out of unity builds.
function(stepcast_compile_apart apart)
  if(apart)
    list(FILTER ARGN INCLUDE REGEX "${apart}")
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# Sets `variable` to the libraries of this project that the lines of these folders in layers.txt name.
function(stepcast_layers variable)
  file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/layers.txt lines)
  foreach(folder ${ARGN})
    set(line ${lines})
    list(FILTER line INCLUDE REGEX "^${folder} ")
    string(REPLACE " " ";" words "${line}")
    foreach(word ${words})
      if(TARGET ${word} AND (word STREQUAL arithmetic OR IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${word}))
        list(APPEND libraries ${word})
      endif()
    endforeach()
  endforeach()
  set(${variable} ${libraries} PARENT_SCOPE)
endfunction()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/layers.txt)

# stepcast_library(core PUBLIC ... PRIVATE ...): the folder as one static library, with the libraries of layers.txt. LAYERS: its
# lines there, if it is not one of its name. EXCLUDE: paths that do not belong to it.
# APART: files whose names would collide in a unity build, which compiles several files at once. The release build compiles a
# library with -O1, in three quarters of the time of -O2. SIMULATION: libraries in which a forecast spends its time get -O2.
# FLAGS: compiler flags of its own, so it cannot use the headers that others precompiled.
function(stepcast_library name)
  cmake_parse_arguments(arg "SIMULATION" "EXCLUDE;APART" "LAYERS;PUBLIC;PRIVATE;FLAGS" ${ARGN})
  if(NOT arg_LAYERS)
    set(arg_LAYERS ${name})
  endif()
  stepcast_layers(layers ${arg_LAYERS})
  stepcast_sources(sources "${arg_EXCLUDE}")
  stepcast_compile_apart("${arg_APART}" ${sources})
  add_library(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_link_libraries(${name} PUBLIC ${layers} ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  stepcast_options(${name})
  set(optimized others)
  if(arg_SIMULATION)
    set(optimized simulation)
  else()
    target_compile_options(${name} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
  endif()
  get_property(precompiled GLOBAL PROPERTY stepcast_precompiled_${optimized})
  if(arg_FLAGS)
    target_compile_options(${name} PRIVATE ${arg_FLAGS})
  elseif(precompiled)
    stepcast_precompile(${name} REUSE ${precompiled})
  else()
    stepcast_precompile(${name})
    set_property(GLOBAL PROPERTY stepcast_precompiled_${optimized} ${name})
  endif()
endfunction()

# Catch2's one header takes half of a test's time to compile. All tests share the result of core's.
function(stepcast_precompile_tests target)
  if(TARGET core_tests AND NOT target STREQUAL core_tests)
    stepcast_precompile(${target} REUSE core_tests)
  else()
    stepcast_precompile(${target} <catch2/catch.hpp>)
  endif()
endfunction()

# Several files are compiled as one, so each has a namespace of its own (stepcast::FILE).
# stepcast_tests(core LIBRARIES core): builds the tests of the folder of this name, or else of the current folder, as one
# executable. CTest runs each TEST_CASE in a process of
# its own, because SimGrid 3.32 keeps its clock and configuration across engines. EXCLUDE as above; SOURCES: files of other
# folders; TIMEOUT: seconds of a test (300); LONG: cases with the tag [long] get the label `long`, so that `ctest --preset long`
# runs them, and test.sh does not.
function(stepcast_tests name)
  cmake_parse_arguments(arg "LONG" "EXCLUDE;APART;TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/${name})
    set(folder .)
    stepcast_sources(sources "${arg_EXCLUDE}")
  else()
    set(folder ${name})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${name}/*.cpp)
    if(arg_EXCLUDE)
      list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
    endif()
  endif()
  stepcast_compile_apart("${arg_APART}" ${sources})
  add_executable(${name}_tests ${sources} ${arg_SOURCES})
  set_target_properties(${name}_tests PROPERTIES UNITY_BUILD_BATCH_SIZE 8  # names of more files would collide
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${folder})
  target_include_directories(${name}_tests PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  target_link_libraries(${name}_tests PRIVATE ${arg_LIBRARIES} Catch2::Catch2WithMain)
  target_compile_definitions(${name}_tests PRIVATE STEPCAST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  stepcast_precompile_tests(${name}_tests)
  stepcast_options(${name}_tests)
  target_compile_options(${name}_tests PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)  # compiles in three quarters of -O2's time
  if(arg_LONG)
    catch_discover_tests(${name}_tests TEST_SPEC "[long]" TEST_PREFIX "${name}: "
      WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${folder}
      PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS long COST 50)  # the longest start first
    set(others TEST_SPEC "~[long]")
  endif()
  catch_discover_tests(${name}_tests ${others} TEST_PREFIX "${name}: " WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${folder}
    PROPERTIES TIMEOUT ${arg_TIMEOUT})
endfunction()
