#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "models/chakra/chakra_trace.hpp"

namespace stepcast {

/// The traces of all ranks of a run.
struct ChakraRun {
  std::vector<std::filesystem::path> files;    ///< by rank
  std::vector<std::vector<ChakraNode>> nodes;  ///< by rank, each node after those that it comes after
  std::map<std::string, std::vector<int>> groups = {};  ///< ranks of each process group, by its name
};

/// Reads the files `*.RANK.et` of a folder, of ranks 0 to the last, and the groups of `comm_group.json`
/// (ASTRA-sim) or of the nodes of PyTorch's converter that list them.
/// @throws InputError for a missing rank, a node that comes after one that is not there or after itself, a
/// rank that is not there, a type of node or collective that cannot be replayed, arithmetic without a time,
/// or a message that only one side knows
ChakraRun read_chakra_run(const std::filesystem::path& folder);

/// The ranks that take part in a collective. @throws InputError for an unknown group
std::vector<int> ranks_of(const ChakraRun& run, int rank, const ChakraNode& collective);

}  // namespace stepcast
