#include "strategies/parameter_server/server_options.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/fields.hpp"
#include "models/layer_times/trace.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/model_parallel/group_plan.hpp"

namespace stepcast {
namespace {

/// Refuses a key that has no effect without another key.
void require_with(const YamlMap& map, const char* key, const char* other) {
  const auto value = map.maybe(key);
  if (value && !map.has(other)) value->refuse(std::string("only valid with ") + other);
}

void check_tree(const YamlMap& map, const ServerOptions& options) {
  if (options.sub_masters > 0 && options.shards > 1)
    map.at("shards").refuse("not supported with sub_masters; give shards: 1");
  if (options.group_size > 1 && options.machines_per_replica > 1)
    map.at("machines_per_replica").refuse("give either group_size or machines_per_replica");
  if (options.sub_masters > 0 && options.machines_per_replica > 1)
    map.at("machines_per_replica").refuse("not supported with sub_masters");
}

void check_servers(const YamlMap& map, ServerOptions& options) {
  if (options.apply_time && options.apply_trace)
    options.apply_trace->refuse("give either apply_time or apply_trace");
  if (options.apply_time && options.apply_arrays == 0)
    map.at("apply_arrays").refuse("expected more than 0, because apply_time is given");
  if (options.validate_every > 0) map.at("validation_time", "seconds of a validation on the master");
  check_tree(map, options);
  require_with(map, "validation_time", "validate_every");
  require_with(map, "sub_master_every", "sub_masters");
  require_with(map, "arrays", "messages");
}

const Fields<ServerOptions>& server_fields() {
  using Options = ServerOptions;
  using Place = Options::Place;
  const Form<std::int64_t> count = integer(1, 1'000'000);
  static const Fields<Options> fields{
      {field("shards", &Options::shards, integer(1, 100'000), "servers, each with a part of the parameters"),
       field("server", &Options::place,
             choice<Place>({{"own_host", Place::own_host},
                            {"own_device", Place::own_device},
                            {"colocated", Place::colocated}}),
             "where the servers run"),
       details({field("messages", &Options::by_array, choice<bool>({{"model", false}, {"array", true}}),
                      "one message for all arrays, or one for each array")}),
       field("master", &Options::serial, choice<bool>({{"concurrent", false}, {"serial", true}}),
             "a serial master receives, applies and answers one client after the other"),
       field("apply_time", &Options::apply_time, duration(), otherwise("derived"),
             "time of a server to apply an update of the whole model"),
       field<Options>({"apply_trace", Allowed({KeyType::name, KeyType::path}), "none",
                       "trace whose update times give the time of a server's update"},
                      [](const YamlValue& value, Options& options) { options.apply_trace = value; }),
       field("apply_arrays", &Options::apply_arrays, number(0, 1000),
             otherwise("that of the strategy's update"), "arrays that an update reads and writes"),
       field("validate_every", &Options::validate_every, integer(1, 1'000'000'000), otherwise("none"),
             "updates between two validations on the server"),
       field("validation_time", &Options::validation, duration(), otherwise("required with validate_every"),
             "time of a validation"),
       field("exchanged", &Options::exchanged, bytes(1), otherwise("that of the model"),
             "size of all parameters in messages"),
       field("arrays", &Options::arrays, count, otherwise("those of the model"),
             "number of arrays, with messages: array"),
       field("sub_masters", &Options::sub_masters, integer(0, 1'000'000),
             "servers between the workers and the master"),
       details({field("sub_master_every", &Options::sub_master_every, count,
                      "updates between two exchanges of a sub-master with the master")}),
       field("group_size", &Options::group_size, count, "ranks of one worker, each with its own samples"),
       field("machines_per_replica", &Options::machines_per_replica, count,
             "devices that share the network of one worker"),
       field("exchange_overhead", &Options::exchange_overhead, duration(),
             "machines_per_replica: device time of every exchange between them")},
      check_servers};
  return fields;
}

}  // namespace

const Keys& server_keys() {
  static const Keys keys =
      joined_keys({training_keys(), communication_keys(), server_fields().keys(), {part_trace_key()}});
  return keys;
}

void note_ineffective_server_options(const YamlMap& map, const ServerOptions& options, bool sums,
                                     Plan& plan) {
  note_ineffective_compression(map, plan.ineffective_keys);
  note_ineffective_communication(map, options.group_size > 1 ? "" : "without a group_size above 1", false,
                                 plan);
  if (options.machines_per_replica == 1) {
    note_ineffective(map, {"compute_slowdown"}, "where no collective overlaps with compute",
                     plan.ineffective_keys);
    note_ineffective(map, {"exchange_overhead", "part_trace"}, "with machines_per_replica: 1",
                     plan.ineffective_keys);
  }
  if (options.apply_time && !sums)
    note_ineffective(map, {"apply_arrays"}, "with apply_time", plan.ineffective_keys);
  if (!options.by_array) note_ineffective(map, {"arrays"}, "with messages: model", plan.ineffective_keys);
  if (options.sub_masters == 0)
    note_ineffective(map, {"sub_master_every"}, "with sub_masters: 0", plan.ineffective_keys);
}

ServerOptions read_server_options(const YamlMap& map, double apply_arrays) {
  ServerOptions options;
  options.apply_arrays = apply_arrays;
  options.training = read_training_options(map);
  options.communication = read_communication(map);
  read_fields(map, server_fields(), options);
  options.shards_at = map.maybe("shards");
  options.place_at = map.has("server") ? map.maybe("server") : map.maybe("kind");
  options.sub_masters_at = map.maybe("sub_masters");
  options.group_at = map.maybe("group_size");
  options.machines_at = map.maybe("machines_per_replica");
  options.part_trace = map.maybe("part_trace");
  return options;
}

int server_devices(const YamlValue& options) {
  const YamlMap map = options.any_map();
  const auto server = map.maybe("server");
  if (!server || server->text() != "own_device") return 0;
  ServerOptions read;
  for (const char* key : {"shards", "sub_masters"}) {
    if (const auto value = map.maybe(key)) server_fields().at(key).read(*value, read);
  }
  return read.shards + read.sub_masters;
}

int usual_server_steps(const YamlValue& options) {
  constexpr std::int64_t kSteps = 100, kExchanges = 10, kMost = 100'000;
  std::int64_t longest = 1;
  const YamlMap map = options.any_map();
  for (const char* key : {"period", "n_push", "n_fetch"}) {
    if (const auto value = map.maybe(key)) longest = std::max(longest, value->integer(1, kMost));
  }
  return std::clamp(kExchanges * longest, kSteps, kMost);
}

void use_measured_update(const Setting& setting, const char* arithmetic, ServerOptions& options) {
  if (!options.apply_time && !options.apply_trace && options.apply_arrays > 0)
    options.apply_time = setting.measured_time(arithmetic);
}

namespace {

/// Time of an array of the whole model in the update of a named trace.
Seconds named_array(const Setting& setting, const YamlValue& name) {
  const Trace& trace = setting.named_trace(name);
  if (trace.model != setting.model.name)
    name.refuse(fmt::format("expected a trace of model {}, got one of {}", setting.model.name, trace.model));
  Seconds sum;
  for (const LayerTrace& layer : trace.layers) sum += median(layer.update.seconds);
  return {sum.value / trace.update_arrays};
}

}  // namespace

Tree tree_of(const Setting& setting, const ServerOptions& options) {
  Tree tree;
  tree.ranks = options.group_size * options.machines_per_replica;
  tree.shards = options.shards;
  tree.sub_masters = options.sub_masters;
  tree.workers = setting.workers() / tree.ranks;
  if (setting.workers() % tree.ranks != 0 || tree.workers == 0) {
    const auto& at = options.group_size > 1 ? options.group_at : options.machines_at;
    at->refuse(
        fmt::format("{} devices cannot form workers of {}; give a divisor", setting.workers(), tree.ranks));
  }
  if (options.shards % options.machines_per_replica != 0) {
    const std::string problem =
        fmt::format("{} shards cannot be assigned evenly to the {} machines of a replica; give a multiple",
                    options.shards, options.machines_per_replica);
    (options.shards_at ? *options.shards_at : *options.machines_at).refuse(problem);
  }
  if (tree.sub_masters > tree.workers) {
    options.sub_masters_at->refuse(fmt::format(
        "{} sub-masters for {} workers; give at most one for each worker", tree.sub_masters, tree.workers));
  }
  return tree;
}

Exchanged exchanged_of(const Setting& setting, const ServerOptions& options) {
  Exchanged exchanged;
  exchanged.size =
      options.exchanged.value_or(trainable_parameters(setting.model) * options.training.element());
  exchanged.arrays = options.arrays.value_or(static_cast<int>(gradient_tensors(setting.model)));
  if (!options.exchanged) exchanged.elements.end = trainable_parameters(setting.model);
  return exchanged;
}

Shard share_of(const Exchanged& exchanged, const ServerOptions& options, int index, RoleId role) {
  Shard shard{role, exchanged.size / options.shards, 1, {}};
  shard.update = exchanged.update_share * shard.size;
  shard.codec = exchanged.codec;
  const std::int64_t all = exchanged.elements.size();
  shard.elements = {part_begin(all, options.shards, index), part_begin(all, options.shards, index + 1)};
  if (options.by_array) shard.parts = std::ceil(1.0 * exchanged.arrays / options.shards);
  return shard;
}

std::string no_arithmetic(const ServerOptions& options) {
  if (options.exchanged) return "exchanged: parameters of another size than the model's";
  return options.training.mixed ? "precision: mixed" : "";
}

Seconds array_seconds(const Setting& setting, const ServerOptions& options, const Workload& whole,
                      const std::string& trace_kind, const Exchanged& exchanged) {
  if (options.apply_time) return *options.apply_time / options.apply_arrays;
  if (options.apply_trace) return named_array(setting, *options.apply_trace);
  const bool measured = setting.device.is_processor() && trace_kind.starts_with("captured");
  if (options.place == ServerOptions::Place::own_device || measured) return array_work(whole, 1);
  return exchanged.size / setting.platform.node.memory.bandwidth;
}

Seconds server_work(const ServerOptions& options, Seconds array, double arrays) {
  return arrays / options.shards * array;
}

RankId rank_for(const Tree& tree, const ServerOptions& options, int worker, int shard) {
  return RankId(worker * tree.ranks + shard / (tree.shards / options.machines_per_replica));
}

Servers servers_of(const Tree& tree, const ServerOptions& options, const Exchanged& exchanged, RankId rank) {
  Servers servers;
  servers.serial = options.serial;
  const int worker = rank.value / tree.ranks;
  if (tree.sub_masters > 0) {
    if (rank.value % tree.ranks == 0)
      servers.shards.push_back(
          share_of(exchanged, options, 0, RoleId(tree.first_sub_master() + worker % tree.sub_masters)));
    return servers;
  }
  for (int shard = 0; shard < tree.shards; ++shard) {
    if (rank_for(tree, options, worker, shard) == rank)
      servers.shards.push_back(share_of(exchanged, options, shard, RoleId(tree.first_shard() + shard)));
  }
  return servers;
}

}  // namespace stepcast
