#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace stepcast {

/// Effect of a message on the receiver's buffer.
enum class OnReceive { reduce, copy };

/// A transfer that a phase repeats: rank `source` sends `chunks` consecutive chunks to rank `target`.
struct Edge {
  int source = 0;
  int target = 0;
  int chunk = 0;   ///< first chunk, in the phase's units from `base`
  int chunks = 1;  ///< how many
  int base = 0;    ///< first part of the region that this edge works in
  int delay = 0;   ///< rounds of the phase before the first use (pipelines)
};

/// Rounds with the same edges. In its k-th active round an edge moves `unit x chunks` consecutive parts, from
/// part `base + unit x ((chunk + offset + k x step) mod modulus)` on. Example, the reduce-scatter of a ring
/// of 4 ranks: the edge from rank r to r + 1 has chunk r; with modulus 4, offset 0 and step -1, rank r sends
/// part r in round 0 and part (r - 1) mod 4 in round 1.
struct Phase {
  std::shared_ptr<const std::vector<Edge>> edges;
  int rounds = 1;  ///< rounds of the phase; an edge is active in rounds delay .. delay + active - 1
  int active = 1;
  int unit = 1;     ///< parts in a chunk
  int modulus = 1;  ///< chunks in a region
  int offset = 0;
  int step = 0;
  OnReceive on_receive = OnReceive::reduce;
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
  return static_cast<__int128>(elements) * index / parts;
}

/// Slice that `edge` moves in its `k`-th active round.
Slice slice_of(const Schedule& schedule, const Phase& phase, const Edge& edge, int k, std::int64_t elements);

/// Number of messages of the whole schedule.
double message_count(const Schedule& schedule);

/// The ranks of a collective, in order. Rank r is on node r / ranks_per_node.
struct Group {
  int ranks = 1;
  int ranks_per_node = 1;  ///< divides `ranks`, or is >= `ranks`
  int root = 0;            ///< local rank that sums for its node with LocalPart::flat

  int nodes() const { return (ranks + ranks_per_node - 1) / ranks_per_node; }
};

// In the costs below, P = ranks, S = bytes of the buffer, a = latency of a message, B = bandwidth of a link.
// The network is uncontended and full-duplex. Every function throws std::invalid_argument if P < 1.

/// Ring all-reduce: 2 (P-1) rounds, 2 (P-1)/P S bytes sent by each rank, 2 (P-1) (a + S / P / B) seconds.
/// `channels` rings share the buffer. Each ring leaves a node at another rank, and so by another NIC. Source:
/// P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", J. Parallel
/// Distrib. Comput. 69 (2009).
Schedule ring_all_reduce(const Group& group, int channels = 1);
Schedule ring_reduce_scatter(const Group& group, int channels = 1);  ///< first half of the ring: P-1 rounds
Schedule ring_all_gather(const Group& group, int channels = 1);      ///< second half: P-1 rounds

/// Recursive halving and doubling: 2 log2 P rounds, 2 (P-1)/P S bytes sent by each rank; distances double
/// while messages halve. If P is no power of two: binary blocks, with two more rounds for every further
/// block. Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations
/// in MPICH", Int. J. High Perform. Comput. Appl. 19 (2005); binary blocks: P. Goyal et al.,
/// arXiv:1706.02677, section 4.
Schedule halving_doubling_all_reduce(const Group& group);

/// Recursive doubling: log2 P rounds of the whole buffer, log2 P (a + S / B) seconds. If P is no power of
/// two: two more rounds.
Schedule recursive_doubling_all_reduce(const Group& group);

/// Binomial trees, reduce to rank 0 and broadcast: 2 ceil(log2 P) (a + S / B) seconds.
Schedule binomial_all_reduce(const Group& group);
Schedule binomial_broadcast(const Group& group);  ///< from rank 0
Schedule binomial_reduce(const Group& group);     ///< to rank 0

/// All buffers directly to rank 0, which adds them, or from rank 0 to all: a + (P-1) S / B seconds, all
/// messages at once over its link.
Schedule flat_reduce(const Group& group);
Schedule flat_broadcast(const Group& group);

/// Two complementary binary trees with half of the buffer each. `pieces` pieces go up and down in a pipeline.
/// Source: P. Sanders, J. Speck, J. L. Traff, "Two-tree algorithms for full bandwidth broadcast, reduction
/// and scan", Parallel Computing 35 (2009).
Schedule double_tree_all_reduce(const Group& group, int pieces);

/// All-to-all: P-1 rounds; in round k rank r sends to rank r + k. The buffer is the matrix of all data: part
/// s x P + t goes from rank s to rank t.
Schedule all_to_all(const Group& group);

/// Algorithm of a hierarchical all-reduce inside a node and between nodes.
enum class LocalPart { reduce_scatter, leader, flat };
enum class NetworkPart { ring, halving_doubling, binomial_tree };

/// Hierarchical all-reduce: inside every node, between nodes, inside again. `reduce_scatter`: each rank of a
/// node sums a share of the buffer between nodes. `leader`: one rank of each node sums the whole buffer
/// between nodes, after a reduce and before a broadcast inside the node, by binomial trees. `flat`: likewise,
/// but all ranks of a node send their buffers to Group::root at once, and receive the sum from it at once.
Schedule hierarchical_all_reduce(const Group& group, LocalPart local, NetworkPart network);

inline void check_group(const Group& group) {
  if (group.ranks < 1 || group.ranks_per_node < 1)
    throw std::invalid_argument("a collective needs ranks >= 1");
}

inline std::shared_ptr<const std::vector<Edge>> share(std::vector<Edge> edges) {
  return std::make_shared<const std::vector<Edge>>(std::move(edges));
}

/// A phase of one round.
inline Phase one_round(std::vector<Edge> edges, int parts, OnReceive on_receive) {
  Phase phase;
  phase.edges = share(std::move(edges));
  phase.modulus = parts;
  phase.on_receive = on_receive;
  return phase;
}

/// Copies of a schedule that run at the same time on disjoint ranks or disjoint regions, phase by phase.
/// @param place  sets the ranks and the region of an edge of a copy
Schedule side_by_side(const Schedule& one, int copies, const std::function<void(Edge&, int copy)>& place);

}  // namespace stepcast
