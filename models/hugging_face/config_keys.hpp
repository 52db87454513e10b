#pragma once

#include <optional>
#include <string_view>

#include "core/yaml.hpp"
#include "models/hugging_face/network_text.hpp"

namespace stepcast {

// Limits of config.json's sizes, and readers of its keys, for all families.
inline constexpr std::int64_t kMostConfigLayers = 1000;
inline constexpr std::int64_t kMostConfigHeads = 100'000;
inline constexpr std::int64_t kMostConfigWidth = 1'000'000;
inline constexpr std::int64_t kMostConfigUnits = 100'000'000;  ///< of queries
inline constexpr std::int64_t kMostConfigRows = 100'000'000;

/// The value of a key; nothing if it is missing or null.
std::optional<YamlValue> given(const YamlMap& map, std::string_view key);

std::int64_t config_count(const YamlMap& map, std::string_view key, std::int64_t most);
std::int64_t config_count_or(const YamlMap& map, std::string_view key, std::int64_t most,
                             std::int64_t default_value);
bool config_flag_or(const YamlMap& map, std::string_view key, bool default_value);
double config_number_or(const YamlMap& map, std::string_view key, double high, double default_value);
std::string config_word_or(const YamlMap& map, std::string_view key, std::string_view default_value);

/// A share that is dropped; 0 without the key.
double dropout_rate(const YamlMap& map, std::string_view key);

/// A key that changes a network, and the text that leaves it as it is here.
struct NeutralKey {
  std::string_view key, neutral;
};

/// @throws InputError if the key has another value
void require_neutral(const YamlMap& map, const NeutralKey& one);

/// @throws InputError if `architectures` names another network than one of these
void require_architecture(const YamlMap& map, const std::vector<std::string_view>& names);

/// `num_labels`, or the classes of `id2label`; without both 2 for texts (the library's default).
/// @throws InputError for images without both
void read_classes(const YamlMap& map, HuggingFaceConfig& config);

// Families whose networks are no stack of equal blocks with one sequence.
void read_encoder_decoder(const YamlMap& map, HuggingFaceConfig& config);  ///< T5, mT5, Whisper
void read_image_stages(const YamlMap& map, HuggingFaceConfig& config);     ///< Swin, ConvNeXt
void read_state_space(const YamlMap& map, HuggingFaceConfig& config);      ///< Mamba 2

}  // namespace stepcast
