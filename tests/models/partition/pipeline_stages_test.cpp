#include "models/partition/pipeline_stages.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "models/cost/cost.hpp"
#include "models/loader.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

double slowest(const std::vector<double>& seconds, const Stages& cuts) {
  double most = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    most = std::max(most, std::accumulate(seconds.begin() + cuts[i], seconds.begin() + cuts[i + 1], 0.0));
  }
  return most;
}

/// The least time of the slowest stage, by trying every division into stages.
double by_enumeration(const std::vector<double>& seconds, std::size_t begin, int stages) {
  if (stages == 1) return std::accumulate(seconds.begin() + begin, seconds.end(), 0.0);
  double best = 1e300, own = 0;
  for (std::size_t i = begin; i + static_cast<std::size_t>(stages) <= seconds.size(); ++i) {
    own += seconds[i];
    best = std::min(best, std::max(own, by_enumeration(seconds, i + 1, stages - 1)));
  }
  return best;
}

}  // namespace

TEST_CASE("balanced_stages minimizes the time of the slowest stage", "[models]") {
  const std::vector<double> seconds = GENERATE(std::vector<double>{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5},
                                               std::vector<double>{0, 0, 3, 0, 0, 1, 4, 0, 0, 0, 0},
                                               std::vector<double>(11, 0.0), std::vector<double>(11, 1.0));
  for (int stages = 1; stages <= 11; ++stages) {
    const Stages cuts = balanced_stages(seconds, stages);
    REQUIRE(cuts.size() == static_cast<std::size_t>(stages) + 1);
    CHECK(std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end());
    CHECK(slowest(seconds, cuts) == by_enumeration(seconds, 0, stages));
  }
  CHECK_THROWS_AS(balanced_stages({1, 2}, 3), std::invalid_argument);
}

TEST_CASE("boundary_elements counts each output once, shortcuts included", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [8], layers: [{name: a, kind: dense, units: 4}, {name: b, kind: gelu},"
      "{name: c, kind: add, inputs: [b, a]}, {name: l, kind: mean_squared_error}]}");
  CHECK(boundary_elements(model, 0) == 8);
  CHECK(boundary_elements(model, 1) == 4);
  CHECK(boundary_elements(model, 2) == 8);  // b and the shortcut from a
  CHECK(boundary_elements(model, 3) == 4);
}

TEST_CASE("stages hold every parameter once and read the outputs of earlier stages", "[models]") {
  const Model model = shipped_model("gpt2-small");
  const Stages cuts = balanced_stages(std::vector<double>(model.layers.size(), 1.0), 4);
  std::int64_t parameters = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Model stage = stage_model(model, cuts[i], cuts[i + 1]);
    parameters += trainable_parameters(stage);
    for (const Layer& layer : stage.layers) {
      for (const int input : layer.inputs) CHECK(input < std::ssize(stage.layers));
    }
  }
  CHECK(parameters == trainable_parameters(model));
}

TEST_CASE("Stages of a transformer begin with a block, those of other networks with any layer", "[models]") {
  const Model gpt = load_model(std::string(STEPCAST_SOURCE_DIR) + "/models", "gpt2-small");
  const std::vector<double> seconds(gpt.layers.size(), 1.0);
  for (const int stages : {2, 5, 13}) {  // 13: 12 blocks, and the layers after them
    const Stages cuts = balanced_stages(gpt, seconds, stages);
    REQUIRE(std::ssize(cuts) == stages + 1);
    for (int i = 1; i < stages; ++i) {
      INFO(stages << " stages, cut before " << gpt.layers[cuts[i]].name);
      CHECK(std::ranges::any_of(gpt.blocks, [&](const LayerBlock& block) {
        return block.first == cuts[i] || block.last == cuts[i];
      }));
    }
  }
  CHECK(balanced_stages(gpt, seconds, 14) == balanced_stages(seconds, 14));
  const Model resnet = load_model(std::string(STEPCAST_SOURCE_DIR) + "/models", "resnet18");
  const std::vector<double> equal(resnet.layers.size(), 1.0);
  CHECK(balanced_stages(resnet, equal, 7) == balanced_stages(equal, 7));
}
