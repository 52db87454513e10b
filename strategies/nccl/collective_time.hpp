#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "platforms/platform.hpp"
#include "strategies/nccl/channels.hpp"
#include "strategies/nccl/tuning.hpp"

namespace stepcast {

const std::vector<std::string>&
nccl_operation_names();                          ///< in the order of NcclOperation, as nccl-tests names them
std::string to_string(NcclAlgorithm algorithm);  ///< as NCCL names it, such as "RING"; "P2P" for sends
std::string to_string(NcclProtocol protocol);    ///< "LL", "LL128", "SIMPLE"

/// Where the ranks' parts of a buffer begin: libraries that train align them; nccl-tests before 2020 divided
/// the size by the ranks.
enum class RankParts { aligned, by_size };

/// The algorithm that NCCL chooses for a buffer of `size` bytes, and its time: the least estimate of all
/// algorithms and protocols that the version has on these channels, with the start of the kernel. All ranks
/// enter at the same time.
///
/// The estimate is NCCL's own tuning model, latency + size / bandwidth (src/graph/tuning.cc:
/// ncclTopoTuneModel and ncclTopoGetAlgoTime), with the channels of nccl_channels. Comments in the code mark
/// what is added to that model. Versions before 2.4 have early_ring_time in its place.
/// @param size  as nccl-tests counts it: the whole buffer of an all-gather or a reduce-scatter, and all
///              that a rank sends in an all-to-all
/// @param parts  by_size: parts of a reduce-scatter that begin at no multiple of 16 bytes take longer
NcclTime nccl_time(const Software& software, const NcclChannels& channels, NcclOperation operation,
                   Bytes size, RankParts parts = RankParts::aligned);

/// Bus bandwidth / algorithm bandwidth of an operation (nccl-tests, doc/PERFORMANCE.md).
double bus_factor(NcclOperation operation, int ranks);

}  // namespace stepcast
