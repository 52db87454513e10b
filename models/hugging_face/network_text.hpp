#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/yaml.hpp"
#include "models/hugging_face/family.hpp"

namespace stepcast {

/// A transformer as `config.json` of Hugging Face's transformers library describes it. Sizes that a family
/// does not have are 0.
struct HuggingFaceConfig {
  /// What follows the blocks: the words, of a decoder or of masked places; the latter with the order of
  /// sentences; a class of the whole sample; a class of each token; whether each token was replaced.
  enum class Head { language, masked, pretraining, sample, tokens, discriminator };
  /// Features of attention whose keys and values are products of one narrow array (DeepSeek-AI,
  /// *DeepSeek-V2*, arXiv:2405.04434, section 2.1), as keys of the library.
  struct Latent {
    std::int64_t q_rank = 0;   ///< of the array that queries are products of; 0: there is none
    std::int64_t kv_rank = 0;  ///< of the array that keys and values are products of
    std::int64_t plain = 0, rotary = 0, value = 0;  ///< of a head: parts of its keys; its values
  };

  /// Blocks of one width of a network whose maps shrink from stage to stage.
  struct Stage {
    std::int64_t blocks = 1, width = 1, heads = 1;  ///< heads: of Swin
  };
  /// The second stack of a network of two sequences, and what only such networks have.
  struct Decoder {
    std::int64_t layers = 0, heads = 1, hidden = 1;
    std::int64_t buckets = 0;       ///< of distances whose biases are trained (T5); 0: none
    std::int64_t sound_bands = 0;   ///< rows of the sound's spectrum (Whisper); 0: words
    std::int64_t sound_tokens = 0;  ///< tokens of the sound, each of two columns of the spectrum
    double hidden_dropout = 0;      ///< share of the hidden units that is dropped
  };
  /// The mixing layer of Mamba 2.
  struct StateSpace {
    std::int64_t inner = 1, heads = 1, states = 1, groups = 1, chunk = 1, taps = 1;
    bool bias = false, taps_bias = true;  ///< of its projections; of its convolution
  };

  HuggingFaceFamily family;
  Head head{};
  std::string origin;               ///< `_name_or_path`; empty if it is missing or no short text
  std::vector<std::string> unread;  ///< keys that may change the network and that nothing reads
  std::int64_t layers = 1;
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_size = 1;  ///< features of one head
  std::int64_t hidden = 1;     ///< hidden units of a block, or of one expert
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;         ///< most tokens of a sample; 0: the configuration does not say
  std::int64_t token_types = 0;       ///< bert and its relatives
  std::int64_t attention_window = 0;  ///< tokens that a token attends to; 0: all
  std::int64_t experts = 0, top = 0;
  std::int64_t shared_hidden = 0;                  ///< hidden units of the experts that each token visits
  std::int64_t first_dense = 0, dense_hidden = 0;  ///< first blocks without experts, and their hidden units
  Latent latent = {};
  std::int64_t embedding_width = 1;  ///< columns of the tables, which ELECTRA widens to `width`
  std::int64_t unbuilt_layers = 0;   ///< of multi-token prediction
  std::int64_t image = 0, patch = 0, channels = 0;  ///< vit
  std::int64_t classes = 0;                         ///< of the heads sample and tokens
  std::string
      activation;  ///< kind of the layer between the dense layers of a block: gelu, relu, silu or swiglu
  bool gelu_gate = false;  ///< the gate is GELU of its layer: counted as SwiGLU, whose gate is SiLU
  /// Shares that are dropped: of the softmax, of what a block adds, of the sum of embeddings.
  double attention_dropout = 0, block_dropout = 0, embedding_dropout = 0;
  bool clipped = false;           ///< queries, keys and values are (OLMo's clip_qkv)
  bool mask_token = false;        ///< DINOv2 holds a token for masked places, which no loss of classes uses
  bool stochastic_depth = false;  ///< blocks are left out at random
  std::vector<Stage> stages;
  std::int64_t window = 0;      ///< side of a window (Swin)
  double expansion = 4;         ///< hidden units of a block divided by its width (stages)
  bool position_table = false;  ///< Swin's positions are trained
  Decoder decoder = {};
  StateSpace state_space = {};
  bool tied = false;  ///< the output embedding is the table of words

  bool reads_tokens() const {
    return family.kind != HuggingFaceFamily::Kind::image &&
           family.kind != HuggingFaceFamily::Kind::image_stages;
  }
};

/// Reads the top level of `config.json`. JSON is YAML, so the strict reader of core gives file, line and
/// column. Keys that do not change shapes or work are ignored, and those of which it is not known are listed.
/// @throws InputError for a missing key, a wrong type, an unknown `model_type`, a network that
/// `architectures` names and that cannot be built, a key that changes the network in a way that is not read,
/// or sizes that do not fit
HuggingFaceConfig read_hugging_face_config(const YamlValue& value);

/// Layers of a block with DeepSeek's attention: from the features of tokens, by the layer `input`, to those
/// that are added to them.
std::string latent_attention(const HuggingFaceConfig& config, std::string_view input);

/// The layers of a network of two sequences, from its input to its loss, and its input: the words of both, or
/// a sound and the words.
std::string encoder_decoder_layers(const HuggingFaceConfig& config, std::int64_t tokens);
std::string encoder_decoder_input(const HuggingFaceConfig& config, std::int64_t tokens);

/// The layers of Swin or ConvNeXt up to the features of the image.
std::string image_stage_layers(const HuggingFaceConfig& config);

/// The layers of a block of Mamba 2.
std::string state_space_layers(const HuggingFaceConfig& config);

/// The text of a network file for a transformer, from its input (words or an image) to its losses. Dropout is
/// left out. A sliding window of attention is not modelled: every token attends to all tokens.
/// @param name      name of the network
/// @param sequence  tokens of a sample; 0: as many as the configuration allows. Unused by networks of images
/// @throws InputError if a table of positions has fewer rows than `sequence`, or if neither says a number of
/// tokens
std::string network_text(const HuggingFaceConfig& config, const std::string& name, std::int64_t sequence);

inline constexpr const char* kInBlock = "      ";  ///< indent of a layer in a block

/// Dropout behind a layer, which is then called NAME_dropout; nothing without a rate.
std::string dropout_line(std::string_view indent, std::string_view name, double rate);

/// A block that is repeated; nothing for 0 times.
std::string repeated_lines(std::int64_t times, std::string_view name, const std::string& layers);

}  // namespace stepcast
