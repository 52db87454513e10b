#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "core/zeroed_array.hpp"
#include "sim/engine.hpp"
#include "sim/rising_queue.hpp"

namespace stepcast {

/// Flows that share links max-min fairly, as SimGrid shares them, at less cost a flow: all changes of a date
/// are shared out at once, and only among the flows that they can reach over links that may be full. Needs no
/// SimGrid, so that any number of them may run in one process, each on an engine of its own.
class MaxMinLinks {
 public:
  MaxMinLinks(Engine& engine, int links, std::function<BytesPerSecond(int link)> bandwidth);

  /// Moves `size` over all of `links` at once (one listed k times carries k times as much), then calls
  /// `done`. Latency is not counted.
  void start_flow(std::span<const int> links, Bytes size, Engine::Callback&& done);

  std::int64_t flows() const { return flows_; }  ///< started so far
  /// Flows that were started or looked at so far: some 0.2 us each.
  std::int64_t work() const { return work_; }
  void limit_work(std::int64_t most) { most_work_ = most; }  ///< beyond it TooMuchWork is thrown
  struct TooMuchWork {};

 private:
  using Number = std::uint32_t;

  struct Hop {
    Number link;  ///< place in links_
    Number slot;  ///< of the flow among those of the link
  };
  struct Flow {
    std::vector<Hop> hops;
    double left = 0, since = 0;  ///< bytes to go, at a date
    double rate = 0, most = 0;   ///< bytes a second; what its narrowest link would give to it alone
    std::uint32_t generation = 0;
    bool reached = false, fixed = false;
    Engine::Callback done;
  };
  /// A link that flows have crossed.
  struct Link {
    double bandwidth = 0;
    double wanted = 0;  ///< sum of what each of its flows would take at most
    std::vector<Number> flows;
    double spare = 0;  ///< while it is shared out: left for the flows that are not fixed
    std::size_t open = 0;
    bool reached = false;

    bool may_be_full() const;
  };
  struct End {
    double date;
    Number flow;
    std::uint32_t generation;
    bool before(const End& other) const { return date != other.date ? date < other.date : flow < other.flow; }
  };
  struct Share {
    double rate;
    Number link;
    bool before(const Share& other) const {
      return rate != other.rate ? rate < other.rate : link < other.link;
    }
  };

  Number link_of(int link);
  Number free_flow();
  void changed(Number link, bool was_full);
  void leave(Number flow);
  void ask_to_share();
  void share_out();
  void reach(Number flow);
  void reach_link(Number link);
  void fill();
  const Share* narrowest();
  void fix(Number flow, double rate);
  void arm();
  void look();

  Engine& engine_;
  std::function<BytesPerSecond(int link)> bandwidth_;
  ZeroedArray<Number> numbers_;  ///< of each link its place in links_ plus one; 0: none yet
  std::vector<Link> links_;
  std::vector<Flow> pool_;
  std::vector<Number> free_;
  RisingQueue<End> ends_;                        ///< of flows; stale where the flow has another generation
  double armed_ = 1e300;                         ///< date of the next look
  bool asked_ = false;                           ///< to share out at this date
  std::vector<Number> started_, changed_links_;  ///< since the last sharing
  std::vector<Number> reached_flows_, reached_links_;  ///< by this one
  RisingQueue<Share> shares_;
  std::int64_t flows_ = 0, work_ = 0;
  std::int64_t most_work_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace stepcast
