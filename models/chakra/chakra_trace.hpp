#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace stepcast {

/// A node of a Chakra execution trace: what one rank does, with the nodes that must end before it. Numbers
/// and names as in the schema. Source: schema/protobuf/et_def.proto of github.com/mlcommons/chakra;
/// attributes as ASTRA-sim's feeder reads them (astra-sim/workload of github.com/astra-sim/astra-sim).
struct ChakraNode {
  enum class Type { invalid, metadata, mem_load, mem_store, compute, send, receive, collective };
  enum class Collective {
    all_reduce,
    reduce,
    all_gather,
    gather,
    scatter,
    broadcast,
    all_to_all,
    reduce_scatter,
    reduce_scatter_block,
    barrier
  };

  std::uint64_t id = 0;
  std::string name = {};
  Type type{};
  std::vector<std::uint64_t> after = {};  ///< control and data dependencies
  std::uint64_t microseconds = 0;         ///< duration
  bool on_host = true;                    ///< is_cpu_op
  Collective collective{};                ///< comm_type
  /// comm_size [B]: what a message carries; of a collective, the buffer that a rank puts in. An all-gather
  /// puts in its own part, a reduce-scatter the whole.
  std::uint64_t bytes = 0;
  std::int64_t source = -1, target = -1;    ///< comm_src, comm_dst: ranks; -1: not given
  std::int64_t tag = 0;                     ///< comm_tag
  std::string group = {};                   ///< pg_name; empty or "0": all ranks
  bool has_kind = false, has_size = false;  ///< comm_type and comm_size are given
  bool over_some_dimensions = false;        ///< involved_dim leaves out a dimension of the network
  std::uint64_t operations = 0;  ///< num_ops: arithmetic of a node whose time another tool computes
  std::string values = {};       ///< inputs.values; of PyTorch's metadata: its process groups, as JSON
};

/// Writes one rank's trace: the format's version and the nodes, each with its length before it.
/// @param nodes  calls its argument with one node after the other
/// @throws DiskFull; InputError `FILE: cannot write: REASON`
void write_chakra_trace(const std::filesystem::path& file,
                        const std::function<void(const std::function<void(const ChakraNode&)>&)>& nodes);

/// Reads one rank's trace. Fields and attributes that ChakraNode has not are skipped.
/// @throws InputError `FILE: byte N: expected WHAT, got ...`
std::vector<ChakraNode> read_chakra_trace(const std::filesystem::path& file);

}  // namespace stepcast
