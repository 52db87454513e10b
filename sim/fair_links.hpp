#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/zeroed_array.hpp"
#include "sim/engine.hpp"
#include "sim/rising_queue.hpp"

namespace stepcast {

/// Flows over shared links at little cost an event, for runs of very many messages.
///
/// A flow runs at the least share that any of its links gives it, share = bandwidth / flows on the link, and
/// is queued at that link. A link keeps how many bytes it has served to each flow, so that arrivals and
/// departures move no other flow. Flows look for their least share again when the number of flows on one of
/// their links has changed by a quarter. Exact where flows have one bottleneck, which stays theirs; else
/// bandwidth that flows held up elsewhere leave unused is lost (max-min sharing gives it to others). How far
/// off that is: docs/simulation.md.
class FairLinks {
 public:
  FairLinks(Engine& engine, int links, std::function<BytesPerSecond(int link)> bandwidth);

  /// Moves `size` over all of `links` at once, then calls `done`. Latency is not counted.
  void start_flow(const std::vector<int>& links, Bytes size, Engine::Callback done);

  /// The same in two steps, so that what is known before the latency need not be kept elsewhere.
  std::uint32_t prepare_flow(std::span<const int> links, Bytes size, Engine::Callback&& done);
  void start_flow(std::uint32_t prepared);
  /// Starts it at `date`. Flows of equal dates that are asked for one after the other, with nothing else
  /// between them, take one event.
  void start_flow_at(double date, std::uint32_t prepared);

  std::int64_t flows() const { return flows_; }  ///< started so far

 private:
  struct Hop {
    int queue;
    std::uint32_t slot;  ///< of the flow among those that cross the link
  };
  /// A few lie in the flow itself.
  class Hops {
   public:
    void assign(std::size_t count) {
      count_ = static_cast<std::uint32_t>(count);
      if (count > std::max<std::size_t>(kNear, room_)) {
        far_ = std::make_unique<Hop[]>(count);
        room_ = count_;
      }
    }
    Hop* begin() { return count_ > kNear ? far_.get() : near_; }
    Hop* end() { return begin() + count_; }
    const Hop* begin() const { return count_ > kNear ? far_.get() : near_; }
    const Hop* end() const { return begin() + count_; }

   private:
    static constexpr std::size_t kNear = 2;
    Hop near_[kNear]{};
    std::uint32_t count_ = 0, room_ = 0;
    std::unique_ptr<Hop[]> far_;
  };

  /// Two lines of the cache.
  struct alignas(128) Flow {
    Hops hops;
    double finish = 0;           ///< bytes served there to each flow when this one is done
    std::uint64_t sequence = 0;  ///< of its place
    int queue = 0;               ///< that holds it up
    std::uint32_t next = 0;      ///< that starts after it, in one event
    Engine::Callback done;
  };
  struct Place {
    double finish;
    std::uint64_t sequence;  ///< stale where the flow has another by now
    std::uint32_t flow;
    bool before(const Place& other) const {
      return finish != other.finish ? finish < other.finish : sequence < other.sequence;
    }
  };
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  /// A flow as a link that it crosses sees it: what it takes to tell where it is held up, without looking at
  /// the flow.
  struct Crossing {
    std::uint32_t flow = kNobody;
    int held = 0;   ///< queue that the flow is in
    int other = 0;  ///< queue of its other link, where it crosses two
    enum : int { alone, first, second, many } place = alone;  ///< of this link on its way
  };

  /// A link that flows have crossed.
  struct Queue {
    double bandwidth = 0;
    double served = 0, since = 0;     ///< bytes served to each, up to a date
    std::vector<Crossing> flows;      ///< that cross the link, and gaps (kNobody)
    std::size_t count = 0, gone = 0;  ///< flows; those that left since `considered`
    RisingQueue<Place> places;        ///< flows queued here
    std::size_t considered = 0;       ///< flows when they last looked for their least share
    double armed = 1e300;             ///< date of the next look
    std::uint32_t generation = 0;

    /// Whether flows should look for their least share: there are a quarter more or fewer than last time, or
    /// twice as many as there are have left.
    bool has_changed() const {
      const auto [less, more] = std::minmax(count, considered);
      return more - less > less / kQuarter || gone > 2 * count;
    }
    static constexpr std::size_t kQuarter = 4;
  };

  Queue& queue(int number) { return queues_[static_cast<std::size_t>(number)]; }
  double& share(int number) { return shares_[static_cast<std::size_t>(number)]; }
  void resized(int number) {
    const Queue& changed = queue(number);
    share(number) = changed.bandwidth / static_cast<double>(changed.count);
  }
  int queue_of(int link);
  void start_row(std::uint32_t first);
  void join(std::uint32_t flow);
  void settle(int queue);
  int narrowest(const Flow& flow) const;
  int narrowest(const Crossing& crossing, int at) const;
  Crossing crossing_of(std::uint32_t flow, std::size_t hop) const;
  void line_up(std::uint32_t flow, int queue, double bytes);
  void move_slot(int queue, std::size_t from, std::size_t to);
  void close_gaps(int queue);
  void reconsider(int queue);
  void arm(int queue);
  void look(int queue, std::uint32_t generation);
  void leave(std::uint32_t flow, int looking);
  void end(std::uint32_t flow);
  bool is_stale(const Place& place) const { return pool_[place.flow].sequence != place.sequence; }
  void fetch(const RisingQueue<Place>& places) const;
  std::uint32_t free_flow();

  Engine& engine_;
  std::function<BytesPerSecond(int link)> bandwidth_;
  ZeroedArray<int> numbers_;  ///< of each link its place in queues_ plus one; 0: none yet
  std::vector<Queue> queues_;
  std::vector<double> shares_;  ///< that each queue's link gives to a flow; apart, as they are looked at most
  std::vector<Flow> pool_;
  std::vector<std::uint32_t> free_;
  std::uint64_t sequence_ = 0;
  std::int64_t flows_ = 0;
  /// The last row of flows that start together, as long as another one may be added to it.
  struct Row {
    double date = -1;
    std::uint64_t asked = 0;  ///< of the engine when it was last added to
    std::uint32_t last = 0;
  };
  Row row_;
};

}  // namespace stepcast
