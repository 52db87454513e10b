#include <fmt/format.h>

#include <algorithm>

#include "strategies/parameter_server.hpp"
#include "strategies/server_plan.hpp"

namespace stepcast {
namespace {

using Mode = ServerRules::Mode;

void check(const YamlMap& map, const ParameterServer& run, const ServerOptions& servers, Mode mode) {
  if (run.overlap && servers.serial)
    map.at("overlap").refuse(
        "a serial master takes an update only when it asks for it, which nothing can overlap");
  if (mode == Mode::synchronous && (run.overlap || run.n_push != 1 || run.n_fetch != 1))
    map.at("mode").refuse("synchronous asks for n_push and n_fetch of 1 and no overlap");
  if (mode == Mode::bounded_staleness && run.overlap)
    map.at("mode").refuse("bounded_staleness asks for overlap: false, since its reads must be able to wait");
  if (mode != Mode::asynchronous && servers.sub_masters > 0)
    servers.sub_masters_at->refuse("sub_masters ask for mode: asynchronous");
}

ServerRules read_rules(const YamlMap& map, const Setting& setting) {
  ServerRules rules;
  if (const auto mode = map.maybe("mode"))
    rules.mode = static_cast<Mode>(mode->one_of({"asynchronous", "synchronous", "bounded_staleness"}));
  rules.versions = setting.steps;
  if (rules.mode == Mode::bounded_staleness) {
    rules.bound = static_cast<int>(
        map.at("staleness_bound", "updates that a worker may be ahead of the slowest").integer(0, 1'000'000));
  } else if (const auto bound = map.maybe("staleness_bound")) {
    bound->refuse("belongs to mode: bounded_staleness");
  }
  return rules;
}

int read_backup_workers(const YamlMap& map, const Setting& setting, const ServerOptions& servers, Mode mode) {
  const auto value = map.maybe("backup_workers");
  if (!value) return 0;
  const int ranks = servers.group_size * servers.machines_per_replica;
  const int backup = static_cast<int>(value->integer(0, 1'000'000));
  if (backup > 0 && mode != Mode::synchronous) value->refuse("belongs to mode: synchronous");
  if (backup >= setting.workers() / ranks)
    value->refuse(fmt::format("{} backup workers of {} leave none", backup, setting.workers() / ranks));
  if (backup > 0 && ranks > 1) value->refuse("groups of ranks cannot be dropped");
  return backup;
}

ParameterServer read_run(const YamlMap& map, const Setting& setting) {
  ParameterServer run;
  run.steps = setting.steps;
  if (const auto value = map.maybe("n_push")) run.n_push = static_cast<int>(value->integer(1, 1'000'000));
  if (const auto value = map.maybe("n_fetch")) run.n_fetch = static_cast<int>(value->integer(1, 1'000'000));
  if (const auto value = map.maybe("overlap")) run.overlap = value->boolean();
  return run;
}

}  // namespace

Plan read_parameter_server(const YamlValue& value, const Setting& setting) {
  const YamlMap map =
      value.map(joined_keys({server_keys(),
                             compression_keys(),
                             {"n_push", "n_fetch", "overlap", "mode", "backup_workers", "staleness_bound"}}));
  const ServerOptions servers = read_server_options(map, 5);  // momentum: reads three arrays, writes two
  ParameterServer run = read_run(map, setting);
  ServerStrategy strategy;
  strategy.rules = read_rules(map, setting);
  check(map, run, servers, strategy.rules.mode);
  strategy.backup_workers = read_backup_workers(map, setting, servers, strategy.rules.mode);
  strategy.updates_a_step = 1.0 / run.n_push;
  strategy.held_arrays = run.n_push > 1 || run.overlap ? 1 : 0;  // accrued gradients
  strategy.compression = read_compression_options(map, setting);
  if (strategy.compression.kind != Compression::none)
    ++strategy.held_arrays;  // what is owed to the next update
  run.rounds = strategy.rules.mode == Mode::synchronous;
  run.local_update = !run.rounds;
  strategy.apply = [gradient = run.rounds ? Array::gradients : Array::update](
                       Arrays& arrays, const Slice& elements, int summed) {
    arrays.descend(gradient, elements, summed);
    if (gradient == Array::gradients) std::ranges::fill(arrays.of(gradient, elements), 0.0F);
  };
  strategy.program = [run, compressed = strategy.compression.kind != Compression::none](ServerClient client) {
    ParameterServer mine = run;
    mine.servers = std::move(client.servers);
    mine.batch = client.batch;
    mine.compressed = compressed;
    mine.quantize = client.quantize;
    mine.quantize.run = [servers = mine.servers, array = run.joint() ? Array::update : Array::gradients](
                            Arrays& arrays) { compress_update(arrays, servers, array); };
    return [options = std::make_shared<const ParameterServer>(std::move(mine))](Worker& worker) {
      return parameter_server(worker, *options);
    };
  };
  Plan plan = server_plan(setting, servers, strategy);
  note_idle_server_options(map, servers, run.rounds, plan);
  return plan;
}

}  // namespace stepcast
