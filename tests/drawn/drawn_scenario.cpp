#include "tests/drawn/drawn_scenario.hpp"

#include <algorithm>
#include <filesystem>

#include "platforms/platform.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/registry.hpp"
#include "tests/drawn/drawn_keys.hpp"
#include "tests/drawn/drawn_platform.hpp"
#include "tests/drawn/draws.hpp"

namespace stepcast::drawn {
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
  const Platform platform = read_platform(YamlValue(node, ""));
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
