#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace stepcast {

/// Effect of a message on the receiver's buffer.
enum class Arrival { add, replace };

/// A transfer that a phase repeats: rank `source` sends `chunks` consecutive chunks to rank `target`.
struct Edge {
  int source = 0;
  int target = 0;
  int chunk = 0;   ///< first chunk, in the phase's units from `base`
  int chunks = 1;  ///< how many
  int base = 0;    ///< first part of the region that this edge works in
  int delay = 0;   ///< rounds of the phase before the first use (pipelines)
};

/// Rounds with the same edges. In its k-th active round an edge moves the parts
/// `base + unit x ((chunk + offset + k x step) mod modulus)` and the `unit x chunks - 1` after it.
struct Phase {
  std::shared_ptr<const std::vector<Edge>> edges;
  int rounds = 1;  ///< rounds of the phase; an edge is active in rounds delay .. delay + active - 1
  int active = 1;
  int unit = 1;     ///< parts in a chunk
  int modulus = 1;  ///< chunks in a region
  int offset = 0;
  int step = 0;
  Arrival arrival = Arrival::add;
};

/// A collective as data. The simulator executes it over modelled links, a real run over real ones, and a test
/// on plain vectors. A rank enters round k when its own sends and receives of the rounds before are complete.
struct Schedule {
  int ranks = 1;
  int parts = 1;  ///< the buffer has this many parts, whose sizes differ by at most one element
  std::vector<Phase> phases;
};

/// Elements [begin, end) of the buffer a collective works on.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
};

/// First element of part `index` of `parts` in a buffer of `elements`.
constexpr std::int64_t part_begin(std::int64_t elements, int parts, int index) {
  return static_cast<std::int64_t>(static_cast<__int128>(elements) * index / parts);
}

/// Slice that `edge` moves in its `k`-th active round.
Slice slice_of(const Schedule& schedule, const Phase& phase, const Edge& edge, int k, std::int64_t elements);

/// Number of messages of the whole schedule.
double message_count(const Schedule& schedule);

}  // namespace stepcast
