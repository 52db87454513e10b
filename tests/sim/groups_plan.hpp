#pragma once

#include <memory>

#include "strategies/collectives/phases.hpp"
#include "strategies/plan/communicator.hpp"
#include "tests/sim/drawn_groups.hpp"

namespace stepcast {

/// What a worker does in its step, one thing after the other.
struct Action {
  enum What { forward, backward, sum, start_sum, send, receive };

  What what;
  int number = 0;  ///< layer; collective of the plan; role
  double bytes = 0;
};

/// Does them, and waits for all that it has started.
Program follow(Worker& worker, const std::vector<Action>& actions);

/// Makes the plan of a drawn step.
class GroupsPlan {
 public:
  explicit GroupsPlan(const DrawnGroups& drawn, const Platform& platform, Workload workload)
      : drawn_(drawn), platform_(platform) {
    plan_.endpoints = endpoints_of(drawn.cluster);
    plan_.endpoints.resize(static_cast<std::size_t>(drawn.workers));
    plan_.workers = plan_.devices = drawn.workers;
    for (const Bucket& bucket : workload.buckets) gradients_.push_back(bucket.gradient.value);
    layers_ = workload.layers();
    plan_.workloads.push_back(std::move(workload));
  }

  Plan made() {
    switch (drawn_.kind) {
      case DrawnGroups::rings:
        add_rings();
        break;
      case DrawnGroups::orders:
        add_orders();
        break;
      case DrawnGroups::tensor:
      case DrawnGroups::pipeline:
      case DrawnGroups::three_ways:
      case DrawnGroups::spatial:
        for (int stage = 0; stage < drawn_.stages; ++stage) add_stage(stage);
        break;
    }
    return std::move(plan_);
  }

 private:
  int add_communicator(std::vector<int> ranks, int size, Algorithm algorithm) {
    plan_.communicators.push_back(communicator(platform_, plan_.endpoints, std::move(ranks), size));
    Communicator& made = plan_.communicators.back();
    made.all_reduce.algorithm = algorithm;
    made.all_reduce.local = drawn_.cluster.local;
    made.all_reduce.network = drawn_.cluster.network;
    made.streams = made.in_flight = drawn_.streams;
    return static_cast<int>(plan_.communicators.size()) - 1;
  }

  /// -1: a group of one.
  int add_collective(Collective::Kind kind, int number, double bytes) {
    if (plan_.communicators[static_cast<std::size_t>(number)].size == 1) return -1;
    plan_.collectives.push_back({kind, number, {Array::gradients, {}, {bytes}}, nullptr});
    return static_cast<int>(plan_.collectives.size()) - 1;
  }

  /// To the neighbours on both sides.
  int add_halos(int number) {
    std::vector<Edge> edges;
    for (int i = 0; i + 1 < drawn_.ways; ++i) {
      edges.push_back({i, i + 1});
      edges.push_back({i + 1, i});
    }
    const int index = add_collective(Collective::Kind::exchange, number, drawn_.crossing);
    plan_.collectives.back().schedule = std::make_shared<const Schedule>(
        Schedule{drawn_.ways, 1, {one_round(std::move(edges), 1, Arrival::replace)}});
    return index;
  }

  void add_role(int first, int members, std::vector<Action> actions) {
    std::erase_if(actions, [](const Action& action) { return action.number < 0; });
    plan_.roles.push_back({fmt::format("role {}", plan_.roles.size()), first, members, 0, true,
                           [actions = std::make_shared<const std::vector<Action>>(std::move(actions))](
                               Worker& worker) { return follow(worker, *actions); }});
  }

  Algorithm algorithm(int number) const { return number % 2 == 0 ? drawn_.gradient : drawn_.other; }

  void add_rings() {
    const int groups = drawn_.communicators, members = drawn_.workers / groups;
    std::vector<int> endpoints;
    for (int group = 0; group < groups; ++group) {
      for (int i = 0; i < members; ++i) {
        const int from = drawn_.dealt ? i * groups + group : group * members + i;
        endpoints.push_back(plan_.endpoints[static_cast<std::size_t>(from)]);
      }
    }
    plan_.endpoints = endpoints;
    for (int group = 0; group < groups; ++group) {
      std::vector<int> ranks = first_ranks(members);
      for (int& rank : ranks) rank += group * members;
      const int number = add_communicator(std::move(ranks), members, algorithm(group));
      std::vector<Action> actions;
      for (int i = 0; i < group; ++i) actions.push_back({Action::forward, i % layers_});
      for (int layer = layers_; layer-- > 0;) {
        actions.push_back({Action::backward, layer});
        const double bytes = gradients_[static_cast<std::size_t>(layer)] * (1 + group % 3) / 2;
        actions.push_back({Action::start_sum, add_collective(Collective::Kind::all_reduce, number, bytes)});
      }
      add_role(group * members, members, std::move(actions));
    }
  }

  void add_orders() {
    std::vector<Action> actions;
    std::vector<int> numbers;
    for (int i = 0; i < drawn_.communicators; ++i) {
      std::vector<int> ranks = first_ranks(drawn_.workers);
      if (i > 0)
        ranks = permutation({12, Purpose::data, drawn_.cluster.number, 31, static_cast<std::uint32_t>(i)},
                            drawn_.workers);
      numbers.push_back(add_communicator(std::move(ranks), drawn_.workers, algorithm(i)));
    }
    for (int layer = layers_; layer-- > 0;) {
      for (const int number : numbers) {
        actions.push_back({Action::backward, layer});
        const double bytes = gradients_[static_cast<std::size_t>(layer)] / drawn_.communicators;
        actions.push_back({Action::start_sum, add_collective(Collective::Kind::all_reduce, number, bytes)});
      }
    }
    add_role(0, drawn_.workers, std::move(actions));
  }

  /// One after the other: all forward passes, all backward ones, sums of gradients beside the last of these.
  void add_stage(int stage) {
    const int members = drawn_.workers / drawn_.stages, first = stage * members, ways = drawn_.ways;
    std::vector<int> in_order = first_ranks(members), by_place;
    for (int& rank : in_order) rank += first;
    for (int place = 0; place < ways; ++place) {
      for (int i = place; i < members; i += ways) by_place.push_back(first + i);
    }
    const int group = add_communicator(std::move(in_order), ways, drawn_.other);
    const bool spatial = drawn_.kind == DrawnGroups::spatial;
    const int replicas =
        add_communicator(std::move(by_place), spatial ? members : members / ways, drawn_.gradient);
    const auto exchange = [&] {
      return spatial ? add_halos(group) : add_collective(drawn_.inside, group, drawn_.crossing * ways);
    };
    std::vector<Action> actions;
    for (int batch = 0; batch < drawn_.micro_batches; ++batch) {
      if (stage > 0) actions.push_back({Action::receive, stage - 1});
      for (int layer = 0; layer < layers_; ++layer) {
        actions.push_back({Action::forward, layer});
        actions.push_back({Action::sum, exchange()});
      }
      if (stage + 1 < drawn_.stages) actions.push_back({Action::send, stage + 1, drawn_.crossing});
    }
    for (int batch = 0; batch < drawn_.micro_batches; ++batch) {
      const bool last = batch + 1 == drawn_.micro_batches;
      if (stage + 1 < drawn_.stages) actions.push_back({Action::receive, stage + 1});
      for (int layer = layers_; layer-- > 0;) {
        actions.push_back({Action::backward, layer});
        const double bytes = gradients_[static_cast<std::size_t>(layer)];
        if (last)
          actions.push_back(
              {Action::start_sum, add_collective(Collective::Kind::all_reduce, replicas, bytes)});
        actions.push_back({Action::sum, exchange()});
      }
      if (stage > 0) actions.push_back({Action::send, stage - 1, drawn_.crossing});
    }
    add_role(first, members, std::move(actions));
    if (stage == 0) return;
    plan_.channels.emplace_back(stage - 1, stage);
    plan_.channels.emplace_back(stage, stage - 1);
  }

  const DrawnGroups& drawn_;
  const Platform& platform_;
  Plan plan_;
  std::vector<double> gradients_;  ///< of each layer
  int layers_ = 0;
};

}  // namespace stepcast
