#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/typed_numbers.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {

/// A row of nccl-tests' table. Times are those of one operation.
struct NcclTestsRow {
  Bytes size;
  std::optional<Seconds> out_of_place, in_place;  ///< at least one of them

  /// The shorter of the two times, because a disturbance only makes a measurement longer.
  Seconds time() const;
};

/// The output of nccl-tests.
struct NcclTests {
  std::string operation;  ///< "all_reduce"; empty if the file does not say
  int ranks = 0;          ///< 0: the file does not say
  /// Columns algbw and busbw [GB/s] of the row with the greatest algbw of a text; 0: none
  double algorithm_bandwidth = 0, bus_bandwidth = 0;
  std::vector<NcclTestsRow> rows;
};

/// Reads the text of nccl-tests with any of its headers (2019: without `root`, before: without `redop`), or
/// its JSON
/// (`-J`). Lines of NCCL's log and rows of 0 bytes are left out.
/// @throws InputError that names the line
NcclTests read_nccl_tests(std::string_view text, const std::string& file_name);

/// The columns of a header of nccl-tests that hold times, counted in the words of a row; empty if the line is
/// no such header. "#  size  count  type  redop  time  algbw ..." gives 4.
std::vector<std::size_t> nccl_tests_time_columns(const std::string& line);

/// Message times from the output of a third-party benchmark.
struct BenchmarkTimes {
  std::string what;  ///< "OSU MPI Allreduce Latency Test, 8 ranks"
  int ranks = 0;     ///< 0: the file does not say
  std::vector<MessageTime> times;
};

/// Reads the text or JSON of nccl-tests (sendrecv_perf, all_reduce_perf) and the text of the OSU
/// micro-benchmarks (osu_latency, osu_bw, osu_allreduce). An all-reduce of S bytes in T seconds over P ranks
/// counts as the 2 (P - 1) messages of S / P bytes that a ring sends one after the other.
/// @param ranks  ranks of an all-reduce, used if the file does not say; 0: unknown
/// @throws InputError that names the line
BenchmarkTimes read_benchmark(std::string_view text, const std::string& file_name, int ranks);

}  // namespace stepcast
