#include "commands/search_space/possible_layouts.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "scenarios/reader/sweep.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

Experiment experiment_of(int workers, int blocks) {
  const Scenario scenario = scenario_of(
      "name: t\nmodel: {name: gpt, source: s, transformer_stack: {layers: " + std::to_string(blocks) +
      ", width: 64, heads: 4, sequence: 8, vocabulary: 16}}\ntrace: derived\nplatform: dgx-a100\nworkers: " +
      std::to_string(workers) + "\nglobal_batch: 16\nstrategy: {kind: synchronous}\n");
  Library library;
  return build_experiment(scenario.document, {}, library);
}

std::vector<std::string> texts_of(const std::vector<Assignment>& values) {
  std::vector<std::string> texts;
  for (const Assignment& one : values) texts.push_back(point_name({one}));
  return texts;
}

}  // namespace

TEST_CASE("layouts divide workers, blocks and samples", "[commands]") {
  const std::vector<Layout> layouts = layouts_of(experiment_of(4, 2), 16);
  REQUIRE_FALSE(layouts.empty());
  for (const Layout& one : layouts) {
    CHECK(one.stages * one.tensor * one.replicas == 4);
    CHECK(2 % one.stages == 0);
    CHECK(one.micro_batch * one.micro_batches * one.replicas == 16);
  }
  // Divisions (pipeline, tensor) x ZeRO stages x micro-batches (a replica of four has 4 samples, 1 to 4 at
  // once; one of two 8; one has 16, also at once), each with and without recomputation.
  CHECK(layouts.size() ==
        3 * (4 * 3 /* 1, 1 */ + 4 * 4 /* 1, 2 */ + 5 /* 1, 4 */ + 2 * 4 /* 2, 1 */ + 5 /* 2, 2 */));
}

TEST_CASE("the values of a layout replace keys that divide, and those that its kind does not have",
          "[commands]") {
  const YamlNode strategy = parse_yaml("{kind: zero, stage: 2, like: pytorch-fsdp, bucket: 1 MiB}", "s");
  const Layout layout{.stages = 2,
                      .tensor = 4,
                      .replicas = 8,
                      .expert = 2,
                      .zero = 1,
                      .micro_batch = 2,
                      .micro_batches = 3,
                      .recompute = Layout::Recompute::full,
                      .sequence_parallel = true};
  CHECK(to_string(layout) == "pipeline 2, tensor 4, data 8, expert 2, ZeRO 1, micro-batch 2, recompute full");
  CHECK(texts_of(values_of(layout, strategy)) ==
        std::vector<std::string>{"strategy.stage=~", "strategy.kind=synchronous",
                                 "strategy.mesh={pipeline: 2, tensor: 4, expert: 2}",
                                 "strategy.shard=optimizer", "strategy.accumulation=3",
                                 "strategy.recompute=full", "strategy.sequence_parallel=true",
                                 "strategy.split=blocks", "global_batch=48"});
}

TEST_CASE("replicas of a network with experts share them", "[commands]") {
  const Scenario scenario = scenario_of(
      "name: t\nmodel: mixtral-8x7b\ntrace: derived\nplatform: dgx-h100-pod\nworkers: 16\nglobal_batch: "
      "16\nstrategy: {kind: synchronous}\n");
  Library library;
  std::set<int> found;
  for (const Layout& one : layouts_of(build_experiment(scenario.document, {}, library), 16)) {
    if (one.replicas == 16) found.insert(one.expert);
    CHECK(one.sequence_parallel == (one.tensor > 1));
  }
  CHECK(found == std::set{1, 2, 4, 8});
}

TEST_CASE("layouts hold whatever kind the stack has", "[commands]") {
  const std::string text =
      "name: t\nmodel: {name: gpt, source: s, transformer_stack: {layers: 8, width: 512, heads: 4, "
      "sequence: 8, vocabulary: 16}}\ntrace: derived\nplatform: dgx-a100\nworkers: 4\nglobal_batch: 16\n"
      "strategy: {kind: synchronous, like: pytorch-fsdp, bucket: 1 MiB}\n";
  const Scenario scenario = scenario_of(text);
  Library library;
  const auto memory = [&](int zero) {
    const Layout layout{.replicas = 4, .zero = zero, .micro_batch = 4};
    const auto values = values_of(layout, *find_path(scenario.document, "strategy"));
    return build_experiment(scenario.document, values, library).plan.memory.total();
  };
  CHECK(memory(3) < memory(1));
  CHECK(memory(1) < memory(0));
}

TEST_CASE("where no key alone helps, the layout that fits is named, and it does fit", "[commands]") {
  Library library;
  const YamlNode document = parse_yaml(
      "{model: llama3-70b, trace: derived, platform: dgx-h100-pod, workers: 64, global_batch: 64, kernels: "
      "{precision: bf16, attention: flash, optimizer: adamw}, strategy: {kind: synchronous, precision: "
      "mixed, "
      "mesh: {}}}",
      "text");
  const Experiment whole = build_experiment(document, {}, library);
  REQUIRE_FALSE(whole.plan.fits);
  REQUIRE(fitting_keys(document, {}, whole, library).empty());
  const std::string layout = fitting_layout(document, {}, whole, library);
  CHECK(layout == "{kind: synchronous, shard: parameters, recompute: full}");
  std::vector<Assignment> values{parse_assignment("strategy.shard=parameters")};
  CHECK_FALSE(build_experiment(document, values, library).plan.fits);
  values.push_back(parse_assignment("strategy.recompute=full"));
  CHECK(build_experiment(document, values, library).plan.fits);
}

TEST_CASE("pipelines are interleaved where blocks and micro-batches divide", "[commands]") {
  const Model model = experiment_of(4, 8).model;
  Layout layout{.stages = 2, .replicas = 2, .micro_batch = 2, .micro_batches = 4};
  std::set<std::string> names;
  for (const Layout& one : interleaved(layout, model)) names.insert(to_string(one));
  CHECK(names ==
        std::set<std::string>{"pipeline 2, chunks 2, tensor 1, data 2, micro-batch 2",
                              "pipeline 2, chunks 2, tensor 1, data 2, micro-batch 2, recompute operators",
                              "pipeline 2, chunks 2, tensor 1, data 2, micro-batch 2, recompute full",
                              "pipeline 2, chunks 4, tensor 1, data 2, micro-batch 2",
                              "pipeline 2, chunks 4, tensor 1, data 2, micro-batch 2, recompute operators",
                              "pipeline 2, chunks 4, tensor 1, data 2, micro-batch 2, recompute full"});
  const auto values = texts_of(values_of(interleaved(layout, model).back(), parse_yaml("{}", "s")));
  CHECK(std::ranges::count(values, "strategy.schedule=interleaved") == 1);
  CHECK(std::ranges::count(values, "strategy.chunks=4") == 1);
  layout.recompute = Layout::Recompute::full;
  CHECK(interleaved(layout, model).size() == 2);
  layout.micro_batches = 3;
  CHECK(interleaved(layout, model).empty());
  layout = {.stages = 8, .micro_batches = 8};
  CHECK(interleaved(layout, model).empty());
}

TEST_CASE("long sequences are divided among devices, short ones are not", "[commands]") {
  for (const auto& [tokens, most] : {std::pair(8192, 1), {16384, 2}, {65536, 8}}) {
    const Scenario scenario = scenario_of(
        "name: t\nmodel: {name: gpt, source: s, transformer_stack: {layers: 2, width: 64, heads: 4, "
        "sequence: " +
        std::to_string(tokens) +
        ", vocabulary: 16}}\ntrace: derived\nplatform: dgx-a100\nworkers: 16\n"
        "global_batch: 16\nstrategy: {kind: synchronous}\n");
    Library library;
    int found = 1;
    for (const Layout& one : layouts_of(build_experiment(scenario.document, {}, library), 16)) {
      found = std::max(found, one.context);
      CHECK(one.stages * one.context * one.tensor * one.replicas == 16);
    }
    CHECK(found == most);
  }
}
