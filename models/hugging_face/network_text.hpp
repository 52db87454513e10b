#pragma once

#include <string>

#include "core/yaml.hpp"

namespace stepcast {

/// A transformer as `config.json` of Hugging Face's transformers library describes it. Sizes that a family
/// does not have are 0.
struct HuggingFaceConfig {
  enum class Family { gpt2, llama, mistral, mixtral, bert, vit };

  Family family{};
  std::string origin;  ///< `_name_or_path`; empty if it is missing or no short text
  std::int64_t layers = 1;
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head = 1;    ///< features of one head
  std::int64_t hidden = 1;  ///< hidden units of a block, or of one expert
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;    ///< most tokens of a sample; rows of the table of positions, if there is one
  std::int64_t token_types = 0;  ///< bert
  std::int64_t attention_window = 0;  ///< mistral, mixtral: tokens that a token attends to; 0: all
  std::int64_t experts = 0, top = 0;  ///< mixtral
  std::int64_t image = 0, patch = 0, channels = 0, classes = 0;  ///< vit
  std::string activation;  ///< kind of the layer between the dense layers of a block: gelu, relu or swiglu
  /// Shares that are dropped: of the softmax, of what a block adds, of the sum of embeddings.
  double attention_dropout = 0, block_dropout = 0, embedding_dropout = 0;
  bool attention_bias = true;
  bool hidden_bias = true;
  bool tied = false;         ///< the output embedding is the table of words
  bool masked_only = false;  ///< bert: trained to fill in masked words only, without a pooler

  bool reads_tokens() const { return family != Family::vit; }
};

/// The word for the family in `model_type`, such as "llama".
const char* to_string(HuggingFaceConfig::Family family);

/// Reads the top level of `config.json`. JSON is YAML, so the strict reader of core gives file, line and
/// column. Keys that do not change shapes or work are ignored.
/// @throws InputError for a missing key, a wrong type, an unknown `model_type` or sizes that do not fit
HuggingFaceConfig read_hugging_face_config(const YamlValue& value);

/// The text of a network file for a transformer, from its input (words or an image) to its losses. Dropout is
/// left out. A sliding window of attention is not modelled: every token attends to all tokens.
/// @param name      name of the network
/// @param sequence  tokens of a sample; 0: as many as the configuration allows. Unused by networks of images
/// @throws InputError if a table of positions has fewer rows than `sequence`
std::string network_text(const HuggingFaceConfig& config, const std::string& name, std::int64_t sequence);

}  // namespace stepcast
