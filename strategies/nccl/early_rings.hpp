#pragma once

#include "platforms/software.hpp"
#include "strategies/nccl/channels.hpp"
#include "strategies/nccl/operation.hpp"

namespace stepcast {

/// NCCL 2.4 brought one proxy thread a communicator, trees, and buffers that outlive an operation.
constexpr int kFirstWithTrees = 204;

/// Time of a collective by the rings of NCCL 2.0 to 2.3, without the start of the kernel. `latency + size /
/// bandwidth` with the latencies of 2.5's tuning model, and what its kernels and transports add:
///
/// - until 2.2, LL serves up to 16 KiB (NCCL_LL_THRESHOLD), and a single ring up to 128 KiB, 256 KiB from
///   Volta on (NCCL_SINGLE_RING_THRESHOLD); an all-gather and a reduce-scatter count a rank's part. 2.3 sets
///   its threshold by the ranks; the quicker protocol stands for it.
/// - Rings over NVLinks are laid twice (src/transport/p2p.cu: "Duplicate the rings"). A broadcast or reduce
///   passes slices of up to 512 KiB of each of these rings, and no rank ends before the next one has sent
///   them on (src/collectives/device/broadcast.h), so that the pipeline fills anew in each operation:
///   (ranks - 2) slices.
/// - Between nodes each ring has proxy threads, which an operation wakes up (src/transport.cu), and they copy
///   LL's lines. A broadcast or reduce ends at a rank when its proxy has sent, so that consecutive operations
///   overlap: one hop counts.
/// - Without GPUDirect a rank's part crosses the device's link to the host once a hop. A second loop over the
///   buffer (parts of 2 MiB and more) hides it.
///
/// Sources: NVIDIA/nccl at 2.3.5 to 2.3.7, and the defaults of NCCL_LL_THRESHOLD and
/// NCCL_SINGLE_RING_THRESHOLD in NCCL's documentation of environment variables.
/// @param operation  no sends and receives, which these versions do not have
NcclTime early_ring_time(const Software& software, const NcclChannels& channels, NcclOperation operation,
                         double size);

}  // namespace stepcast
