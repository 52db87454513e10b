# Warnings and floating-point rules that every target shares.
function(stepcast_options target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${STEPCAST_WERROR}>>:-Werror>
    $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>  # the same bits from gcc and clang
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>  # g++ 12 warns of std::string's own code (GCC bug 105651)
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-Xcompiler=-Wall,-Wextra,-Wno-restrict>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${STEPCAST_WERROR}>>:-Werror=all-warnings>)
endfunction()

# stepcast_library(core SOURCES a.cpp PUBLIC ... PRIVATE ...): one static library a folder.
function(stepcast_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  stepcast_options(${name})
endfunction()

# stepcast_tests(core SOURCES a_test.cpp LIBRARIES core): one executable a folder, one process a TEST_CASE
# (SimGrid 3.32 keeps its clock and its configuration across engines).
function(stepcast_tests folder)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${folder}_tests ${arg_SOURCES})
  target_link_libraries(${folder}_tests PRIVATE ${arg_LIBRARIES} Catch2::Catch2WithMain)
  target_compile_definitions(${folder}_tests PRIVATE STEPCAST_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_precompile_headers(${folder}_tests PRIVATE  # half of a test's time; behind it g++ 12 warns of std::string (bug 105651)
    "$<$<CXX_COMPILER_ID:Clang>:<catch2/catch.hpp$<ANGLE-R>>")
  stepcast_options(${folder}_tests)
  catch_discover_tests(${folder}_tests TEST_PREFIX "${folder}: " PROPERTIES TIMEOUT 300)
endfunction()
