#include <fmt/format.h>

#include "models/hugging_face/config_keys.hpp"

namespace stepcast {

void read_state_space(const ConfigMap& map, HuggingFaceConfig& config) {
  HuggingFaceConfig::StateSpace& space = config.state_space;
  require_architecture(map, {"Mamba2ForCausalLM"});
  for (const NeutralKey& one : {NeutralKey{"hidden_act", "silu"}, NeutralKey{"rms_norm", "true"}})
    require_neutral(map, one);
  map.skip("intermediate_size");
  config.vocabulary = config_count(map, "vocab_size", kMostConfigRows);
  config.layers = config_count(map, "num_hidden_layers", kMostConfigLayers);
  config.width = config.embedding_width = config_count(map, "hidden_size", kMostConfigWidth);
  config.tied = config_flag_or(map, "tie_word_embeddings", false);
  space.inner = config_count_or(map, "expand", 64, 2) * config.width;
  space.heads = config.heads = config.kv_heads = config_count(map, "num_heads", kMostConfigHeads);
  if (config_count(map, "head_dim", kMostConfigWidth) * space.heads != space.inner)
    map.at("head_dim")
        .refuse(fmt::format("expected {} features divided by {} heads, got {}", space.inner, space.heads,
                            map.at("head_dim").node().text));
  space.groups = config_count_or(map, "n_groups", space.heads, 8);
  if (space.heads % space.groups != 0)
    map.at("n_groups")
        .refuse(fmt::format("expected a divisor of {} heads, got {}", space.heads, space.groups));
  space.states = config_count_or(map, "state_size", kMostConfigUnits / space.groups, 128);
  space.chunk = config_count_or(map, "chunk_size", kMostConfigRows, 256);
  space.taps = config_count_or(map, "conv_kernel", 1000, 4);
  space.bias = config_flag_or(map, "use_bias", false);
  space.taps_bias = config_flag_or(map, "use_conv_bias", true);
}

std::string state_space_layers(const HuggingFaceConfig& config) {
  const HuggingFaceConfig::StateSpace& space = config.state_space;
  const char* bias = space.bias ? "" : ", bias: false";
  return fmt::format(
      "      - {{name: norm, kind: rms_norm}}\n"
      "      - {{name: projection_in, kind: dense, units: {0}{1}}}\n"
      "      - {{name: mixer, kind: state_space, heads: {2}, state: {3}, state_groups: {4}, chunk: {5}, "
      "taps: {6}{7}}}\n"
      "      - {{name: projection_out, kind: dense, units: {8}{1}}}\n"
      "      - {{name: add, kind: add, inputs: [projection_out, previous]}}\n",
      2 * (space.inner + space.groups * space.states) + space.heads, bias, space.heads, space.states,
      space.groups, space.chunk, space.taps, space.taps_bias ? "" : ", bias: false", config.width);
}

}  // namespace stepcast
