#include <fmt/format.h>

#include <string>
#include <string_view>

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

}  // namespace

std::string latent_attention(const HuggingFaceConfig& config, std::string_view input) {
  const HuggingFaceConfig::Latent& latent = config.latent;
  const std::int64_t heads = config.heads, key = latent.plain + latent.rotary;
  const std::string narrow = "compressed_queries";
  return (latent.q_rank > 0 ? product(narrow, latent.q_rank, input) + norm(narrow) : "") +
         product("queries", heads * key, latent.q_rank > 0 ? narrow + "_norm" : std::string(input)) +
         product("rotary_key", latent.rotary, input) + product("compressed", latent.kv_rank, input) +
         norm("compressed") +
         product("keys_values", heads * (latent.plain + latent.value), "compressed_norm") +
         fmt::format(
             "      - {{name: rotary, kind: rotary_embedding, heads: {0}, value_width: {1}, inputs: "
             "[queries, "
             "keys_values, rotary_key]}}\n"
             "      - {{name: attention, kind: attention, heads: {0}, value_width: {1}, causal: true}}\n",
             heads, latent.value) +
         product("projection", config.width, "attention");
}

}  // namespace stepcast
