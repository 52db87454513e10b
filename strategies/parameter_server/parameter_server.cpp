#include "strategies/parameter_server/parameter_server.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/fields.hpp"
#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/parameter_server/server_plan.hpp"

namespace stepcast {
namespace {

/// Step 1.
SubProgram read_parameters(Worker& worker, const ParameterServerRun& run, int step, ClientState& state) {
  if (run.options.joint() || step % run.options.n_fetch != 0) co_return;
  if (run.options.overlap) {
    co_await start_fetch(worker, run.servers, run.array, state);
  } else {
    const ClientExchange read{Array::none, Array::parameters};
    co_await exchange(worker, run.servers, read, state);
  }
}

/// Step 4, and step 1 where they are one exchange.
SubProgram send_gradients(Worker& worker, const ParameterServerRun& run, int step, ClientState& state) {
  const ParameterServer& options = run.options;
  if (options.n_push > 1)
    co_await worker.local(add_array(Array::gradients, Array::update, step % options.n_push == 0, run.array));
  if ((step + 1) % options.n_push != 0) co_return;
  if (options.overlap) co_await finish_push(worker, state);  // what was sent may change now
  if (run.compressed) co_await worker.local(run.quantize);
  if (options.joint()) {
    const ClientExchange both{run.sent(), Array::parameters};
    co_await exchange(worker, run.servers, both, state);
  } else if (options.overlap) {
    const Array from = options.n_push > 1 ? Array::update : Array::gradients;
    if (!run.compressed) co_await worker.local(add_array(from, run.sent(), true, run.array));
    start_push(worker, run.servers, run.sent(), state);
  } else {
    co_await push(worker, run.servers, run.sent(), state);
  }
}

Slice common_part(const Slice& a, const Slice& b) {
  return {std::max(a.begin, b.begin), std::min(a.end, b.end)};
}

/// The elements of bucket `index` that server `shard` holds.
Slice held_part(const Servers& servers, std::size_t shard, const Bucket& bucket, std::size_t index) {
  if (servers.shard_of_bucket.empty()) return common_part(servers.shards[shard].elements, bucket.elements);
  return std::cmp_equal(servers.shard_of_bucket[index], shard) ? bucket.elements : Slice{};
}

/// Sends the gradients of bucket `index` to the servers that hold its elements. @returns the number of
/// messages
int send_bucket(Worker& worker, const Servers& servers, std::size_t index, int step) {
  const Bucket& bucket = worker.workload().buckets[index];
  int sent = 0;
  for (std::size_t shard = 0; shard < servers.shards.size(); ++shard) {
    const Slice elements = held_part(servers, shard, bucket, index);
    if (elements.begin >= elements.end) continue;
    const double share = 1.0 * elements.size() / bucket.elements.size();
    Message message;
    message.tag = kRequest;
    message.buffer = {Array::gradients, elements, share * bucket.gradient};
    message.value = step;
    worker.start_send(servers.shards[shard].role, message);
    ++sent;
  }
  return sent;
}

/// Steps 2 and 4 with rounds of arrays.
SubProgram train_in_array_rounds(Worker& worker, const ParameterServerRun& run, int step,
                                 std::deque<Pending>& loads) {
  co_await start_mini_batch(worker, run.batch, loads);
  co_await worker.forward();
  int answers = 0;
  const std::vector<Bucket>& buckets = worker.workload().buckets;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    co_await worker.backward(buckets[i].layers);
    if (buckets[i].gradient.value == 0) continue;
    answers += send_bucket(worker, run.servers, i, step);
  }
  for (int i = 0; i < answers; ++i) co_await worker.receive(kWeights, kAnyone, Array::parameters);
}

}  // namespace

Program parameter_server(Worker& worker, const ParameterServerRun& run) {
  const ParameterServer& options = run.options;
  ClientState state;
  std::deque<Pending> loads;
  for (int step = 0; step < options.steps && options.array_rounds; ++step) {
    co_await train_in_array_rounds(worker, run, step, loads);
    worker.end_step();
  }
  for (int step = 0; step < options.steps && !options.array_rounds;) {
    co_await read_parameters(worker, run, step, state);          // 1.
    co_await train_mini_batch(worker, run.batch, loads);         // 2.
    if (options.local_update) co_await worker.optimizer_step();  // 3.
    co_await send_gradients(worker, run, step, state);           // 4.
    co_await share_weights(worker, run.batch);
    const bool counts_versions = options.rounds && !run.servers.shards.empty();
    const int done = counts_versions ? static_cast<int>(state.version()) : step + 1;
    for (; step < done; ++step) worker.end_step();
  }
}

namespace {

using Mode = ServerRules::Mode;

constexpr const char* kServerUpdate = "server update";

/// Refuses options that rounds of arrays during the backward pass do not support.
void check_array_rounds(const YamlMap& map, const ServerOptions& servers) {
  const YamlValue overlap = map.at("overlap");
  if (!servers.by_array) overlap.refuse("only valid with messages: array if mode is synchronous");
  for (const char* other : {"compression", "backup_workers", "exchanged", "arrays", "group_size",
                            "machines_per_replica", "validate_every"}) {
    if (map.has(other)) overlap.refuse(fmt::format("not valid with {} if mode is synchronous", other));
  }
}

void check(const YamlMap& map, const ParameterServer& options, const ServerOptions& servers, Mode mode) {
  if (options.overlap && servers.serial)
    map.at("overlap").refuse("not valid with master: serial, which asks for each update before it is sent");
  if (mode == Mode::synchronous && (options.n_push != 1 || options.n_fetch != 1))
    map.at("mode").refuse("synchronous is only valid with n_push: 1 and n_fetch: 1");
  if (mode == Mode::synchronous && options.overlap) check_array_rounds(map, servers);
  if (mode == Mode::bounded_staleness && options.overlap)
    map.at("mode").refuse(
        "bounded_staleness is only valid with overlap: false, because its reads may have to wait");
  if (mode != Mode::asynchronous && servers.sub_masters > 0)
    servers.sub_masters_at->refuse("only valid with mode: asynchronous");
}

/// What a parameter server adds to the keys of servers.
struct ParameterServerKeys {
  ParameterServer options;
  bool divide_arrays = true;
  Mode mode = Mode::asynchronous;
  int backup_workers = 0;
  std::optional<int> staleness_bound;
};

void check_mode(const YamlMap& map, ParameterServerKeys& keys) {
  if (keys.mode == Mode::bounded_staleness) {
    map.at("staleness_bound", "updates that a worker may be ahead of the slowest");
  } else if (const auto bound = map.maybe("staleness_bound")) {
    bound->refuse("only valid with mode: bounded_staleness");
  }
}

const Fields<ParameterServer>& downpour_fields() {
  static const Fields<ParameterServer> fields{
      details({field("n_push", &ParameterServer::n_push, integer(1, 1'000'000),
                     "mini-batches between two updates that a worker sends"),
               field("n_fetch", &ParameterServer::n_fetch, integer(1, 1'000'000),
                     "mini-batches between two reads of the parameters"),
               field("overlap", &ParameterServer::overlap, boolean(),
                     "whether reads and updates are sent during the mini-batches")}),
      field("message_slowdown", &ParameterServer::message_slowdown, number(1, 100),
            "overlap: factor on the time of compute while a read or an update is sent")};
  return fields;
}

const Fields<ParameterServerKeys>& parameter_server_fields() {
  using Own = ParameterServerKeys;
  static const Fields<Own> fields{
      {part(&Own::options, downpour_fields()),
       field("divide_arrays", &Own::divide_arrays, boolean(),
             "whether every server holds a part of each array; false: each array lies whole on one server"),
       field("mode", &Own::mode,
             choice<Mode>({{"asynchronous", Mode::asynchronous},
                           {"synchronous", Mode::synchronous},
                           {"bounded_staleness", Mode::bounded_staleness}}),
             "when the server applies updates and answers"),
       field("backup_workers", &Own::backup_workers, integer(0, 1'000'000),
             "synchronous: workers whose late updates the server drops"),
       field("staleness_bound", &Own::staleness_bound, integer(0, 1'000'000),
             "bounded_staleness: updates that a worker may be ahead of the slowest")},
      check_mode};
  return fields;
}

void check_backup_workers(const YamlMap& map, const Setting& setting, const ServerOptions& servers,
                          const ParameterServerKeys& keys) {
  const auto value = map.maybe("backup_workers");
  if (!value) return;
  const int ranks = servers.group_size * servers.machines_per_replica, backup = keys.backup_workers;
  if (backup > 0 && keys.mode != Mode::synchronous) value->refuse("only valid with mode: synchronous");
  if (backup >= setting.workers() / ranks)
    value->refuse(
        fmt::format("expected fewer than {} backup workers, got {}", setting.workers() / ranks, backup));
  if (backup > 0 && ranks > 1) value->refuse("not supported with group_size or machines_per_replica above 1");
}

/// The server's step: v = v - learning rate x update. A round's sum is cleared for the next round.
std::function<void(Arrays&, const Slice&, int)> descend(Array gradient) {
  return [gradient](Arrays& arrays, const Slice& elements, int summed) {
    arrays.descend(gradient, elements, summed);
    if (gradient == Array::gradients) std::ranges::fill(arrays.of(gradient, elements), 0.0F);
  };
}

/// Makes a worker's program.
std::function<std::function<Program(Worker&)>(ServerClient)> make_program(const ParameterServer& options,
                                                                          bool compressed) {
  return [options, compressed](ServerClient client) -> std::function<Program(Worker&)> {
    ParameterServerRun made{options,    std::move(client.servers), client.batch,
                            compressed, client.quantize,           client.array};
    made.quantize.run = [servers = made.servers, array = made.sent()](Arrays& arrays) {
      compress_update(arrays, servers, array);
    };
    const auto run = std::make_shared<const ParameterServerRun>(std::move(made));
    return [run](Worker& worker) { return parameter_server(worker, *run); };
  };
}

const Keys& parameter_server_keys() {
  static const Keys keys = joined_keys({server_keys(), compression_keys(), parameter_server_fields().keys()});
  return keys;
}

Plan read_parameter_server(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, parameter_server_keys());
  ServerOptions servers = read_server_options(map, 5);  // momentum: reads three arrays, writes two
  use_measured_update(setting, kServerUpdate, servers);
  ParameterServerKeys keys;
  read_fields(map, parameter_server_fields(), keys);
  ParameterServer& options = keys.options;
  options.steps = setting.steps;
  ServerStrategy strategy;
  strategy.rules.mode = keys.mode;
  strategy.rules.versions = setting.steps;
  strategy.rules.bound = keys.staleness_bound.value_or(strategy.rules.bound);
  check(map, options, servers, keys.mode);
  check_backup_workers(map, setting, servers, keys);
  strategy.backup_workers = keys.backup_workers;
  strategy.updates_a_step = 1.0 / options.n_push;
  strategy.held_arrays = options.n_push > 1 || options.overlap ? 1 : 0;  // accrued gradients
  strategy.compression = read_compression_options(map, setting);
  const bool compressed = strategy.compression.kind != Compression::none;
  if (compressed) ++strategy.held_arrays;  // the quantization error of the last update
  options.rounds = strategy.rules.mode == Mode::synchronous;
  options.local_update = !options.rounds;
  options.array_rounds = options.rounds && options.overlap;
  strategy.array_rounds = options.array_rounds;
  strategy.whole_arrays = !keys.divide_arrays && options.array_rounds;
  strategy.apply = descend(options.rounds ? Array::gradients : Array::update);
  strategy.program = make_program(options, compressed);
  Plan plan = server_plan(setting, servers, strategy);
  plan.message_slowdown = options.message_slowdown;
  if (options.overlap)
    plan.message_slowdown = setting.measured.message_slowdown.value_or(plan.message_slowdown);
  note_ineffective_server_options(map, servers, options.rounds, plan);
  if (!options.array_rounds || servers.shards == 1)
    note_ineffective(map, {"divide_arrays"},
                     options.array_rounds ? "with shards: 1" : "without mode: synchronous and overlap: true",
                     plan.ineffective_keys);
  if (!options.overlap)
    note_ineffective(map, {"message_slowdown"}, "with overlap: false", plan.ineffective_keys);
  return plan;
}

std::vector<TimedArithmetic> server_arithmetic(const ArithmeticPlace& place) {
  return {{kServerUpdate, false, delivered(Array::gradients, Array::update),
           [whole = place.whole](Arrays& arrays) { arrays.descend(Array::update, whole, 1); }}};
}

}  // namespace

Strategy parameter_server_strategy() {
  return {.kind = "parameter_server",
          .what = "Downpour SGD: workers exchange with a parameter server, each at its own pace or in rounds",
          .source = "J. Dean et al., Large scale distributed deep networks, NIPS 2012",
          .plan = read_parameter_server,
          .keys = parameter_server_keys(),
          .example = "{kind: parameter_server, server: colocated}",
          .example_model = "small-cnn",
          .other_names = {"downpour"},
          .timed_arithmetic = server_arithmetic,
          .server_devices = server_devices,
          .usual_steps = usual_server_steps};
}

}  // namespace stepcast
