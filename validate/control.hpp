#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>

namespace stepcast {

/// What a rank last said of itself, for the process that watches.
struct RankState {
  std::atomic<int> process;  ///< its id; 0: not there yet
  /// Signs of life of its threads: each grows while the thread works or waits as it should.
  std::atomic<std::uint64_t> beat;              ///< of its program
  std::atomic<std::uint64_t> collectives_beat;  ///< of what plays collectives; 0: there is no such thread
  std::atomic<std::uint64_t> messages_beat;     ///< of what carries messages; 0: there is no such thread
  std::atomic<std::uint32_t> waiting;           ///< for this stage to be let in
  std::atomic<int> finished;                    ///< it came to its end
  char host[64];                                ///< written by the process that watches
  char doing[128];  ///< in words, such as "step 3 of workers=2"; written by the rank only
};

/// Memory that the watching process and all ranks of a machine share: states, a gate, and the rings of
/// SharedRings.
class Control {
 public:
  static constexpr int kMostRanks = 64;

  /// Makes it at `file`, which is replaced. @throws std::system_error
  static std::unique_ptr<Control> create(const std::filesystem::path& file, int ranks);
  /// What `create` made. @throws std::system_error
  static std::unique_ptr<Control> open(const std::filesystem::path& file, int ranks);
  Control(const Control&) = delete;
  ~Control();

  int ranks() const { return ranks_; }
  RankState& rank(int index) const;
  /// Stages that the watching process has let the ranks enter.
  std::atomic<std::uint32_t>& gate() const;
  /// Memory of SharedRings: 0 for collectives, 1 for messages.
  void* rings(int which) const;

 private:
  Control(void* memory, std::size_t bytes, int ranks) : memory_(memory), bytes_(bytes), ranks_(ranks) {}

  void* memory_;
  std::size_t bytes_;
  int ranks_;
};

/// Says what this rank does; cheap enough for every step.
void say(RankState& state, const char* doing);

/// Lets the ranks enter stage `stage`, and waits until that is so.
void open_gate(Control& control, std::uint32_t stage);
void wait_at_gate(Control& control, RankState& state, std::uint32_t stage);

}  // namespace stepcast
