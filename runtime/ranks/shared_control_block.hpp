#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "runtime/transport/shared_memory_transport.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

/// RankState::process of a rank on another machine that died there.
constexpr int kDiedElsewhere = -1;

/// State of a rank that the rank writes and the launcher reads.
struct RankState {
  /// Process id; 0: the rank has not started yet, or runs on another machine; or kDiedElsewhere.
  std::atomic<int> process;
  /// Heartbeats of the rank's threads: each counter grows while its thread works or waits for another rank.
  std::atomic<std::uint64_t> heartbeat;  ///< of the program
  /// Heartbeat of the thread that executes collectives; 0: none runs.
  std::atomic<std::uint64_t> collectives_heartbeat;
  std::atomic<std::uint64_t> messages_heartbeat;  ///< of the thread that carries messages; 0: none runs
  std::atomic<std::uint64_t> input_heartbeat;     ///< of the thread that loads input; 0: none runs
  /// Stage that the rank waits for or last waited for; 0: none.
  std::atomic<std::uint32_t> waiting_for_stage;
  std::atomic<int> finished;  ///< 1: the rank reached its end
  char host[64];              ///< host name, written by the launcher
  char status[128];           ///< what the rank is doing, such as "step 3 of workers=2"; written by the rank
};

/// Shared memory of the launcher and all ranks of a machine: rank states, the stage barrier, and the ring
/// buffers of SharedMemoryTransport.
class SharedControlBlock {
 public:
  static constexpr int kMaxRanks = 64;

  /// Creates the block in `file`, which is replaced. @param ring  floats of a ring buffer
  /// @throws std::system_error
  static std::unique_ptr<SharedControlBlock> create(const std::filesystem::path& file, int ranks,
                                                    std::int64_t ring = SharedMemoryTransport::kRing);
  /// Opens the block that `create` made. @throws std::system_error
  static std::unique_ptr<SharedControlBlock> open(const std::filesystem::path& file, int ranks);
  SharedControlBlock(const SharedControlBlock&) = delete;
  ~SharedControlBlock();

  int ranks() const { return ranks_; }
  RankState& rank(RankId rank) const;
  /// Number of the last stage that ranks may enter.
  std::atomic<std::uint32_t>& stage_barrier() const;
  /// Memory of a SharedMemoryTransport. @param which  0: for collectives, 1: for messages
  RingBuffers ring_memory(int which) const;

 private:
  SharedControlBlock(void* memory, std::size_t bytes, int ranks)
      : memory_(memory), bytes_(bytes), ranks_(ranks) {}

  void* memory_;
  std::size_t bytes_;
  int ranks_;
};

/// Sets the status text of this rank and counts a heartbeat; cheap enough for every step.
void set_status(RankState& state, const char* status);

/// Lets the ranks enter `stage`.
void open_stage(SharedControlBlock& control, std::uint32_t stage);
/// Called by a rank: returns when `stage` is open.
void wait_for_stage(SharedControlBlock& control, RankState& state, std::uint32_t stage);

}  // namespace stepcast
