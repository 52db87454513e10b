#pragma once

#include <string_view>
#include <vector>

namespace stepcast {

/// A family of transformers in Hugging Face's library, by its `model_type`.
struct HuggingFaceFamily {
  /// A stack of equal blocks over words or an image; two stacks, of two sequences; stages of an image whose
  /// maps shrink; a stack of state spaces.
  enum class Kind { decoder, encoder, image, encoder_decoder, image_stages, state_space };
  enum class Norm { layer, plain_layer, rms };  ///< plain_layer: without scale and shift
  /// Where a block normalises: before its halves, after their addition (BERT), on both sides of each half
  /// (Gemma 2), after each half (OLMo 2); or its halves read the same input after one norm, or after two
  /// (GPT-NeoX).
  enum class Blocks { before, after_sum, both_sides, after, parallel, parallel_two };
  /// Trained positions, rotary embeddings, or biases of attention that are not trained (ALiBi).
  enum class Positions { table, rotary, biases };
  /// What normalises queries and keys: nothing, a norm of each head, or one of all heads.
  enum class QueryNorm { none, head, all };

  /// Keys of config.json. An empty one is not read.
  struct Keys {
    std::string_view width = "hidden_size", layers = "num_hidden_layers", heads = "num_attention_heads",
                     hidden = "intermediate_size", positions = "max_position_embeddings",
                     activation = "hidden_act", attention_dropout = "attention_dropout", block_dropout = "",
                     embedding_dropout = "",
                     bias = "";  ///< of all dense layers of a block, such as "use_bias"
  };
  /// Which dense layers of a block have a bias, if no key says it.
  struct Biases {
    bool qkv = false, projection = false, hidden = false, vocabulary = false;
  };

  std::string_view model_type;
  Kind kind = Kind::decoder;
  Norm norm = Norm::rms;
  Blocks blocks = Blocks::before;
  Positions positions = Positions::rotary;
  QueryNorm query_norm = QueryNorm::none;
  Keys keys = {};
  Biases biases = {};
  bool gated = true;                ///< the hidden layer is multiplied with a second one, its gate
  bool layer_scale = false;         ///< what a block adds has a trained factor for each feature
  bool tied = false;                ///< default of `tie_word_embeddings`
  bool four_widths = false;         ///< hidden units are 4 x width if their key is missing
  bool attention_bias_key = false;  ///< `attention_bias` and `mlp_bias` are read
  bool grouped = true;              ///< `num_key_value_heads` and `head_dim` are read
  int position_offset = 0;  ///< rows of the table of positions beyond the most tokens, not in the key (OPT)
  int reserved_positions = 0;         ///< rows in the key beyond the most tokens (RoBERTa)
  std::string_view experts_key = "";  ///< number of experts; empty: the family has none
  std::string_view expert_hidden_key = "intermediate_size";
  bool latent = false;         ///< keys and values are products of one narrow array (DeepSeek's MLA)
  bool shared_expert = false;  ///< an expert that each token visits, with a gate (Qwen2's experts)
};

const std::vector<HuggingFaceFamily>& hugging_face_families();

}  // namespace stepcast
