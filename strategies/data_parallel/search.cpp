#include "strategies/data_parallel/search.hpp"

#include <fmt/format.h>

#include <memory>

#include "core/fields.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {
namespace {

/// Tags of messages between the first rank of a group and the driver.
enum SearchTag : int {
  kAskPoint,  ///< the group is free
  kPoint      ///< it may train the next point
};

struct Search {
  int folds = 1;           ///< trainings of each point
  int folds_at_once = 1;   ///< slots of a group
  int ranks = 1;           ///< of a training
  int training_steps = 1;  ///< steps of a training
  Seconds step_overhead;   ///< time of a step of a training outside the layers
  Seconds base, cubic;     ///< a proposal after n others takes base + cubic n^3
  int steps = 1;           ///< points of each group
};

/// A rank's place in the search.
struct Trainer {
  Search search;
  int slot = 0;             ///< of its group; it trains folds slot, slot + folds_at_once, ...
  bool asks = false;        ///< it asks for points
  RoleId driver;            ///< only if it asks
  CollectiveId begin, end;  ///< with which a group begins and ends a point; none: the group has one rank
  std::vector<CollectiveId> sums;  ///< of the buckets, among the ranks of a slot; none: it has one rank
};

SubProgram train_fold(Worker& worker, const Trainer& trainer) {
  const Workload& workload = worker.workload();
  for (int step = 0; step < trainer.search.training_steps; ++step) {
    if (trainer.search.step_overhead.value > 0) co_await worker.pause(trainer.search.step_overhead);
    co_await worker.load(workload.input);
    co_await worker.forward();
    std::vector<Pending> sums;
    for (std::size_t i = 0; i < workload.buckets.size(); ++i) {
      co_await worker.backward(workload.buckets[i].layers);
      if (!trainer.sums.empty() && trainer.sums[i].exists())
        sums.push_back(worker.start_collective(trainer.sums[i]));
    }
    for (Pending& sum : sums) co_await worker.finished(std::move(sum));
    co_await worker.optimizer_step();
  }
}

Program train_points(Worker& worker, const Trainer& trainer) {
  for (int point = 0; point < trainer.search.steps; ++point) {
    if (trainer.asks) {  // 1.
      Message ask;
      ask.tag = kAskPoint;
      worker.start_send(trainer.driver, ask);
      co_await worker.receive(kPoint);
    }
    if (trainer.begin.exists()) co_await worker.collective(trainer.begin);
    for (int fold = trainer.slot; fold < trainer.search.folds; fold += trainer.search.folds_at_once)
      co_await train_fold(worker, trainer);                             // 2.
    if (trainer.end.exists()) co_await worker.collective(trainer.end);  // 3.
    worker.end_step();
  }
}

Program propose_points(Worker& worker, const Search& search) {
  for (double known = 0;; ++known) {
    const Message ask = co_await worker.receive(kAskPoint);
    co_await worker.pause(search.base + known * known * known * search.cubic);
    Message point;
    point.tag = kPoint;
    worker.start_send(ask.from, point);
  }
}

const Fields<Search>& search_fields() {
  const Form<std::int64_t> count = integer(1, 1'000'000);
  static const Fields<Search> fields{
      field("folds", &Search::folds, count, "trainings of each point"),
      field("folds_at_once", &Search::folds_at_once, count, "folds that a group trains at the same time"),
      field("ranks", &Search::ranks, count, "ranks of a training, which sum their gradients"),
      field("training_steps", &Search::training_steps, count, "steps of a training"),
      field("proposal_base", &Search::base, duration(), "time of the driver for a first proposal"),
      field("proposal_cubic", &Search::cubic, duration(),
            "the proposal after n others takes proposal_base + proposal_cubic n^3")};
  return fields;
}

const Keys& search_keys() {
  static const Keys keys = joined_keys({training_keys(), communication_keys(), search_fields().keys()});
  return keys;
}

/// Adds the sums of the buckets and the barriers, which all trainers have in common.
void add_collectives(const Setting& setting, const CommunicationOptions& communication, const Search& search,
                     Plan& plan, Trainer& common) {
  const int workers = setting.workers(), group = search.folds_at_once * search.ranks;
  const auto communicator_of = [&](int size) {
    return add(plan, communicator(setting.platform, plan.endpoints, first_ranks(workers), size));
  };
  if (group > 1) {
    const CommunicatorId all = communicator_of(group);
    common.begin = add(plan, {Collective::Kind::broadcast, all, {Array::parameters, {}, {}}, nullptr});
    common.end = add(plan, {Collective::Kind::all_reduce, all, {Array::gradients, {}, {}}, nullptr});
  }
  if (search.ranks == 1) return;
  const CommunicatorId slot = communicator_of(search.ranks);
  apply(communication, plan.communicators[slot.index()]);
  for (const Bucket& bucket : plan.workloads.front().buckets) {
    const Buffer buffer{Array::gradients, bucket.elements, bucket.gradient};
    common.sums.push_back(bucket.gradient.value > 0
                              ? add(plan, {Collective::Kind::all_reduce, slot, buffer, nullptr})
                              : CollectiveId{});
  }
}

/// Adds a role for each rank, and the driver on the host of the first.
void add_roles(const Setting& setting, const Search& search, const Trainer& common, Plan& plan) {
  const int workers = setting.workers(), group = search.folds_at_once * search.ranks;
  const RoleId driver(workers);
  for (int rank = 0; rank < workers; ++rank) {
    Trainer trainer = common;
    trainer.slot = rank % group / search.ranks;
    trainer.asks = rank % group == 0;
    trainer.driver = driver;
    if (trainer.asks) {
      plan.channels.emplace_back(RoleId(rank), driver);
      plan.channels.emplace_back(driver, RoleId(rank));
    }
    plan.roles.push_back({"trainer", RankId(rank), 1, 0, true,
                          [own = std::make_shared<const Trainer>(std::move(trainer))](Worker& worker) {
                            return train_points(worker, *own);
                          }});
  }
  plan.endpoints.push_back(setting.platform.host_endpoint(setting.platform.node_of(setting.devices.front())));
  plan.roles.push_back({"driver", RankId(workers), 1, -1, false,
                        [own = std::make_shared<const Search>(search)](Worker& worker) {
                          return propose_points(worker, *own);
                        }});
}

Plan read_search(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, search_keys());
  const TrainingOptions training = read_training_options(map);
  refuse_compression(map, "not supported with kind: search");
  const CommunicationOptions communication = read_communication(map);
  Search search;
  read_fields(map, search_fields(), search);
  search.steps = setting.steps;
  search.step_overhead = training.step_overhead;
  const int workers = setting.workers(), group = search.folds_at_once * search.ranks;
  if (workers % group != 0)
    value.refuse(fmt::format("{} workers cannot form groups of {} (folds_at_once x ranks); give a divisor",
                             workers, group));
  if (search.folds_at_once > search.folds)
    map.at("folds_at_once").expected(fmt::format("at most {} (folds)", search.folds));
  const std::int64_t batch = samples_per_replica(setting, workers, 1);
  auto [workload, source] = make_workload(setting.model, setting.times(batch), training.compute_factor);
  workload.buckets = gradient_buckets(gradient_arrays(setting.model), training.element(), BucketSize{});
  workload.input = static_cast<double>(batch) * setting.sample_size;

  Plan plan;
  plan.endpoints = setting.devices;
  plan.workers = plan.devices = workers;
  plan.summed_gradients = search.ranks;
  plan.asynchronous = true;
  plan.workloads.push_back(std::move(workload));
  Trainer common{.search = search, .driver = {}, .begin = {}, .end = {}, .sums = {}};
  add_collectives(setting, communication, search, plan, common);
  add_roles(setting, search, common, plan);
  const double trained = static_cast<double>(search.training_steps) * search.folds / search.folds_at_once;
  finish_plan(setting, training,
              {std::move(source), batch, static_cast<double>(batch) * workers * trained,
               training_memory(setting.model, memory_options(setting, training, batch)), "kind: search"},
              plan);
  note_ineffective_communication(map, search.ranks == 1 ? "with ranks: 1" : "", true, plan);
  if (search.ranks == 1) note_ineffective(map, {"compute_slowdown"}, "with ranks: 1", plan.ineffective_keys);
  return plan;
}

}  // namespace

Strategy search_strategy() {
  return {.kind = "search",
          .what = "trainings of a hyper-parameter search with K folds, on groups of workers",
          .source =
              "J.-R. Vlimant et al., Training and optimization of neural networks and generative "
              "adversarial networks over distributed resources (slides)",
          .plan = read_search,
          .keys = search_keys(),
          .example = "{kind: search, folds: 2, training_steps: 5}",
          .example_model = "small-cnn",
          .other_names = {"kfold", "cross_validation"},
          .exchanges_every_step = false};
}

}  // namespace stepcast
