#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/measure/link_results.hpp"
#include "validate/measure/nccl_tests.hpp"

namespace stepcast {

/// Reads the text of nccl-tests of any version, or its JSON (`-J`). Lines of NCCL's log and rows of 0 bytes
/// are left out, and the ranks that `mpirun --tag-output` and `srun -l` put before each line.
/// @throws InputError that names the line, also of a second table
NcclTests read_nccl_tests(std::string_view text, const std::string& file_name);

/// The collective of a table: that of its header, or the one that the user names.
/// @param asked  value of --collective; may be empty
/// @throws InputError if neither says it, or they contradict each other
std::string collective_of(const NcclTests& tests, const std::string& asked, const std::string& file);

/// Message times from the output of a third-party benchmark.
struct BenchmarkTimes {
  std::string what;  ///< "OSU MPI Allreduce Latency Test, 8 ranks"
  int ranks = 0;     ///< 0: the file does not say
  std::vector<MessageTime> times;
  std::string doubts = {};  ///< about the table, in `what` too
};

/// Reads the text or JSON of nccl-tests (sendrecv, all_reduce, all_gather, reduce_scatter) and the text of
/// the OSU micro-benchmarks (osu_latency, osu_bw, osu_allreduce). An all-reduce of S bytes in T seconds over
/// P ranks counts as the 2 (P - 1) messages of S / P bytes that a ring sends one after the other, an
/// all-gather or reduce-scatter as P - 1.
/// @param ranks      ranks of a collective, used if the file does not say; 0: unknown
/// @param operation  collective of a table of nccl-tests that does not name it; may be empty
/// @throws InputError that names the line
BenchmarkTimes read_benchmark(std::string_view text, const std::string& file_name, int ranks,
                              const std::string& operation = "");

}  // namespace stepcast
