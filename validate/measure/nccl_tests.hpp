#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/typed_numbers.hpp"

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
  int nodes = 0;          ///< hosts in the list of devices; 0: the file does not say
  /// Columns algbw and busbw [GB/s] of the row with the greatest algbw of a text; 0: none
  double algorithm_bandwidth = 0, bus_bandwidth = 0;
  std::vector<NcclTestsRow> rows;
  int wrong_rows = 0;           ///< rows whose results were wrong (#wrong)
  std::set<std::string> types;  ///< of the elements, such as "float"

  /// What a reader of the table should know: wrong results, types other than float; empty if there is
  /// nothing.
  std::string doubts() const;
};

/// "all_reduce" of a text with "all_reduce_perf"; empty if there is no such program.
std::string nccl_operation_in(const std::string& line);

/// Reads what nccl-tests writes with `-J`. @throws InputError
NcclTests read_nccl_json(std::string_view text, const std::string& file);

}  // namespace stepcast
