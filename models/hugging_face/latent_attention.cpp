#include <fmt/format.h>

#include <numeric>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "models/hugging_face/network_text.hpp"

namespace stepcast {
namespace {

std::string product(std::string_view name, std::int64_t units, std::string_view input) {
  return fmt::format("      - {{name: {}, kind: dense, units: {}, bias: false, inputs: [{}]}}\n", name, units,
                     input);
}

std::string norm(std::string_view name) {
  return fmt::format("      - {{name: {}_norm, kind: rms_norm}}\n", name);
}

std::string reshape(std::string_view name, std::int64_t rows, std::int64_t columns, std::string_view input) {
  return fmt::format("      - {{name: {}, kind: reshape, shape: [{}, {}], inputs: [{}]}}\n", name, rows,
                     columns, input);
}

}  // namespace

std::string latent_attention(const HuggingFaceConfig& config, std::string_view input, std::int64_t tokens) {
  const HuggingFaceConfig::Latent& latent = config.latent;
  const std::int64_t heads = config.heads, key = latent.plain + latent.rotary;
  constexpr std::int64_t kMostRows = 1'000'000'000;  // of a reshaped layer, as in network files
  const std::int64_t part = std::gcd(std::gcd(latent.plain, latent.rotary), latent.value);
  const std::int64_t all = 3 * key / part;  // rows of `part` features of a head's queries, keys and values
  if (tokens > kMostRows / (all * heads))
    throw InputError(
        fmt::format("--sequence: expected at most {} tokens for {} heads", kMostRows / (all * heads), heads));
  const std::string narrow = "compressed_queries";
  // The rotary part of keys is one for all heads. Its copies stand for the padding of values too.
  const std::int64_t copies = heads * (1 + (key - latent.value) / latent.rotary);
  return (latent.q_rank > 0 ? product(narrow, latent.q_rank, input) + norm(narrow) : "") +
         product("queries", heads * key, latent.q_rank > 0 ? narrow + "_norm" : std::string(input)) +
         reshape("query_rows", tokens * heads * key / part, part, "queries") +
         product("rotary_key", latent.rotary, input) +
         fmt::format(
             "      - {{name: rotary_row, kind: reshape, shape: [{}, 1]}}\n"
             "      - {{name: rotary_keys, kind: up_sample, factor: {}}}\n",
             tokens * latent.rotary, copies) +
         reshape("rotary_rows", tokens * latent.rotary * copies / part, part, "rotary_keys") +
         product("compressed", latent.kv_rank, input) + norm("compressed") +
         product("keys_values", heads * (latent.plain + latent.value), "compressed_norm") +
         reshape("key_value_rows", tokens * heads * (latent.plain + latent.value) / part, part,
                 "keys_values") +
         "      - {name: rows, kind: concatenate, inputs: [query_rows, key_value_rows, rotary_rows]}\n" +
         reshape("qkv", tokens, heads * 3 * key, "rows") +
         fmt::format(
             "      - {{name: rotary, kind: rotary_embedding, heads: {0}}}\n"
             "      - {{name: attention, kind: attention, heads: {0}, causal: true}}\n"
             "      - {{name: attention_rows, kind: reshape, shape: [{1}, {2}, {3}]}}\n"
             "      - {{name: values, kind: average_pool, kernel: [{4}, 1], stride: 1}}\n",
             heads, tokens * heads, key / part, part, (key - latent.value) / part + 1) +
         reshape("attention_out", tokens, heads * latent.value, "values") +
         product("projection", config.width, "attention_out");
}

}  // namespace stepcast
