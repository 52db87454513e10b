#include "strategies/server_options.hpp"

#include "strategies/compression.hpp"

namespace stepcast {
namespace {

int whole(const YamlMap& map, const char* key, int otherwise, int least, int most) {
  const auto value = map.maybe(key);
  return value ? static_cast<int>(value->integer(least, most)) : otherwise;
}

/// A key without which another one changes nothing.
void belongs(const YamlMap& map, const char* key, const char* to) {
  const auto value = map.maybe(key);
  if (value && !map.has(to)) value->refuse(std::string("belongs to ") + to);
}

void read_tree(const YamlMap& map, ServerOptions& options) {
  options.sub_masters_at = map.maybe("sub_masters");
  options.group_at = map.maybe("group_size");
  options.machines_at = map.maybe("machines_per_replica");
  options.sub_masters = whole(map, "sub_masters", 0, 0, 1'000'000);
  options.sub_master_every = whole(map, "sub_master_every", 1, 1, 1'000'000);
  options.group_size = whole(map, "group_size", 1, 1, 1'000'000);
  options.machines_per_replica = whole(map, "machines_per_replica", 1, 1, 1'000'000);
  if (options.sub_masters > 0 && options.shards > 1)
    options.shards_at->refuse("sub_masters need a master of one shard");
  if (options.group_size > 1 && options.machines_per_replica > 1)
    options.machines_at->refuse("give either group_size or machines_per_replica");
  if (options.sub_masters > 0 && options.machines_per_replica > 1)
    options.machines_at->refuse("sub_masters and machines_per_replica do not go together");
}

}  // namespace

const std::vector<std::string>& server_keys() {
  static const std::vector<std::string> keys =
      joined_keys({training_keys(),
                   communication_keys(),
                   {"shards", "server", "messages", "master", "apply_time", "apply_trace", "apply_arrays",
                    "validate_every", "validation_time", "exchanged", "arrays", "sub_masters",
                    "sub_master_every", "group_size", "machines_per_replica"}});
  return keys;
}

void note_idle_server_options(const YamlMap& map, const ServerOptions& options, bool sums, Plan& plan) {
  note_idle_compression(map, plan.idle_keys);
  note_idle_communication(map, options.group_size > 1 ? "" : "without a group_size above 1", false, plan);
  note_idle(map, {"compute_slowdown"}, "where no collective is beside compute", plan.idle_keys);
  if (options.apply_time && !sums) note_idle(map, {"apply_arrays"}, "with apply_time", plan.idle_keys);
  if (!options.by_array) note_idle(map, {"arrays"}, "with messages: model", plan.idle_keys);
  if (options.sub_masters == 0) note_idle(map, {"sub_master_every"}, "with sub_masters: 0", plan.idle_keys);
}

ServerOptions read_server_options(const YamlMap& map, double apply_arrays) {
  ServerOptions options;
  options.training = read_training_options(map);
  options.communication = read_communication(map);
  options.shards_at = map.maybe("shards");
  options.shards = whole(map, "shards", 1, 1, 100'000);
  if (const auto value = map.maybe("server"))
    options.place = static_cast<ServerOptions::Place>(value->one_of({"own_host", "own_device", "colocated"}));
  options.place_at = map.maybe("server") ? map.maybe("server") : map.maybe("kind");
  if (const auto value = map.maybe("messages")) options.by_array = value->one_of({"model", "array"}) == 1;
  if (const auto value = map.maybe("master")) options.serial = value->one_of({"concurrent", "serial"}) == 1;
  if (const auto value = map.maybe("apply_time")) options.apply_time = value->seconds();
  options.apply_trace = map.maybe("apply_trace");
  if (options.apply_time && options.apply_trace)
    options.apply_trace->refuse("give either apply_time or apply_trace");
  options.apply_arrays = apply_arrays;
  if (const auto value = map.maybe("apply_arrays")) options.apply_arrays = value->number(0, 1000);
  if (options.apply_time && options.apply_arrays == 0)
    map.at("apply_arrays").refuse("apply_time is that of some arrays; give more than 0");
  options.validate_every = whole(map, "validate_every", 0, 1, 1'000'000'000);
  if (options.validate_every > 0)
    options.validation = map.at("validation_time", "seconds of a validation on the master").seconds();
  if (const auto value = map.maybe("exchanged")) options.exchanged = value->bytes(1);
  if (const auto value = map.maybe("arrays")) options.arrays = static_cast<int>(value->integer(1, 1'000'000));
  read_tree(map, options);
  belongs(map, "validation_time", "validate_every");
  belongs(map, "sub_master_every", "sub_masters");
  belongs(map, "arrays", "messages");
  return options;
}

}  // namespace stepcast
