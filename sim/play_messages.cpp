#include <memory>

#include "sim/play.hpp"

namespace stepcast {
namespace {

/// One collective being played message by message. A rank enters a round when its sends and receives of the
/// rounds before are done; a message starts when both its ends have entered its round.
class MessagePlay : public std::enable_shared_from_this<MessagePlay> {
 public:
  MessagePlay(const Carrier& carrier, const MessagesOf& what, Engine::Callback done)
      : carrier_(carrier), what_(what), done_(std::move(done)) {
    const auto ranks = static_cast<std::size_t>(what.schedule.ranks);
    ranks_.resize(ranks);
    for (const Phase& phase : what.schedule.phases) {
      phases_.emplace_back();
      phases_.back().ends.assign(phase.edges->size(), 0);
      phases_.back().edges_of.resize(ranks);
      for (std::size_t e = 0; e < phase.edges->size(); ++e) {
        const Edge& edge = (*phase.edges)[e];
        phases_.back().edges_of[static_cast<std::size_t>(edge.source)].push_back(e);
        phases_.back().edges_of[static_cast<std::size_t>(edge.target)].push_back(e);
      }
    }
    unfinished_ = ranks;
  }

  void start() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) advance(rank);
  }

 private:
  struct Rank {
    std::size_t phase = 0;
    int round = -1;
    int outstanding = 0;
  };
  struct PhaseState {
    std::vector<int> ends;                           ///< of each edge: ends that have entered its round
    std::vector<std::vector<std::size_t>> edges_of;  ///< of each rank
  };

  const Phase& phase(std::size_t index) const { return what_.schedule.phases[index]; }

  static bool active(const Phase& phase, const Edge& edge, int round) {
    return round >= edge.delay && round < edge.delay + phase.active;
  }

  /// Takes the rank to its next round with something to do.
  void advance(std::size_t index) {
    Rank& rank = ranks_[index];
    while (rank.outstanding == 0) {
      if (++rank.round >= (rank.phase < phases_.size() ? phase(rank.phase).rounds : 0)) {
        rank.round = -1;
        if (++rank.phase >= phases_.size()) return finish_rank();
        continue;
      }
      enter(index);
    }
  }

  void enter(std::size_t index) {
    Rank& rank = ranks_[index];
    PhaseState& state = phases_[rank.phase];
    for (const std::size_t e : state.edges_of[index]) {
      if (!active(phase(rank.phase), (*phase(rank.phase).edges)[e], rank.round)) continue;
      ++rank.outstanding;
      if (++state.ends[e] == 2) {
        state.ends[e] = 0;
        send(rank.phase, e);
      }
    }
  }

  Paths::Path path_of(const Edge& edge) {
    const auto& endpoints = what_.placement.endpoints;
    return carrier_.paths.between(endpoints[static_cast<std::size_t>(edge.source)],
                                  endpoints[static_cast<std::size_t>(edge.target)]);
  }

  void send(std::size_t phase_index, std::size_t e) {
    const Edge& edge = (*phase(phase_index).edges)[e];
    const Platform& platform = *what_.placement.platform;
    const Paths::Path path = path_of(edge);
    const double bytes = what_.buffer.value * phase(phase_index).unit * edge.chunks / what_.schedule.parts;
    const MessageCost& cost =
        message_cost(path.local ? platform.local_message_costs : platform.message_costs, {bytes});
    const double latency = what_.placement.latency_factor * (path.latency + cost.overhead.value);
    const Bytes size{bytes / cost.bandwidth_factor};
    carrier_.engine.at(carrier_.engine.now() + latency, [self = shared_from_this(), phase_index, e, size] {
      const Edge& sent = (*self->phase(phase_index).edges)[e];
      self->carrier_.start_flow(self->path_of(sent).links, size, [self, sent] { self->arrive(sent); });
    });
  }

  void arrive(const Edge& edge) {
    for (const int end : {edge.source, edge.target}) {
      const auto rank = static_cast<std::size_t>(end);
      if (--ranks_[rank].outstanding == 0) advance(rank);
    }
  }

  void finish_rank() {
    if (--unfinished_ == 0) carrier_.engine.at(carrier_.engine.now(), std::move(done_));
  }

  Carrier carrier_;
  MessagesOf what_;
  Engine::Callback done_;
  std::vector<Rank> ranks_;
  std::vector<PhaseState> phases_;
  std::size_t unfinished_;
};

}  // namespace

void Carrier::start_flow(std::span<const int> over, Bytes size, Engine::Callback&& done) const {
  if (links != nullptr) return links->start_flow(over, size, std::move(done));
  engine.start_flow({over.begin(), over.end()}, size, std::move(done));
}

void play_messages(const Carrier& carrier, const MessagesOf& what, Engine::Callback done) {
  std::make_shared<MessagePlay>(carrier, what, std::move(done))->start();
}

}  // namespace stepcast
