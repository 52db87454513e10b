#include "strategies/sandblaster/sandblaster.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/fields.hpp"
#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/parameter_server/server_options.hpp"
#include "strategies/parameter_server/server_plan.hpp"
#include "strategies/sandblaster/coordinator.hpp"

namespace stepcast {
namespace {

enum : int { kOrder = 11, kReport, kDone };
constexpr std::int64_t kOrderKinds = 8;

/// A message's number holds an order exactly up to 2^53 / 16 portions in all batches.
/// @param tasks  portions of a batch
Message order_message(const Order& order, int tasks) {
  const std::int64_t task = std::int64_t{order.batch} * (tasks + 1) + order.task + 1;
  const int counted = order.counted ? 1 : 0;
  Message message;
  message.tag = kOrder;
  message.value = (task * 2 + counted) * kOrderKinds + static_cast<std::int64_t>(order.kind);
  return message;
}

Order order_of(const Message& message, int tasks) {
  const auto number = static_cast<std::int64_t>(message.value);
  const std::int64_t task = number / (2 * kOrderKinds);
  Order order;
  order.kind = static_cast<Order::Kind>(number % kOrderKinds);
  order.counted = number / kOrderKinds % 2 == 1;
  order.task = (task % (tasks + 1)) - 1;
  order.batch = task / (tasks + 1);
  return order;
}

/// Sends a replica its next order, if there is one. A replica that must wait gets no message.
/// @returns whether there was an order
bool send_order(Worker& worker, WorkQueue& queue, RoleId replica) {
  const Order order = queue.next(replica.value);
  if (order.kind == Order::Kind::wait) return false;
  const Message message = order_message(order, queue.tasks());
  worker.start_send(replica, message);
  return true;
}

/// The next pass reads the mini-batch that is this portion.
LocalWork choice_of(int portion) {
  return {"portion", Seconds{0}, [portion](Arrays& arrays) { arrays.choose_mini_batch(portion); }};
}

}  // namespace

/// Step 3.
SubProgram vector_phase(Worker& worker, const SandblasterRun& run, LbfgsCoordinator& lbfgs) {
  const std::size_t servers = run.servers.shards.size();
  std::vector<double> parts(servers);
  for (int i = 0; i < lbfgs_operations(run.options.history); ++i) {
    for (const Shard& shard : run.servers.shards) {
      Message command;
      command.tag = kRequest;
      command.buffer.array = Array::statistics;
      command.value = lbfgs.number(i);
      worker.start_send(shard.role, command);
    }
    for (std::size_t k = 0; k < servers; ++k) {
      const Message answer = co_await worker.receive(kDone);
      parts[answer.from.index() - run.servers.shards.front().role.index()] = answer.value;
    }
    lbfgs.answered(i, std::accumulate(parts.begin(), parts.end(), 0.0));  // in an order of its own
  }
}

/// Steps 1 and 2.
SubProgram batch_phase(Worker& worker, WorkQueue& queue, std::vector<RoleId>& idle) {
  queue.begin_batch();
  std::vector<RoleId> waiting;
  for (const RoleId replica : idle) {
    if (!send_order(worker, queue, replica)) waiting.push_back(replica);
  }
  while (!queue.batch_done()) {
    const Message report = co_await worker.receive(kReport);
    queue.done(report.from.value);
    if (!send_order(worker, queue, report.from)) waiting.push_back(report.from);
  }
  idle = std::move(waiting);
}

Program sandblaster_coordinator(Worker& worker, const SandblasterRun& run) {
  const Sandblaster& options = run.options;
  WorkQueue queue(options.queue);
  std::vector<RoleId> idle;
  for (int replica = 0; replica < options.queue.replicas; ++replica) idle.emplace_back(replica);
  double first_length = 1;
  LocalWork length{"length of the first step", Seconds{0}, {}};
  length.run = [&first_length](Arrays& arrays) { first_length = arrays.learning_rate(); };
  co_await worker.local(length);
  LbfgsCoordinator lbfgs(options.history, first_length);
  for (int batch = 0; batch < options.batches; ++batch) {
    co_await batch_phase(worker, queue, idle);
    worker.mark("batch_phase");
    co_await vector_phase(worker, run, lbfgs);
    worker.mark("vector_phase");
  }
  worker.record("wasted", queue.wasted());
  const Message stop = order_message({.kind = Order::Kind::stop, .batch = options.batches}, queue.tasks());
  for (const RoleId replica : idle) worker.start_send(replica, stop);
  for (std::size_t stopped = idle.size(); stopped < static_cast<std::size_t>(options.queue.replicas);
       ++stopped) {
    const Message late = co_await worker.receive(kReport);
    worker.start_send(late.from, stop);
  }
}

Program sandblaster_replica(Worker& worker, const SandblasterRun& run) {
  const ClientExchange read{Array::none, Array::parameters};
  const bool sums = run.options.queue.send_every > 1;
  int summed = 0;  // gradients in the sum that this replica sends next
  ClientState state;
  std::deque<Pending> loads;
  for (int batch = 0;;) {
    const Message message = co_await worker.receive(kOrder);
    const Order order = order_of(message, run.options.queue.tasks);
    for (; batch < order.batch; ++batch) worker.end_step();
    if (order.counted && sums)
      co_await worker.local(add_array(Array::gradients, Array::update, summed++ == 0, run.array));
    switch (order.kind) {
      case Order::Kind::read:
        co_await exchange(worker, run.servers, read, state);
        break;
      case Order::Kind::compute:
        co_await worker.local(choice_of(order.task));
        co_await train_mini_batch(worker, run.portion, loads);
        break;
      case Order::Kind::send:
        co_await push(worker, run.servers, sums ? Array::update : Array::gradients, state);
        summed = 0;
        break;
      case Order::Kind::wait:
        break;
      case Order::Kind::stop:
        co_return;
    }
    Message report;
    report.tag = kReport;
    co_await worker.send(run.coordinator, report);
  }
}

Program sandblaster_server(Worker& worker, const SandblasterRun& run, std::size_t index) {
  const Shard& share = run.servers.shards[index];
  LbfgsShard lbfgs(run.options.history, run.options.queue.tasks, share.elements);
  double number = 0, part = 0;
  bool first = true;  // the next gradient begins a sum
  LocalWork add = run.add, vector_work = run.vector_work;
  add.run = [&](Arrays& arrays) {
    const std::span<const float> from = arrays.of(Array::update, share.elements);
    const std::span<float> sum = arrays.of(Array::gradients, share.elements);
    if (first) std::ranges::fill(sum, 0.0F);
    first = false;
    accumulate(from, sum);
  };
  vector_work.run = [&](Arrays& arrays) { part = lbfgs.carry_out(arrays, number); };
  for (;;) {
    const Message request = co_await worker.receive(kRequest, kAnyone, Array::update);
    Message answer;
    if (request.buffer.array == Array::none) {
      answer.tag = kWeights;
      answer.buffer = {Array::parameters, share.elements, share.size};
      answer.parts = share.parts;
      worker.start_send(request.from, answer);
    } else if (request.buffer.array != Array::statistics) {
      co_await worker.local(add);
    } else {
      first = true;
      number = request.value;
      co_await worker.local(vector_work);
      answer.tag = kDone;
      answer.value = part;
      worker.start_send(request.from, answer);
    }
  }
}

namespace {

constexpr double kVectorArrays = 3;  // an axpy reads two and writes one; a dot product reads two

const Fields<WorkQueue::Options>& queue_fields() {
  using Queue = WorkQueue::Options;
  static const Fields<Queue> fields{
      field("tasks", &Queue::tasks, integer(1, 10'000'000), required("portions of a batch"),
            "portions of a batch"),
      details({field("send_every", &Queue::send_every, integer(1, 1'000'000'000),
                     "portions after which a replica sends its gradients")}),
      field("backup_tasks", &Queue::backup_tasks, boolean(),
            "whether slow portions are given to a second replica")};
  return fields;
}

const Fields<Sandblaster>& sandblaster_fields() {
  static const Fields<Sandblaster> fields{part(&Sandblaster::queue, queue_fields()),
                                          field("history", &Sandblaster::history, integer(1, 1'000'000'000),
                                                "pairs of vectors that L-BFGS keeps")};
  return fields;
}

const Keys& sandblaster_keys() {
  static const Keys keys = joined_keys(
      {training_keys(), keys_named(server_keys(), {"shards", "server", "messages", "exchanged", "arrays"}),
       sandblaster_fields().keys()});
  return keys;
}

Sandblaster sandblaster_options(const YamlMap& map, const Setting& setting) {
  Sandblaster options;
  read_fields(map, sandblaster_fields(), options);
  options.batches = setting.steps;
  options.queue.replicas = setting.workers();
  return options;
}

void add_roles(Plan& plan, const std::shared_ptr<const SandblasterRun>& run, int servers) {
  for (int replica = 0; replica < run->options.queue.replicas; ++replica) {
    plan.roles.push_back({"replica", RankId(replica), 1, 0, true,
                          [run](Worker& worker) { return sandblaster_replica(worker, *run); }});
  }
  const auto add = [&](const char* name, auto program) {
    plan.roles.push_back({name, RankId(plan.roles.size()), 1, -1, false, std::move(program)});
  };
  for (int i = 0; i < servers; ++i)
    add("server", [run, i](Worker& worker) { return sandblaster_server(worker, *run, i); });
  add("coordinator", [run](Worker& worker) { return sandblaster_coordinator(worker, *run); });
}

double sum(const Records& records, const char* name) {
  const auto found = records.find(name);
  return found == records.end() ? 0 : std::accumulate(found->second.begin(), found->second.end(), 0.0);
}

Figures figures_of(const Sandblaster& options, const Records& records, double seconds) {
  const double vectors = sum(records, "vector_phase"), all = vectors + sum(records, "batch_phase");
  const double computed = 1.0 * options.batches * options.queue.tasks;
  return {{"tasks_per_second", options.queue.tasks / seconds},
          {"updates_per_second", 1 / seconds},
          {"wasted_tasks_share", sum(records, "wasted") / computed},
          {"vector_share", all > 0 ? vectors / all : 0}};
}

/// Sets the work and the parameters of the servers.
/// @param array  time of a server for one array of all parameters (array_seconds)
void set_servers(const Setting& setting, const ServerOptions& options, const Exchanged& exchanged,
                 Seconds array, SandblasterRun& run) {
  run.vector_work = {"vector", server_work(options, array, kVectorArrays), {}};
  run.add = {"add", server_work(options, array, 3), {}};  // reads two, writes one
  run.coordinator = RoleId(setting.workers() + options.shards);
  for (int i = 0; i < options.shards; ++i)
    run.servers.shards.push_back(share_of(exchanged, options, i, RoleId(setting.workers() + i)));
}

Plan read_sandblaster(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, sandblaster_keys());
  const ServerOptions options = read_server_options(map, kVectorArrays);
  refuse_compression(map, "not supported with kind: sandblaster, whose history needs whole gradients");
  check_shards(setting, options);
  const Exchanged exchanged = exchanged_of(setting, options);
  SandblasterRun run;
  run.options = sandblaster_options(map, setting);
  run.portion.prefetch = setting.prefetch;
  run.portion.overhead = options.training.step_overhead;
  const std::int64_t batch = samples_per_replica(setting, setting.workers(), 1);
  auto [workload, source] =
      make_workload(setting.model, setting.times(batch), options.training.compute_factor);
  workload.input = batch * setting.sample_size;
  run.array = array_work(workload, 1);
  set_servers(setting, options, exchanged, array_seconds(setting, options, workload, source.kind, exchanged),
              run);

  Plan plan;
  plan.workloads.push_back(std::move(workload));
  plan.endpoints = setting.devices;
  for (const int place : server_places(setting, options.place, options.shards + 1, *options.place_at))
    plan.endpoints.push_back(place);
  const auto shared = std::make_shared<const SandblasterRun>(std::move(run));
  add_roles(plan, shared, options.shards);
  plan.asynchronous = plan.common_steps = true;
  plan.workers = setting.workers();
  plan.devices = plan.workers + devices_of_servers(setting.platform, options.place, options.shards + 1);
  plan.figures = [shared](const Records& records, double seconds) {
    return figures_of(shared->options, records, seconds);
  };
  finish_plan(setting, options.training,
              {std::move(source), batch, 1.0 * batch * shared->options.queue.tasks,
               training_memory(setting.model, memory_options(setting, options.training, batch)),
               no_arithmetic(options)},
              plan);
  plan.chooses_mini_batches = true;
  note_ineffective_server_options(map, options, false, plan);
  return plan;
}

/// Those of the shards, and the coordinator's.
int devices_of_all(const YamlValue& options) {
  const int shards = server_devices(options);
  return shards == 0 ? 0 : shards + 1;
}

}  // namespace

Strategy sandblaster_strategy() {
  return {
      .kind = "sandblaster",
      .what =
          "L-BFGS: a coordinator hands portions of a batch to replicas; sharded servers hold the parameters",
      .source = "J. Dean et al., Large scale distributed deep networks, NIPS 2012, section 4.2",
      .plan = read_sandblaster,
      .keys = sandblaster_keys(),
      .example = "{kind: sandblaster, server: colocated, tasks: 32}",
      .example_model = "small-cnn",
      .server_devices = devices_of_all};
}

}  // namespace stepcast
