#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/yaml.hpp"
#include "models/hugging_face/network_text.hpp"

namespace stepcast {

// Limits of config.json's sizes, and readers of its keys, for all families.
inline constexpr std::int64_t kMostConfigLayers = 1000;
inline constexpr std::int64_t kMostConfigHeads = 100'000;
inline constexpr std::int64_t kMostConfigWidth = 1'000'000;
inline constexpr std::int64_t kMostConfigUnits = 100'000'000;  ///< of queries
inline constexpr std::int64_t kMostConfigRows = 100'000'000;

/// The top level of config.json, which knows second names of keys and remembers which keys were read.
class ConfigMap {
 public:
  explicit ConfigMap(YamlMap map) : map_(std::move(map)) {}

  YamlValue at(std::string_view key, std::string_view expected = "a value") const;
  std::optional<YamlValue> maybe(std::string_view key) const;
  const YamlValue& value() const { return map_.value(); }
  /// Says that the value of a key follows from those of others, or that the family does not use it.
  void skip(std::string_view key) const { read_.emplace(key); }

  /// Keys that nothing read and that are not known to leave the network as it is, in file order.
  std::vector<std::string> unread() const;

 private:
  std::string_view name_in_file(std::string_view key) const;

  YamlMap map_;
  mutable std::set<std::string, std::less<>> read_;
};

/// The value of a key; nothing if it is missing or null.
std::optional<YamlValue> given(const ConfigMap& map, std::string_view key);

std::int64_t config_count(const ConfigMap& map, std::string_view key, std::int64_t most);
std::int64_t config_count_or(const ConfigMap& map, std::string_view key, std::int64_t most,
                             std::int64_t default_value);
bool config_flag_or(const ConfigMap& map, std::string_view key, bool default_value);
double config_number_or(const ConfigMap& map, std::string_view key, double high, double default_value);
std::string config_word_or(const ConfigMap& map, std::string_view key, std::string_view default_value);

/// A share that is dropped; 0 without the key.
double dropout_rate(const ConfigMap& map, std::string_view key);

/// A key that changes a network, and the text that leaves it as it is here.
struct NeutralKey {
  std::string_view key, neutral;
};

/// @throws InputError if the key has another value
void require_neutral(const ConfigMap& map, const NeutralKey& one);

/// @throws InputError if `architectures` names another network than one of these
void require_architecture(const ConfigMap& map, const std::vector<std::string_view>& names);

/// `num_labels`, or the classes of `id2label`; without both 2 for texts (the library's default).
/// @throws InputError for images without both
void read_classes(const ConfigMap& map, HuggingFaceConfig& config);

// Families whose networks are no stack of equal blocks with one sequence.
void read_encoder_decoder(const ConfigMap& map, HuggingFaceConfig& config);  ///< T5, mT5, Whisper
void read_image_stages(const ConfigMap& map, HuggingFaceConfig& config);     ///< Swin, ConvNeXt
void read_state_space(const ConfigMap& map, HuggingFaceConfig& config);      ///< Mamba 2

}  // namespace stepcast
