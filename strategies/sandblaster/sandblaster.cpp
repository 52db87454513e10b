#include "strategies/sandblaster/sandblaster.hpp"

#include <fmt/format.h>

#include <numeric>

#include "strategies/arithmetic/lbfgs.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/options/training_options.hpp"
#include "strategies/parameter_server/server_options.hpp"
#include "strategies/parameter_server/server_placement.hpp"

namespace stepcast {
namespace {

enum : int { kOrder = 11, kReport, kDone };
constexpr int kOrderKinds = 8;  // a message's number holds an order's kind and its batch

Message order_message(const Order& order, int batch) {
  Message message;
  message.tag = kOrder;
  message.value = batch * kOrderKinds + static_cast<int>(order.kind);
  return message;
}

Order::Kind kind_of(const Message& message) {
  return static_cast<Order::Kind>(static_cast<int>(message.value) % kOrderKinds);
}

int batch_of(const Message& message) {
  return static_cast<int>(message.value) / kOrderKinds;
}

/// Sends a replica its next order, if there is one. A replica that must wait gets no message.
/// @returns whether there was an order
bool send_order(Worker& worker, WorkQueue& queue, RoleId replica, int batch) {
  const Order order = queue.next(replica.value);
  if (order.kind == Order::Kind::wait) return false;
  const Message message = order_message(order, batch);
  worker.start_send(replica, message);
  return true;
}

}  // namespace

/// Step 3.
SubProgram vector_phase(Worker& worker, const SandblasterRun& run) {
  for (int i = 0; i < run.options.vector_operations; ++i) {
    for (const Shard& shard : run.servers.shards) {
      Message command;
      command.tag = kRequest;
      command.buffer.array = Array::statistics;
      worker.start_send(shard.role, command);
    }
    for (std::size_t k = 0; k < run.servers.shards.size(); ++k) co_await worker.receive(kDone);
  }
}

/// Steps 1 and 2.
SubProgram batch_phase(Worker& worker, WorkQueue& queue, std::vector<RoleId>& idle, int batch) {
  queue.begin_batch();
  std::vector<RoleId> waiting;
  for (const RoleId replica : idle) {
    if (!send_order(worker, queue, replica, batch)) waiting.push_back(replica);
  }
  while (!queue.batch_done()) {
    const Message report = co_await worker.receive(kReport);
    queue.done(report.from.value);
    if (!send_order(worker, queue, report.from, batch)) waiting.push_back(report.from);
  }
  idle = std::move(waiting);
}

Program sandblaster_coordinator(Worker& worker, const SandblasterRun& run) {
  const Sandblaster& options = run.options;
  WorkQueue queue(options.queue);
  std::vector<RoleId> idle;
  for (int replica = 0; replica < options.queue.replicas; ++replica) idle.emplace_back(replica);
  for (int batch = 0; batch < options.batches; ++batch) {
    co_await batch_phase(worker, queue, idle, batch);
    worker.mark("batch_phase");
    co_await vector_phase(worker, run);
    worker.mark("vector_phase");
  }
  worker.record("wasted", queue.wasted());
  const Message stop = order_message({Order::Kind::stop, -1}, options.batches);
  for (const RoleId replica : idle) worker.start_send(replica, stop);
  for (std::size_t stopped = idle.size(); stopped < static_cast<std::size_t>(options.queue.replicas);
       ++stopped) {
    const Message late = co_await worker.receive(kReport);
    worker.start_send(late.from, stop);
  }
}

Program sandblaster_replica(Worker& worker, const SandblasterRun& run) {
  const ClientExchange read{Array::none, Array::center};
  ClientState state;
  std::deque<Pending> loads;
  for (int batch = 0;;) {
    const Message order = co_await worker.receive(kOrder);
    for (; batch < batch_of(order); ++batch) worker.end_step();
    switch (kind_of(order)) {
      case Order::Kind::read:
        co_await exchange(worker, run.servers, read, state);
        break;
      case Order::Kind::compute:
        co_await train_mini_batch(worker, run.portion, loads);
        break;
      case Order::Kind::send:
        co_await push(worker, run.servers, Array::gradients, state);
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

Program sandblaster_server(Worker& worker, const SandblasterRun& run) {
  for (;;) {
    const Message request = co_await worker.receive(kRequest);
    Message answer;
    if (request.buffer.array == Array::gradients) {
      co_await worker.local(run.add);
    } else if (request.buffer.array == Array::none) {
      const Shard& share = run.servers.shards.front();  // all are equal
      answer.tag = kWeights;
      answer.buffer = {Array::parameters, {}, share.size};
      answer.parts = share.parts;
      worker.start_send(request.from, answer);
    } else {
      co_await worker.local(run.vector_work);
      answer.tag = kDone;
      worker.start_send(request.from, answer);
    }
  }
}

namespace {

constexpr double kVectorArrays = 3;  // an axpy reads two and writes one; a dot product reads two

int whole(const YamlMap& map, const char* key, int otherwise) {
  const auto value = map.maybe(key);
  return value ? static_cast<int>(value->integer(1, 1'000'000'000)) : otherwise;
}

const Keys& sandblaster_keys() {
  static const Keys keys = joined_keys(
      {training_keys(),
       keys_named(server_keys(), {"shards", "server", "messages", "exchanged", "arrays"}),
       {{"tasks", "integer", "1 to 1e7", "required", "portions of a batch"},
        {"send_every", "integer", "1 to 1e9", "1", "portions after which a replica sends its gradients"},
        {"backup_tasks", "boolean", "", "false", "slow portions are handed out a second time"},
        {"history", "integer", "1 to 1e9", "10", "pairs of vectors that L-BFGS keeps"}}});
  return keys;
}

Sandblaster sandblaster_options(const YamlMap& map, const Setting& setting) {
  Sandblaster options;
  options.batches = setting.steps;
  options.queue.replicas = setting.workers();
  options.queue.tasks = static_cast<int>(map.at("tasks", "portions of a batch").integer(1, 10'000'000));
  options.queue.send_every = whole(map, "send_every", 1);
  if (const auto value = map.maybe("backup_tasks")) options.queue.backup_tasks = value->boolean();
  options.vector_operations = lbfgs_operations(whole(map, "history", 10));
  return options;
}

void add_roles(Plan& plan, const std::shared_ptr<const SandblasterRun>& run, int servers) {
  for (int replica = 0; replica < run->options.queue.replicas; ++replica) {
    plan.roles.push_back({"replica", RankId(replica), 1, 0, true,
                          [run](Worker& worker) { return sandblaster_replica(worker, *run); }});
  }
  const auto add = [&](const char* name, auto program) {
    const RankId rank(plan.roles.size());
    plan.roles.push_back(
        {name, rank, 1, -1, false, [run, program](Worker& worker) { return program(worker, *run); }});
  };
  for (int i = 0; i < servers; ++i) add("server", sandblaster_server);
  add("coordinator", sandblaster_coordinator);
}

double sum(const Records& records, const char* name) {
  const auto found = records.find(name);
  return found == records.end() ? 0 : std::accumulate(found->second.begin(), found->second.end(), 0.0);
}

Figures figures_of(const Sandblaster& options, const Records& records, double seconds) {
  const double vectors = sum(records, "vector_phase"), all = vectors + sum(records, "batch_phase");
  const double computed = static_cast<double>(options.batches) * options.queue.tasks;
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
  workload.input = static_cast<double>(batch) * setting.sample_size;
  set_servers(setting, options, exchanged, array_seconds(setting, options, workload, source.kind, exchanged),
              run);

  Plan plan;
  plan.workloads.push_back(std::move(workload));
  plan.endpoints = setting.devices;
  for (const int place : server_places(setting, options.place, options.shards + 1, *options.place_at))
    plan.endpoints.push_back(place);
  const auto shared = std::make_shared<const SandblasterRun>(std::move(run));
  add_roles(plan, shared, options.shards);
  plan.asynchronous = true;
  plan.workers = setting.workers();
  plan.devices = plan.workers + devices_of_servers(setting.platform, options.place, options.shards + 1);
  plan.figures = [shared](const Records& records, double seconds) {
    return figures_of(shared->options, records, seconds);
  };
  finish_plan(setting, options.training,
              {std::move(source), batch, static_cast<double>(batch) * shared->options.queue.tasks,
               training_memory(setting.model, memory_options(setting, options.training, batch)),
               "kind: sandblaster (its L-BFGS)"},
              plan);
  note_idle_server_options(map, options, false, plan);
  return plan;
}

}  // namespace

Strategy sandblaster_strategy() {
  return {"sandblaster",
          "L-BFGS: a coordinator hands portions of a batch to replicas; sharded servers hold the parameters",
          "J. Dean et al., Large scale distributed deep networks, NIPS 2012, section 4.2",
          read_sandblaster,
          sandblaster_keys(),
          "{kind: sandblaster, server: colocated, tasks: 32}",
          "small-cnn"};
}

}  // namespace stepcast
