#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/measure/link_results.hpp"

namespace stepcast {

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
