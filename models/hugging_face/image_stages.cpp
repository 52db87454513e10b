#include <fmt/format.h>

#include "models/hugging_face/config_keys.hpp"
#include "models/hugging_face/network_text.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostStages = 16;
constexpr std::int64_t kLargestWindow = 10'000;
constexpr double kMostExpansion = 100;

std::vector<std::int64_t> counts(const ConfigMap& map, std::string_view key, std::int64_t most) {
  const YamlValue list = map.at(key, "a list of integers, one for each stage");
  std::vector<std::int64_t> all;
  for (const YamlValue& one : list.list()) all.push_back(one.integer(1, most));
  if (all.empty() || all.size() > kMostStages)
    list.expected(fmt::format("one integer for each of 1 to {} stages", kMostStages));
  return all;
}

void require_as_many(const ConfigMap& map, std::string_view key, std::size_t given, std::size_t stages) {
  if (given != stages)
    map.at(key).refuse(fmt::format("expected {} integers, one for each stage, got {}", stages, given));
}

/// Side of the map of a stage. @throws InputError if the maps before it cannot be halved
std::int64_t stage_side(const ConfigMap& map, const HuggingFaceConfig& config, std::size_t stage) {
  std::int64_t side = config.image / config.patch;
  for (std::size_t i = 0; i < stage; ++i) {
    const auto key = given(map, "image_size");
    if (side % 2 != 0 || side < 2)
      (key ? *key : map.value())
          .refuse(fmt::format("a map of {0} x {0} of stage {1} cannot be halved here", side, i));
    side /= 2;
  }
  return side;
}

void read_swin(const ConfigMap& map, HuggingFaceConfig& config) {
  map.skip("hidden_size");
  map.skip("num_layers");
  const std::int64_t width = config_count(map, "embed_dim", kMostConfigWidth);
  const std::vector<std::int64_t> depths = counts(map, "depths", kMostConfigLayers);
  const std::vector<std::int64_t> heads = counts(map, "num_heads", kMostConfigHeads);
  require_as_many(map, "num_heads", heads.size(), depths.size());
  config.window = config_count_or(map, "window_size", kLargestWindow, 7);
  config.expansion = config_number_or(map, "mlp_ratio", kMostExpansion, 4);
  config.family.biases.qkv = config_flag_or(map, "qkv_bias", true);
  config.position_table = config_flag_or(map, "use_absolute_embeddings", false);
  config.attention_dropout = dropout_rate(map, "attention_probs_dropout_prob");
  config.block_dropout = config.embedding_dropout = dropout_rate(map, "hidden_dropout_prob");
  for (std::size_t i = 0; i < depths.size(); ++i) {
    const HuggingFaceConfig::Stage stage{depths[i], width << i, heads[i]};
    if (stage.width > kMostConfigWidth || stage.width % stage.heads != 0)
      map.at("embed_dim")
          .refuse(fmt::format("expected a width of stage {} of {} heads and at most {}, got {}", i,
                              stage.heads, kMostConfigWidth, stage.width));
    if (stage_side(map, config, i) % config.window != 0)
      map.at("window_size")
          .refuse(fmt::format("a map of {0} x {0} is padded to windows of {1} x {1}, which is not modelled",
                              stage_side(map, config, i), config.window));
    config.stages.push_back(stage);
  }
}

void read_convnext(const ConfigMap& map, HuggingFaceConfig& config) {
  const std::vector<std::int64_t> widths = counts(map, "hidden_sizes", kMostConfigWidth);
  const std::vector<std::int64_t> depths = counts(map, "depths", kMostConfigLayers);
  require_as_many(map, "depths", depths.size(), widths.size());
  const auto stages = given(map, "num_stages");
  if (stages && stages->integer(1) != std::ssize(widths))
    stages->expected(fmt::format("{}, the stages of hidden_sizes", widths.size()));
  config.family.layer_scale = config_number_or(map, "layer_scale_init_value", 1e6, 1e-6) > 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    config.stages.push_back({depths[i], widths[i], 1});
    stage_side(map, config, i);
  }
}

/// `[positions, features]`, which a channels-last kernel reads. PyTorch transposes the map by a view.
std::string rows(const char* indent, const char* name, std::int64_t side, std::int64_t width) {
  return fmt::format("{}- {{name: {}, kind: reshape, shape: [{}, {}]}}\n", indent, name, side * side, width);
}

std::string chart(const char* indent, const std::string& name, std::int64_t side, std::int64_t width) {
  return fmt::format("{}- {{name: {}, kind: reshape, shape: [{}, {}, {}]}}\n", indent, name, width, side,
                     side);
}

std::string convnext_block(const HuggingFaceConfig& config, std::int64_t side, std::int64_t width) {
  return fmt::format(
             "      - {{name: depthwise, kind: convolution, filters: {0}, kernel: 7, pad: 3, groups: {0}, "
             "inputs: [previous]}}\n",
             width) +
         rows("      ", "rows", side, width) +
         fmt::format(
             "      - {{name: norm, kind: layer_norm}}\n"
             "      - {{name: expand, kind: dense, units: {}}}\n"
             "      - {{name: {}, kind: {}}}\n"
             "      - {{name: contract, kind: dense, units: {}}}\n",
             4 * width, config.activation, config.activation, width) +
         (config.family.layer_scale ? "      - {name: contract_scale, kind: scale}\n" : "") +
         chart("      ", "map", side, width) + "      - {name: add, kind: add, inputs: [map, previous]}\n";
}

/// A copy to another order: an up-sampling by 1 reads and writes all elements once in each pass.
std::string copied(const std::string& name) {
  return fmt::format("      - {{name: {}, kind: up_sample, factor: 1}}\n", name);
}

/// Blocks of Swin in one stage.
struct SwinBlocks {
  const HuggingFaceConfig& config;
  HuggingFaceConfig::Stage stage = {};
  std::int64_t side = 1;  ///< of the map

  bool cut() const { return side > config.window; }

  std::string attention(const std::string& prefix, const std::string& input, bool shifted) const {
    const std::int64_t window = config.window, last = 2 * window - 1;
    const std::string rate =
        config.attention_dropout > 0 ? fmt::format(", dropout: {:.6g}", config.attention_dropout) : "";
    return fmt::format("      - {{name: {}norm1, kind: layer_norm}}\n", prefix) +
           (shifted ? copied(prefix + "shift") : "") + (cut() ? copied(prefix + "windows") : "") +
           fmt::format(
               "      - {{name: {0}qkv, kind: dense, units: {1}{2}}}\n"
               "      - {{name: {0}attention, kind: attention, heads: {3}, window: {4}, position_bias: "
               "{5}{6}}}\n"
               "      - {{name: {0}projection, kind: dense, units: {7}}}\n",
               prefix, 3 * stage.width, config.family.biases.qkv ? "" : ", bias: false", stage.heads,
               window * window, last * last, rate, stage.width) +
           dropout_line(kInBlock, prefix + "projection", config.block_dropout) +
           (cut() ? copied(prefix + "joined") : "") + (shifted ? copied(prefix + "unshifted") : "") +
           fmt::format("      - {{name: {0}add1, kind: add, inputs: [{0}{1}, {2}]}}\n", prefix,
                       shifted                    ? "unshifted"
                       : cut()                    ? "joined"
                       : config.block_dropout > 0 ? "projection_dropout"
                                                  : "projection",
                       input);
  }

  /// @param prefix  of the layers' names
  std::string one(const std::string& prefix, const std::string& input, bool shifted) const {
    const auto hidden = static_cast<std::int64_t>(config.expansion * stage.width);
    return attention(prefix, input, shifted) +
           fmt::format(
               "      - {{name: {0}norm2, kind: layer_norm}}\n"
               "      - {{name: {0}expand, kind: dense, units: {1}}}\n"
               "      - {{name: {0}{2}, kind: {2}}}\n"
               "      - {{name: {0}contract, kind: dense, units: {3}}}\n{4}"
               "      - {{name: {0}add2, kind: add, inputs: [{0}contract{5}, {0}add1]}}\n",
               prefix, hidden, config.activation, stage.width,
               dropout_line(kInBlock, prefix + "contract", config.block_dropout),
               config.block_dropout > 0 ? "_dropout" : "");
  }

  /// Every second block shifts its map by half a window, where there are several windows.
  std::string all(const std::string& name) const {
    if (!cut()) return repeated_lines(stage.blocks, name + "_block", one("", "previous", false));
    return repeated_lines(stage.blocks / 2, name + "_pair",
                          one("", "previous", false) + one("shifted_", "add2", true)) +
           repeated_lines(stage.blocks % 2, name + "_last", one("", "previous", false));
  }
};

/// What halves the map before a stage.
std::string convnext_step(std::size_t stage, std::int64_t side, std::int64_t below, std::int64_t width) {
  return rows("  ", fmt::format("rows{}", stage).c_str(), 2 * side, below) +
         fmt::format("  - {{name: norm{}, kind: layer_norm}}\n", stage) +
         chart("  ", fmt::format("map{}", stage), 2 * side, below) +
         fmt::format("  - {{name: halved{}, kind: convolution, filters: {}, kernel: 2, stride: 2}}\n", stage,
                     width);
}

/// Four neighbours are copied side by side, normalised, and become one token.
std::string swin_step(std::size_t stage, std::int64_t side, std::int64_t below) {
  return rows("  ", fmt::format("merged{}", stage).c_str(), side, 4 * below) +
         fmt::format(
             "  - {{name: neighbours{0}, kind: up_sample, factor: 1}}\n"
             "  - {{name: norm{0}, kind: layer_norm}}\n"
             "  - {{name: halved{0}, kind: dense, units: {1}, bias: false}}\n",
             stage, 2 * below);
}

}  // namespace

void read_image_stages(const ConfigMap& map, HuggingFaceConfig& config) {
  const bool swin = config.family.model_type == "swin";
  require_architecture(map, {swin ? "SwinForImageClassification" : "ConvNextForImageClassification"});
  config.image = config_count_or(map, "image_size", 30'000, 224);
  config.patch = config_count_or(map, "patch_size", config.image, 4);
  config.channels = config_count_or(map, "num_channels", 10'000, 3);
  const std::string word = config_word_or(map, "hidden_act", "gelu");
  if (word != "gelu" && word != "relu" && word != "gelu_new") map.at("hidden_act").expected("gelu or relu");
  config.activation = word == "relu" ? "relu" : "gelu";
  config.stochastic_depth = config_number_or(map, "drop_path_rate", 1, swin ? 0.1 : 0) > 0;
  swin ? read_swin(map, config) : read_convnext(map, config);
  read_classes(map, config);
}

std::string image_stage_layers(const HuggingFaceConfig& config) {
  const bool swin = config.window > 0;
  std::int64_t side = config.image / config.patch, below = config.stages.front().width;
  std::string text =
      fmt::format("  - {{name: patches, kind: convolution, filters: {}, kernel: {}, stride: {}}}\n", below,
                  config.patch, config.patch) +
      rows("  ", "sequence", side, below) + "  - {name: embedding_norm, kind: layer_norm}\n" +
      (config.position_table ? "  - {name: positions, kind: position_embedding}\n" : "") +
      dropout_line("  ", "embedding", config.embedding_dropout) +
      (swin ? "" : chart("  ", "stem", side, below));
  for (std::size_t i = 0; i < config.stages.size(); ++i) {
    const HuggingFaceConfig::Stage& stage = config.stages[i];
    if (i > 0) {
      side /= 2;
      text += swin ? swin_step(i, side, below) : convnext_step(i, side, below, stage.width);
    }
    below = stage.width;
    const std::string name = fmt::format("stage{}", i);
    text += swin ? SwinBlocks{config, stage, side}.all(name)
                 : repeated_lines(stage.blocks, name + "_block", convnext_block(config, side, below));
  }
  const std::string mean = fmt::format(
      "  - {{name: mean, kind: average_pool, kernel: {}}}\n"
      "  - {{name: features, kind: reshape, shape: [{}]}}\n",
      side, below);
  if (!swin) return text + mean + "  - {name: final_norm, kind: layer_norm}\n";
  return text + "  - {name: final_norm, kind: layer_norm}\n" + chart("  ", "map", side, below) + mean;
}

}  // namespace stepcast
