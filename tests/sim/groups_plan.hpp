#pragma once

#include <memory>

#include "strategies/collectives/schedule.hpp"
#include "strategies/plan/plan.hpp"
#include "tests/sim/random_case.hpp"

namespace stepcast {

/// A random step with several communicators at the same time, on a random cluster.
struct RandomGroups {
  enum Kind {
    rings,       ///< several groups of workers, each with collectives of its own, staggered
    orders,      ///< all workers in several communicators, each in another order
    tensor,      ///< data x tensor: sums inside replicas beside sums of gradients over them
    pipeline,    ///< data x pipeline
    three_ways,  ///< data x tensor x pipeline
    spatial,     ///< samples x parts of each: halos inside replicas, sums of gradients over all
  };

  RandomCase cluster;
  Kind kind;
  int communicators;  ///< rings, orders
  int ways;           ///< ranks of a tensor group
  int stages, micro_batches;
  bool dealt;               ///< rings: endpoints go to the groups in turn, else each gets consecutive ones
  Algorithm gradient;       ///< of the first communicators
  Algorithm other;          ///< of the others
  Collective::Kind inside;  ///< of tensor groups
  double crossing;          ///< bytes of an activation
  int streams;
  int workers;

  /// Workers come in multiples of this.
  int together() const { return kind == rings ? communicators : ways * stages; }
};

inline RandomGroups random_groups(std::uint32_t number) {
  using G = RandomGroups;
  using K = Collective::Kind;
  const std::uint32_t key = number + 1'000'000;  // other clusters than those of random_case
  G g{};
  g.cluster = random_case(key);
  g.kind = choice<G::Kind>({G::rings, G::orders, G::tensor, G::pipeline, G::three_ways}, key, 20);
  g.communicators = choice<int>({2, 3, 4}, key, 21);
  g.ways = g.kind == G::tensor || g.kind == G::three_ways ? choice<int>({2, 4, 8}, key, 22) : 1;
  g.stages = g.kind == G::pipeline || g.kind == G::three_ways ? choice<int>({2, 3, 4}, key, 23) : 1;
  g.micro_batches = choice<int>({1, 2, 4}, key, 24);
  g.dealt = choice<int>({0, 1, 1}, key, 25) == 1;
  const std::vector<Algorithm> algorithms{Algorithm::ring,          Algorithm::ring,
                                          Algorithm::automatic,     Algorithm::halving_doubling,
                                          Algorithm::binomial_tree, Algorithm::hierarchical};
  g.gradient = choice<Algorithm>(algorithms, key, 26);
  g.other = choice<Algorithm>(algorithms, key, 27);
  g.inside = choice<K>({K::all_reduce, K::all_reduce, K::all_gather, K::all_to_all}, key, 28);
  g.crossing = choice<double>({3e4, 1e6, 2e7}, key, 29);
  g.streams = choice<int>({1, 1, 2}, key, 30);
  const int most = kRandomNodes * g.cluster.devices;
  while (2 * g.together() > most) g.ways /= 2;
  while (g.cluster.workers() < 2 * g.together())
    g.cluster.nodes = std::min(2 * g.cluster.nodes, kRandomNodes);
  g.workers = g.cluster.workers() / g.together() * g.together();
  return g;
}

/// Draws the same cluster and sizes as random_groups, with samples partitioned over 2, 4 or 8 workers each.
inline RandomGroups random_spatial(std::uint32_t number) {
  RandomGroups g = random_groups(number);
  g.kind = RandomGroups::spatial;
  g.ways = choice<int>({2, 4, 8}, number + 1'000'000, 40);
  g.stages = 1;
  while (g.cluster.workers() < 2 * g.ways) g.cluster.nodes = std::min(2 * g.cluster.nodes, kRandomNodes);
  g.workers = g.cluster.workers() / g.ways * g.ways;
  return g;
}

/// One action of a worker's step; a worker takes its actions one after the other.
struct Action {
  enum What { forward, backward, sum, start_sum, send, receive };

  What what;
  int number = 0;  ///< layer; collective of the plan; role
  double bytes = 0;
};

/// A program that takes these actions and waits until all that it started is complete.
Program follow(Worker& worker, const std::vector<Action>& actions);

/// Makes the plan of a random step.
class GroupsPlan {
 public:
  explicit GroupsPlan(const RandomGroups& random, const Platform& platform, Workload workload)
      : random_(random), platform_(platform) {
    plan_.endpoints = endpoints_of(random.cluster);
    plan_.endpoints.resize(random.workers);
    plan_.workers = plan_.devices = random.workers;
    for (const Bucket& bucket : workload.buckets) gradients_.push_back(bucket.gradient.value);
    layers_ = workload.layers();
    plan_.workloads.push_back(std::move(workload));
  }

  Plan made() {
    switch (random_.kind) {
      case RandomGroups::rings:
        add_rings();
        break;
      case RandomGroups::orders:
        add_orders();
        break;
      case RandomGroups::tensor:
      case RandomGroups::pipeline:
      case RandomGroups::three_ways:
      case RandomGroups::spatial:
        for (int stage = 0; stage < random_.stages; ++stage) add_stage(stage);
        break;
    }
    return std::move(plan_);
  }

 private:
  CommunicatorId add_communicator(std::vector<RankId> ranks, int size, Algorithm algorithm) {
    Communicator made = communicator(platform_, plan_.endpoints, std::move(ranks), size);
    made.all_reduce.algorithm = algorithm;
    made.all_reduce.local = random_.cluster.local;
    made.all_reduce.network = random_.cluster.network;
    made.streams = made.in_flight = random_.streams;
    return add(plan_, std::move(made));
  }

  /// Adds a collective and returns its number; -1 for groups of one rank.
  int add_collective(Collective::Kind kind, CommunicatorId communicator, double bytes) {
    if (plan_.communicators[communicator.index()].size == 1) return -1;
    return add(plan_, {kind, communicator, {Array::gradients, {}, {bytes}}, nullptr}).value;
  }

  /// Adds a collective in which each rank sends to its neighbours on both sides.
  int add_halos(CommunicatorId communicator) {
    std::vector<Edge> edges;
    for (int i = 0; i + 1 < random_.ways; ++i) {
      edges.push_back({i, i + 1});
      edges.push_back({i + 1, i});
    }
    const int index = add_collective(Collective::Kind::exchange, communicator, random_.crossing);
    plan_.collectives.back().schedule = std::make_shared<const Schedule>(
        Schedule{random_.ways, 1, {one_round(std::move(edges), 1, OnReceive::copy)}});
    return index;
  }

  void add_role(int first, int members, std::vector<Action> actions) {
    std::erase_if(actions, [](const Action& action) { return action.number < 0; });
    plan_.roles.push_back({fmt::format("role {}", plan_.roles.size()), RankId(first), members, 0, true,
                           [actions = std::make_shared<const std::vector<Action>>(std::move(actions))](
                               Worker& worker) { return follow(worker, *actions); }});
  }

  Algorithm algorithm(int number) const { return number % 2 == 0 ? random_.gradient : random_.other; }

  void add_rings() {
    const int groups = random_.communicators, members = random_.workers / groups;
    std::vector<int> endpoints;
    for (int group = 0; group < groups; ++group) {
      for (int i = 0; i < members; ++i) {
        const int from = random_.dealt ? i * groups + group : group * members + i;
        endpoints.push_back(plan_.endpoints[RankId(from)]);
      }
    }
    plan_.endpoints = endpoints;
    for (int group = 0; group < groups; ++group) {
      std::vector<RankId> ranks;
      for (int i = 0; i < members; ++i) ranks.emplace_back(group * members + i);
      const CommunicatorId communicator = add_communicator(std::move(ranks), members, algorithm(group));
      std::vector<Action> actions;
      for (int i = 0; i < group; ++i) actions.push_back({Action::forward, i % layers_});
      for (int layer = layers_; layer-- > 0;) {
        actions.push_back({Action::backward, layer});
        const double bytes = gradients_[layer] * (1 + group % 3) / 2;
        actions.push_back(
            {Action::start_sum, add_collective(Collective::Kind::all_reduce, communicator, bytes)});
      }
      add_role(group * members, members, std::move(actions));
    }
  }

  void add_orders() {
    std::vector<Action> actions;
    std::vector<CommunicatorId> communicators;
    for (int i = 0; i < random_.communicators; ++i) {
      std::vector<RankId> ranks = first_ranks(random_.workers);
      if (i > 0) {
        const std::vector<int> order = permutation(
            {12, Purpose::data, random_.cluster.number, 31, static_cast<std::uint32_t>(i)}, random_.workers);
        ranks.clear();
        for (const int rank : order) ranks.emplace_back(rank);
      }
      communicators.push_back(add_communicator(std::move(ranks), random_.workers, algorithm(i)));
    }
    for (int layer = layers_; layer-- > 0;) {
      for (const CommunicatorId communicator : communicators) {
        actions.push_back({Action::backward, layer});
        const double bytes = gradients_[layer] / random_.communicators;
        actions.push_back(
            {Action::start_sum, add_collective(Collective::Kind::all_reduce, communicator, bytes)});
      }
    }
    add_role(0, random_.workers, std::move(actions));
  }

  /// Adds a stage that runs all forward passes, then all backward passes, and sums gradients beside the last
  /// of them.
  void add_stage(int stage) {
    const int members = random_.workers / random_.stages, first = stage * members, ways = random_.ways;
    std::vector<RankId> in_order, by_place;
    for (int i = 0; i < members; ++i) in_order.emplace_back(first + i);
    for (int place = 0; place < ways; ++place) {
      for (int i = place; i < members; i += ways) by_place.emplace_back(first + i);
    }
    const CommunicatorId group = add_communicator(std::move(in_order), ways, random_.other);
    const bool spatial = random_.kind == RandomGroups::spatial;
    const CommunicatorId replicas =
        add_communicator(std::move(by_place), spatial ? members : members / ways, random_.gradient);
    const auto exchange = [&] {
      return spatial ? add_halos(group) : add_collective(random_.inside, group, random_.crossing * ways);
    };
    std::vector<Action> actions;
    for (int batch = 0; batch < random_.micro_batches; ++batch) {
      if (stage > 0) actions.push_back({Action::receive, stage - 1});
      for (int layer = 0; layer < layers_; ++layer) {
        actions.push_back({Action::forward, layer});
        actions.push_back({Action::sum, exchange()});
      }
      if (stage + 1 < random_.stages) actions.push_back({Action::send, stage + 1, random_.crossing});
    }
    for (int batch = 0; batch < random_.micro_batches; ++batch) {
      const bool last = batch + 1 == random_.micro_batches;
      if (stage + 1 < random_.stages) actions.push_back({Action::receive, stage + 1});
      for (int layer = layers_; layer-- > 0;) {
        actions.push_back({Action::backward, layer});
        const double bytes = gradients_[layer];
        if (last)
          actions.push_back(
              {Action::start_sum, add_collective(Collective::Kind::all_reduce, replicas, bytes)});
        actions.push_back({Action::sum, exchange()});
      }
      if (stage > 0) actions.push_back({Action::send, stage - 1, random_.crossing});
    }
    add_role(first, members, std::move(actions));
    if (stage == 0) return;
    plan_.channels.emplace_back(stage - 1, stage);
    plan_.channels.emplace_back(stage, stage - 1);
  }

  const RandomGroups& random_;
  const Platform& platform_;
  Plan plan_;
  std::vector<double> gradients_;  ///< of each layer
  int layers_ = 0;
};

}  // namespace stepcast
