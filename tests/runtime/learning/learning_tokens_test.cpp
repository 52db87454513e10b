#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "learned_curve.hpp"

namespace stepcast::learning_tokens_test {
namespace {

constexpr int kTokens = 8, kFeatures = 4, kWords = 6;

const std::string kLanguage = R"(
name: language
source: test
input: [8, 4]
layers:
  - {name: embed, kind: dense, units: 8}
  - {name: places, kind: position_embedding}
  - {name: norm1, kind: layer_norm}
  - {name: qkv, kind: dense, units: 24}
  - {name: attention, kind: attention, heads: 4, causal: true}
  - {name: projection, kind: dense, units: 8}
  - {name: add1, kind: add, inputs: [projection, places]}
  - {name: norm2, kind: layer_norm}
  - {name: expand, kind: dense, units: 12}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8}
  - {name: add2, kind: add, inputs: [contract, add1]}
  - {name: words, kind: dense, units: 6}
  - {name: loss, kind: softmax_cross_entropy}
)";

/// Samples with a word for each token, which follows from the token's place and its first feature.
std::string write_samples(const std::string& name, int samples, int first) {
  const auto path =
      std::filesystem::temp_directory_path() / ("stepcast-" + name + "-" + std::to_string(getpid()));
  std::ofstream file(path, std::ios::binary);
  for (int sample = first; sample < first + samples; ++sample) {
    std::vector<float> numbers;
    for (int i = 0; i < kTokens * kFeatures; ++i) numbers.push_back(std::sin(1 + 3.7 * sample + 1.3 * i));
    for (int token = 0; token < kTokens; ++token)
      numbers.push_back((token + (numbers[token * kFeatures] > 0 ? 1 : 0)) % kWords);
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  }
  return path.string();
}

}  // namespace

TEST_CASE("ranks with parts of every sequence learn like ranks with whole sequences, to rounding",
          "[validate][learning]") {
  const std::string mesh = "{kind: synchronous, all_reduce: ring, mesh: ";
  using test::LearningCase;
  constexpr auto kRaw = DataOptions::Kind::raw;
  const LearningCase c = GENERATE_COPY(
      LearningCase{mesh + "{tensor: 2}, sequence_parallel: true}", 2, 1, &kLanguage, kRaw},
      LearningCase{mesh + "{tensor: 2, data: 2}, sequence_parallel: true}", 4, 2, &kLanguage, kRaw},
      LearningCase{mesh + "{context: 2}, context_exchange: all_to_all}", 2, 1, &kLanguage, kRaw},
      LearningCase{mesh + "{context: 2, data: 2}, context_exchange: all_gather}", 4, 2, &kLanguage, kRaw},
      LearningCase{mesh + "{context: 2}, context_exchange: all_gather, shard: parameters, accumulation: 2}",
                   2, 1, &kLanguage, kRaw},
      LearningCase{mesh + "{context: 2, tensor: 2}, context_exchange: all_to_all, sequence_parallel: true}",
                   4, 1, &kLanguage, kRaw});
  CAPTURE(c.strategy);
  LearningOptions options = test::options_of(c);
  options.seed = 7;
  options.data.train = {write_samples("train", 40, 0)};
  options.data.test = {write_samples("test", 30, 40)};
  const test::Curve whole =
      test::learned("{kind: synchronous, all_reduce: ring}", c.replicas, *c.model, options);
  test::check_same(test::learned(c.strategy, c.ranks, *c.model, options), whole);
  CHECK(std::abs(whole.evaluations.back().loss - whole.evaluations.front().loss) > 0.01);
  std::filesystem::remove(options.data.train.front());
  std::filesystem::remove(options.data.test.front());
}

}  // namespace stepcast::learning_tokens_test
