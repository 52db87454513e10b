#include "commands/import/chakra_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "models/chakra/chakra_run.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

struct Content {
  std::int64_t nodes = 0;
  double seconds = 0;  ///< sum of the durations
};

/// Prints the nodes of all ranks by their kind, with those that take no time when they are replayed.
void print_content(const ChakraRun& run) {
  const std::array names{
      "without work", "metadata",   "loads of remote memory", "stores of remote memory", "compute", "sends",
      "receives",     "collectives"};
  std::array<Content, names.size()> all;
  Content host;
  for (const auto& nodes : run.nodes) {
    for (const ChakraNode& node : nodes) {
      const bool on_host = node.type == ChakraNode::Type::compute && node.on_host;
      Content& kind = on_host ? host : all[ordinal(node.type)];
      ++kind.nodes;
      kind.seconds += 1e-6 * node.microseconds;
    }
  }
  const auto line = [&](const char* name, const Content& one, bool played) {
    if (one.nodes > 0)
      fmt::print("  {:<24} {:>9} nodes  {:10.6f} s{}\n", name, one.nodes, one.seconds,
                 played ? "" : "  left out");
  };
  fmt::print("{} ranks, {} process groups; nodes of all ranks and their own durations:\n", run.files.size(),
             run.groups.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto type = static_cast<ChakraNode::Type>(i);
    const bool memory = type == ChakraNode::Type::mem_load || type == ChakraNode::Type::mem_store;
    line(names[i], all[i], !memory && (type >= ChakraNode::Type::compute || all[i].seconds == 0));
  }
  line("work of hosts", host, true);
  fmt::print("Collectives and messages take as long as the platform needs, whatever their durations here.\n");
}

/// A comment on nodes that a replay leaves out.
std::string left_out_text(const ChakraRun& run) {
  std::int64_t memory = 0;
  for (const auto& nodes : run.nodes) {
    memory += std::ranges::count_if(nodes, [](const ChakraNode& node) {
      return node.type == ChakraNode::Type::mem_load || node.type == ChakraNode::Type::mem_store;
    });
  }
  return memory == 0 ? "" : fmt::format("# {} loads and stores of remote memory are left out.\n", memory);
}

std::string scenario_text(const std::string& name, const std::filesystem::path& folder,
                          const ChakraRun& run) {
  return fmt::format(
      "# yaml-language-server: $schema=scenario.json\n"
      "# Replays Chakra traces. Choose the platform; the traces do not say what network was trained.\n"
      "{}"
      "name: {}\n"
      "model:  # stands for the network; counts a sample a step and no memory\n"
      "  name: traced\n"
      "  source: \"none: the traces hold no network\"\n"
      "  sample: step\n"
      "  input: [2]\n"
      "  layers: [{{name: loss, kind: softmax_cross_entropy}}]\n"
      "trace: derived\n"
      "platform: dgx-a100\n"
      "workers: {}\n"
      "batch_per_worker: 1\n"
      "strategy: {{kind: replay, traces: {}}}\n"
      "simulation: {{steps: 1}}\n"
      "uncertainty: none  # no error of replays is known\n",
      left_out_text(run), name, run.files.size(), json_text(folder.string()));
}

}  // namespace

void import_chakra_traces(const std::string& folder, const std::string& output) {
  const ChakraRun run = read_chakra_run(folder);
  print_content(run);
  const std::filesystem::path file = output;
  const std::string name = file.has_stem() ? file.stem().string() : "replay";
  write_atomically(file, scenario_text(name, std::filesystem::absolute(folder).lexically_normal(), run));
  fmt::print("written: {}\n", output);
}

}  // namespace stepcast
