#include "scenarios/experiment/noise_and_data.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace stepcast {
namespace {

/// An entry of `noise.stragglers`.
struct Straggler {
  std::optional<std::uint32_t> worker, node;
  double factor = 1;
};

constexpr std::int64_t kMostWorkers = (1 << 20) - 1;

const Fields<Straggler>& straggler_fields() {
  static const Fields<Straggler> fields{
      field("worker", &Straggler::worker, integer(0, kMostWorkers), otherwise("this or `node`"),
            "rank of a slow worker"),
      field("node", &Straggler::node, integer(0, kMostWorkers), otherwise("this or `worker`"),
            "slow node; only with `per: node`"),
      field("factor", &Straggler::factor, number(1, 1000),
            required("by how much it is slower, a number >= 1"), "factor on the time of this worker's work")};
  return fields;
}

void read_stragglers(const YamlValue& value, Noise& noise) {
  const std::string unit = noise.per_node ? "node" : "worker";
  for (const YamlValue& item : value.list()) {
    Straggler slow;
    const YamlMap map = read_mapping(item, straggler_fields(), slow);
    if (const auto other = map.maybe(noise.per_node ? "worker" : "node"))
      other->refuse(noise.per_node ? "not valid with per: node; give node" : "only valid with per: node");
    const YamlValue number = map.at(unit, "the number of a slow " + unit + ", counted from 0");
    const std::uint32_t one = noise.per_node ? *slow.node : *slow.worker;
    if (!noise.stragglers.emplace(one, slow.factor).second)
      number.refuse(fmt::format("{} {} is listed twice; give one factor", unit, one));
  }
}

void check_noise(const YamlMap& map, Noise& noise) {
  if (noise.jitter == Noise::Jitter::lognormal || noise.jitter == Noise::Jitter::layers)
    map.at("sigma", "the spread of the jitter, a number from 0 to 10");
  if (map.has("sigma") && !map.has("jitter"))
    map.at("sigma").refuse("only valid with jitter: lognormal or layers");
  if (noise.straggler_share > 0) map.at("straggler_factor", "by how much they are slower, a number >= 1");
  if (map.has("straggler_factor") && !map.has("straggler_share"))
    map.at("straggler_factor").refuse("only valid with straggler_share");
}

}  // namespace

const Fields<Noise>& noise_fields() {
  using Jitter = Noise::Jitter;
  static const Fields<Noise> fields{
      {field("jitter", &Noise::jitter,
             choice<Jitter>({{"none", Jitter::none},
                             {"trace", Jitter::trace},
                             {"lognormal", Jitter::lognormal},
                             {"layers", Jitter::layers}}),
             "variation from step to step"),
       field("sigma", &Noise::sigma, number(0, 10), otherwise("required for `lognormal` and `layers`"),
             "standard deviation of the logarithm of the factor"),
       field("per", &Noise::per_node, choice<bool>({{"worker", false}, {"node", true}}),
             "`node`: all workers of a node draw the same values"),
       field("straggler_share", &Noise::straggler_share, number(0, 1),
             "probability that a worker (or node) is slow in every step"),
       field("straggler_factor", &Noise::straggler_factor, number(1, 1000),
             otherwise("required with a share above 0"), "factor on the time of a slow worker's work"),
       field<Noise>({"stragglers", KeyType::mappings, "none", "workers (or nodes) that are known to be slow",
                     keys_inside<straggler_fields>},
                    read_stragglers),
       field("start_spread", &Noise::start_spread, duration(),
             "asynchronous workers start one after the other, at equal intervals over this time; all other "
             "workers start together"),
       field("device_spread", &Noise::device_spread, number(0, 1),
             otherwise("0.015 on GPUs where a scenario has no `noise`, else 0"),
             "standard deviation of the logarithm of the speeds of equal devices: workers that keep a common "
             "pace keep that of the slowest")},
      check_noise};
  return fields;
}

namespace {

struct DataLoading {
  std::optional<Bytes> sample_size;
  int prefetch = 1;
  double compute_slowdown = 1;
  double imbalance = 0;
};

const Fields<DataLoading>& data_fields() {
  static const Fields<DataLoading> fields{
      field("sample_size", &DataLoading::sample_size, bytes(1), otherwise("required without `imbalance`"),
            "size of one sample in storage"),
      field("prefetch", &DataLoading::prefetch, integer(0, 1000),
            "micro-batches loaded ahead; 0: the worker waits for every load"),
      field("compute_slowdown", &DataLoading::compute_slowdown, number(1, 100),
            "factor on the time of compute while the worker's input loads"),
      field("imbalance", &DataLoading::imbalance, number(0, 10),
            "standard deviation of the logarithm of a worker's work in a step, because its samples differ")};
  return fields;
}

}  // namespace

const Keys& data_keys() {
  return data_fields().keys();
}

void read_data(const YamlValue& value, const Platform& platform, Setting& setting, Noise& noise) {
  DataLoading data;
  const YamlMap map = read_mapping(value, data_fields(), data);
  noise.imbalance = data.imbalance;
  if (noise.imbalance > 0 && noise.per_node) map.at("imbalance").refuse("not valid with noise.per: node");
  if (!data.sample_size && map.has("imbalance")) {
    for (const char* key : {"prefetch", "compute_slowdown"})
      if (const auto given = map.maybe(key)) given->refuse("only valid with sample_size");
    return;
  }
  map.at("sample_size", "bytes of one sample as stored");
  if (platform.storage.kind == Storage::Kind::none)
    value.refuse("needs a platform with storage; platform " + platform.name + " has none");
  setting.sample_size = *data.sample_size;
  setting.prefetch = data.prefetch;
  // No compute runs beside a load that is waited for.
  setting.load_slowdown =
      data.prefetch == 0 ? 1 : setting.measured.load_slowdown.value_or(data.compute_slowdown);
}

}  // namespace stepcast
