#include "tests/drawn/drawn_scenario.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "core/keys.hpp"
#include "core/text.hpp"
#include "platforms/platform.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/registry.hpp"
#include "tests/drawn/draws.hpp"

namespace stepcast::drawn {

/// Keys with drawn values as YAML text in one line: those that are required, and some others.
/// @param kind    value of the key `kind`; empty if the mapping has none
/// @param layers  names of the network's layers
std::string drawn_keys(const Keys& keys, const std::string& kind, const std::vector<std::string>& layers,
                       Draws& draws);

/// A made-up platform with at least `devices` devices, as YAML text in one line. Its kind of node, fabric,
/// NICs, message costs, storage and communication library are drawn.
std::string drawn_platform(int devices, Draws& draws);

namespace {

/// Values of keys whose table does not say enough: names of files, and ranges whose cases would be refused,
/// unlikely or endless.
const std::map<std::string_view, std::vector<std::string>>& special_values() {
  static const std::map<std::string_view, std::vector<std::string>> values{
      {"like",
       {"pytorch-ddp", "pytorch-fsdp", "horovod", "chainermn", "deepspeed", "lbann", "megatron",
        "mxnet-device", "tensorflow-ps", "tensorflow-replicated"}},
      {"apply_trace", {"small-cnn-b64-cpu"}},
      {"part_trace", {}},  // a trace of exactly this part
      {"split", {"2", "4", "[2, 2]", "[2, 1]"}},
      {"bucket", {"tensor", "model", "25 MiB", "64 KiB", "512 KiB", "2 MiB"}},
      {"tasks", {"8", "16", "64", "128"}},
      {"experts", {"2", "4", "8", "16"}},
      {"density", {"0.001", "0.01", "0.2"}},
      {"validate_every", {"2", "7"}},
      {"validation_time", {"100 us", "3 ms"}},
      {"samples", {"4", "32"}}};
  return values;
}

std::string drawn_integer(const Key& key, Draws& draws) {
  const NumberRange& range = key.allowed.numbers;
  const double low = std::isfinite(range.low) ? range.low : 0;
  const double grown =
      low >= 1 ? low * draws.one_of({1, 2, 2, 3, 4, 8}) : low + draws.one_of({0, 1, 1, 2, 4});
  return std::to_string(static_cast<std::int64_t>(std::min(grown, range.high)));
}

/// Around the default value, or from the least value up.
std::string drawn_number(const Key& key, Draws& draws) {
  const NumberRange& range = key.allowed.numbers;
  const auto usual = parse_number(key.default_value);
  const double low = std::isfinite(range.low) ? range.low : 0;
  const double number =
      usual && *usual > 0 ? *usual * draws.log_between(0.3, 3) : low + draws.between(0, 0.9);
  return short_text(std::clamp(number, low, range.high));
}

/// A value of one of the key's types; empty: no value of this type can be drawn.
std::string drawn_value(const Key& key, KeyType type, const std::vector<std::string>& layers, Draws& draws) {
  if (type == KeyType::boolean) return draws.one_of({"true", "false"});
  if (type == KeyType::integer) return drawn_integer(key, draws);
  if (type == KeyType::number) return drawn_number(key, draws);
  if (type == KeyType::time) return short_text(draws.log_between(1, 2000)) + " us";
  if (type == KeyType::bytes) return short_text(draws.log_between(4, 16384)) + " KiB";
  if (type == KeyType::bandwidth) return short_text(draws.log_between(0.5, 100)) + " GB/s";
  if (type == KeyType::layer) return draws.one_of(layers);
  if (type == KeyType::layers) return "[" + draws.one_of(layers) + "]";
  if (type == KeyType::mapping && key.inside != nullptr)
    return "{" + drawn_keys(key.inside(), "", layers, draws) + "}";
  const auto& words = key.allowed.words();
  return type == KeyType::name && !words.empty() ? draws.one_of(words) : "";
}

std::string drawn_value(const Key& key, const std::vector<std::string>& layers, Draws& draws) {
  const auto special = special_values().find(key.name);
  if (special != special_values().end()) return special->second.empty() ? "" : draws.one_of(special->second);
  return drawn_value(key, draws.one_of(key.allowed.types()), layers, draws);
}

/// Whether a key is required beside the keys that are there: "required with validate_every".
bool is_required(const Key& key, const std::string& text) {
  constexpr std::string_view kWith = "required with ";
  if (key.default_value.starts_with(kWith))
    return text.find(key.default_value.substr(kWith.size())) != std::string::npos;
  return key.default_value.starts_with("required");
}

}  // namespace

std::string drawn_keys(const Keys& keys, const std::string& kind, const std::vector<std::string>& layers,
                       Draws& draws) {
  std::string text = kind.empty() ? "" : "kind: " + kind;
  const double share = draws.one_of({0, 2, 4, 8, 16}) / static_cast<double>(keys.size());
  for (const Key& key : keys) {
    if (key.name == "kind" && !kind.empty()) continue;
    const bool optional = !key.default_value.starts_with("required");
    if (!is_required(key, text) && !(optional && draws.chance(share))) continue;
    const std::string value = drawn_value(key, layers, draws);
    if (!value.empty()) text += joined({text.empty() ? "" : ", ", std::string(key.name), ": ", value});
  }
  return text;
}

namespace {

std::string bandwidth(double least, double most, Draws& draws) {
  return short_text(draws.log_between(least, most)) + " GB/s";
}

std::string microseconds(double least, double most, Draws& draws) {
  return short_text(draws.log_between(least, most)) + " us";
}

/// A link of `least` to `most` GB/s.
std::string link(double least, double most, Draws& draws) {
  return joined(
      {"{bandwidth: ", bandwidth(least, most, draws), ", latency: ", microseconds(0.05, 5, draws), "}"});
}

/// Pairs of devices with cables: a ring, or every two.
std::string peers(int devices, Draws& draws) {
  std::string text;
  const bool all = draws.chance(0.5);
  for (int a = 0; a < devices; ++a) {
    for (int b = a + 1; b < devices; ++b) {
      if (all || b == a + 1 || (a == 0 && b == devices - 1))
        text += fmt::format("{}[{}, {}, {}]", text.empty() ? "" : ", ", a, b, draws.one_of({1, 1, 2}));
    }
  }
  return text;
}

/// The inside of a node, without its braces.
std::string node_text(int devices, Draws& draws) {
  const std::string kind = devices == 1 ? "single" : draws.one_of({"pcie", "switch", "links"});
  std::string text =
      joined({"kind: ", kind, ", device_link: ", link(5, 60, draws), ", memory: ", link(20, 200, draws)});
  if (devices > 1) text += fmt::format(", devices: {}", devices);
  const int sockets = devices % 2 == 0 ? draws.one_of({1, 2}) : 1;
  if (sockets == 2) text += ", sockets: 2, inter_socket_link: " + link(5, 40, draws);
  if (devices / sockets % 2 == 0 && draws.chance(0.3))
    text += ", devices_per_pcie_switch: 2, pcie_switch_link: " + link(5, 30, draws);
  if (draws.chance(0.2)) text += ", device_link_duplex: half";
  if (kind == "switch" || kind == "links") text += ", peer_link: " + link(10, 400, draws);
  if (kind == "links")
    text += joined({", peers: [", peers(devices, draws), "], relay: ", draws.one_of({"host", "devices"})});
  return text;
}

std::string fat_tree(int nics, Draws& draws) {
  std::string text = fmt::format("kind: fat_tree, levels: [{{down: {}", nics * draws.one_of({2, 4, 8}));
  text += fmt::format(", taper: {}, latency: 0.3 us}}", draws.one_of({1, 1, 2, 4}));
  if (draws.chance(0.4))
    text += fmt::format(", {{down: 4, taper: {}, latency: 0.7 us}}", draws.one_of({1, 2}));
  return text + "]";
}

/// A fabric with places for `nodes` nodes of `nics` NICs each, without its braces.
std::string fabric(int nodes, int nics, Draws& draws) {
  const std::string kind =
      draws.one_of({"switch", "switch", "fat_tree", "fat_tree", "torus", "dragonfly", "sites"});
  int side = 1;
  while (side * side * side < nodes) ++side;
  if (kind == "fat_tree") return fat_tree(nics, draws);
  if (kind == "sites" && nodes % 2 == 0) return "kind: sites, sites: 2, wan: " + link(0.5, 10, draws);
  if (kind == "torus")
    return joined({fmt::format("kind: torus, nodes_per_router: 1, routers: [{0}, {0}, {0}]", side),
                   ", x_cable: ", link(1, 20, draws), ", y_cable: ", link(1, 20, draws),
                   ", z_cable: ", link(1, 20, draws)});
  if (kind == "dragonfly")
    return joined({fmt::format("kind: dragonfly, nodes_per_router: 1, routers_per_chassis: {}, "
                               "chassis_per_group: 2, groups: {}",
                               side, side * side / 2 + 1),
                   ", cables_per_group_pair: ", draws.one_of({"1", "2", "4"}),
                   ", chassis_cable: ", link(4, 20, draws), ", group_cable: ", link(4, 20, draws),
                   ", global_cable: ", link(4, 20, draws),
                   ", routing: ", draws.one_of({"minimal", "valiant"})});
  return "kind: switch";
}

/// The cost of a message, without its braces.
std::string cost(Draws& draws) {
  return joined({"overhead: ", microseconds(0.1, 10, draws),
                 ", bandwidth_factor: ", short_text(draws.between(0.3, 1))});
}

/// Costs of growing messages.
std::string costs(Draws& draws) {
  std::string rows;
  const int small_rows = draws.one_of({0, 1, 2});
  for (int row = 0; row < small_rows; ++row)
    rows += fmt::format("{{up_to: {} KiB, {}}}, ", row == 0 ? 8 : 256, cost(draws));
  return "[" + rows + "{" + cost(draws) + "}]";
}

/// Storage, with the comma before it; empty for none.
std::string storage(Draws& draws) {
  const std::string kind = draws.one_of({"none", "local", "shared"});
  if (kind == "none") return "";
  std::string text =
      joined({", storage: {kind: ", kind, ", latency: 200 us, bandwidth: ", bandwidth(0.5, 20, draws)});
  if (kind == "shared") text += ", per_node: " + bandwidth(0.5, 5, draws);
  return text + "}";
}

std::string network_text(int nodes, int devices_per_node, Draws& draws) {
  const int nics = devices_per_node % 2 == 0 ? draws.one_of({1, 1, 2}) : 1;
  std::string text =
      joined({fabric(nodes, nics, draws), fmt::format(", nics: {}", nics),
              ", bandwidth: ", bandwidth(0.5, 25, draws), ", latency: ", microseconds(0.2, 30, draws)});
  if (nics > 1 && draws.chance(0.3)) text += ", striped: true";
  return text;
}

}  // namespace

std::string drawn_platform(int devices, Draws& draws) {
  const int per_node = draws.one_of({1, 1, 2, 4, 4, 8, 6, 3});
  const int nodes = (devices + per_node - 1) / per_node;
  const std::string device =
      draws.one_of({"a100-40gb", "h100-sxm", "v100-sxm2-16gb", "p100-pcie", "cpu-core"});
  std::string text = joined(
      {"{name: drawn, source: drawn, device: ", device, fmt::format(", nodes: {0}, max_nodes: {0}", nodes),
       ", node: {", node_text(per_node, draws), "}, network: {", network_text(nodes, per_node, draws),
       "}, messages: {between_nodes: ", costs(draws), ", inside_node: ", costs(draws)});
  if (draws.chance(0.2)) text += ", programs_inside_node: " + costs(draws);
  text += "}" + storage(draws);
  if (device != "cpu-core" && draws.chance(0.25))
    text += joined({", software: {nccl: \"", draws.one_of({"2.4", "2.8", "2.12", "2.18"}), "\"}"});
  return text + "}";
}

namespace {

const std::vector<std::string> kSmallModels{"small-mlp", "small-cnn", "small-mesh", "tiny-cnn",
                                            "tiny-dnn",  "tiny-gru",  "tiny-local", "small-transformer"};

struct DrawnModel {
  std::string text;  ///< name or mapping
  std::vector<std::string> layers;
};

std::string drawn_stack(Draws& draws) {
  const int heads = draws.one_of({4, 8, 16});
  return joined({"{name: gpt, source: drawn, sample: sequence, transformer_stack: {layers: ",
                 draws.one_of({"2", "4", "6", "8"}),
                 fmt::format(", width: {}, heads: {}", heads * draws.one_of({16, 64, 128}), heads),
                 ", sequence: ", draws.one_of({"64", "256", "1024"}),
                 ", vocabulary: ", draws.one_of({"512", "4096", "32768"}), "}}"});
}

/// A network that the strategy can mostly train.
DrawnModel drawn_model(const Strategy& strategy, Draws& draws) {
  DrawnModel model;
  const bool stack = draws.chance(strategy.example_model == "small-transformer" ? 0.6 : 0.15);
  model.text = stack               ? drawn_stack(draws)
               : draws.chance(0.5) ? strategy.example_model
                                   : draws.one_of(kSmallModels);
  const YamlNode node = parse_yaml("model: " + model.text, "drawn.yaml");
  Library library;
  const YamlValue value(node.entries.front().second, "model");
  const Model read = stack ? read_model(value) : library.model(value);
  for (const Layer& layer : read.layers) model.layers.push_back(layer.name);
  return model;
}

/// `platform: ...`, and `set: ...` for a shipped one.
std::string platform_lines(const std::string& only, int workers, Draws& draws) {
  const int devices = workers + draws.one_of({0, 0, 1, 8});  // room for servers, and nodes that are not full
  const auto shipped = shipped_platforms();
  const bool is_named = std::ranges::count(shipped, only) > 0;
  if (!is_named && draws.chance(0.5)) return "platform: " + drawn_platform(devices, draws) + "\n";
  const std::string name = is_named ? only : draws.one_of(shipped);
  const YamlNode node = read_yaml(data_folder() / "platforms" / (name + ".yaml"));
  const Platform platform = Library().platform(YamlValue(node, ""));
  const int nodes = (devices + platform.devices_per_node - 1) / platform.devices_per_node;
  std::string set = fmt::format("platform.nodes: {}", std::clamp(nodes, 1, platform.max_nodes));
  if (draws.chance(0.3)) {
    if (platform.software.nccl == 0)
      set += joined({", platform.software: {nccl: \"", draws.one_of({"2.4", "2.8", "2.18"}), "\"}"});
    else
      set += ", platform.software: null";
  }
  return "platform: " + name + "\nset: {" + set + "}\n";
}

std::string noise_line(int workers, Draws& draws) {
  if (draws.chance(0.6)) return "";
  std::string noise;
  const std::string jitter = draws.one_of({"none", "lognormal", "layers", "lognormal"});
  if (jitter != "none")
    noise += joined({"jitter: ", jitter, ", sigma: ", draws.one_of({"0.01", "0.05", "0.2"})});
  const bool slow = jitter == "none" || draws.chance(0.3);
  if (slow && draws.chance(0.5))
    noise += joined(
        {noise.empty() ? "" : ", ", "straggler_share: 0.2, straggler_factor: ", draws.one_of({"1.1", "2"})});
  else if (slow)
    noise += fmt::format("{}stragglers: [{{worker: {}, factor: 1.5}}]", noise.empty() ? "" : ", ",
                         draws.index(workers));
  if (!slow && draws.chance(0.3)) noise += ", per: node";
  if (draws.chance(0.2)) noise += ", start_spread: 300 us";
  return "noise: {" + noise + "}\n";
}

/// Other jobs' traffic, and input from storage.
std::string traffic_lines(Draws& draws) {
  std::string text;
  if (draws.chance(0.15))
    text += joined({"background: [{links: \"", draws.one_of({"node 0 *", "node *1 *", "*NIC*", "* -> *"}),
                    "\", share: ", draws.one_of({"0.1", "0.5", "0.9"}), "}]\n"});
  if (draws.chance(0.25))
    text += joined({"data: {sample_size: ", draws.one_of({"2 KB", "100 KB", "3 MB"}),
                    ", prefetch: ", draws.one_of({"0", "1", "2"}),
                    ", compute_slowdown: ", draws.one_of({"1", "1.2"}), "}\n"});
  return text;
}

std::string batch_line(int workers, Draws& draws) {
  const int batch = draws.one_of({1, 2, 4, 8, 16, 32});
  return draws.chance(0.3) ? fmt::format("global_batch: {}\n", batch * workers)
                           : fmt::format("batch_per_worker: {}\n", batch);
}

const Strategy& chosen_strategy(const std::string& only, Draws& draws) {
  std::vector<const Strategy*> all;  // without replay, whose traces say what its ranks do
  for (const Strategy& one : strategies()) {
    if (one.kind != "replay") all.push_back(&one);
  }
  const auto drawn = draws.index(all.size());
  const Strategy* named = find_strategy(only);
  return named == nullptr ? *all[drawn] : *named;
}

}  // namespace

std::vector<std::string> shipped_platforms() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(data_folder() / "platforms")) {
    if (file.path().extension() == ".yaml") names.push_back(file.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

std::string drawn_scenario(const DrawnFrom& from, std::uint32_t number, std::uint32_t attempt) {
  Draws of_case(from.seed, number, ~0U);
  const Strategy& strategy = chosen_strategy(from.only, of_case);  // all attempts have the same
  Draws draws(from.seed, number, attempt);
  const int workers =
      is_large(number)
          ? draws.one_of({64, 128, 256, 512})
          : draws.one_of({2, 3, 4, 4, 6, 8, 8, 12, 16, 16, 24, 32, 32, 48, 64, 64, 96, 128, 256, 512});
  const DrawnModel model = drawn_model(strategy, draws);
  const bool measured = model.text == "small-cnn" && draws.chance(0.5);
  return joined(
      {fmt::format("name: drawn-{}-{}\n", from.seed, number), "model: ", model.text, "\n",
       measured ? "trace: small-cnn-b64-cpu\n" : "trace: derived\n",
       platform_lines(from.only, workers, draws), fmt::format("workers: {}\n", workers),
       batch_line(workers, draws), "strategy: {",
       drawn_keys(strategy.keys, strategy.kind, model.layers, draws), "}\n", noise_line(workers, draws),
       "placement: ", draws.one_of({"packed", "packed", "spread", "random"}), "\n", traffic_lines(draws),
       fmt::format("simulation: {{steps: {}, seed: {}}}\n", draws.one_of({1, 1, 2, 3}), number + 1),
       "uncertainty: none\n"});
}

}  // namespace stepcast::drawn
