#include "models/network/layer_fields.hpp"

#include "core/fields.hpp"

namespace stepcast {
namespace {

using Own = LayerKeys;
using Group = std::vector<Field<Own>>;

constexpr NumberRange kSizes{1, 1e9};
constexpr auto kConvolutions = "convolution, locally_connected";
constexpr auto kWindows = "convolution, locally_connected, max_pool, average_pool";

/// A size, the number of units, filters, rows, ...
Form<std::int64_t> size() {
  return integer(1, 1'000'000'000);
}

Default needed() {
  return required("an integer >= 1");
}

/// A key that the reader of the layer reads, because its range depends on the input.
Field<Own> later(Key key) {
  return field<Own>(std::move(key));
}

Fields<Own> window_fields() {
  return {
      only_with(kConvolutions, {field("filters", &Own::filters, size(), needed(), "channels of the output")}),
      only_with("convolution", {field("groups", &Own::groups, size(),
                                      "groups of channels and of filters; each group of filters reads one "
                                      "group of channels (as many groups as channels: depthwise)")}),
      only_with(kWindows,
                {later({"kernel", Allowed({KeyType::integer, KeyType::integers}, {1, 1e6}), "required",
                        "size of the window; one integer, or one for each spatial dimension"}),
                 later({"stride", Allowed({KeyType::integer, KeyType::integers}, {1, 1e6}),
                        "1; of pools the kernel", "step of the window"}),
                 later({"pad",
                        Allowed({KeyType::integer, KeyType::integers, KeyType::name, KeyType::mapping}, {},
                                {"same"}),
                        "0", "padding on each side; `same`: the output has ceil(size / stride) positions",
                        pad_keys})})};
}

Fields<Own> attention_fields() {
  return {
      only_with(
          "attention, rotary_embedding, state_space",
          {field("heads", &Own::heads, size(), needed(), "heads of queries; of a state space, all heads")}),
      only_with("attention, rotary_embedding",
                {later({"kv_heads", size(), "heads",
                        "heads of keys and values, a divisor of `heads` (grouped queries)"}),
                 later({"value_width", size(), "that of its keys",
                        "features of a head's values (latent attention)"})}),
      only_with(
          "attention",
          {field("causal", &Own::causal, boolean(), "whether a token sees only those before it"),
           field("dropout", &Own::dropout, number(0, 0.999), "share of the softmax that is dropped"),
           later({"window", size(), "all tokens",
                  "tokens of a window, a divisor of all tokens; each attends to those of its window"}),
           field("position_bias", &Own::position_bias, integer(0, 1'000'000'000),
                 "rows of a trained table, {rows, heads}, whose values are added to the scores; 0: those of "
                 "another layer's table are added")}),
      only_with("state_space",
                {field("state", &Own::state, integer(1, 1'000'000), needed(), "states of a feature"),
                 later({"state_groups", size(), "1", "groups of heads that share inputs and outputs"}),
                 field("chunk", &Own::chunk, size(), "tokens that products compute at once"),
                 field("taps", &Own::taps, integer(1, 1'000'000),
                       "tokens that the convolution before the scan reads")}),
      only_with("experts",
                {field("experts", &Own::experts, integer(1, 1'000'000), needed(),
                       "experts, each of which is a SwiGLU block"),
                 later({"top", integer(1, 1'000'000), "required", "experts that each token visits"})})};
}

Fields<Own> sequence_fields() {
  return {
      only_with("embedding", {field("rows", &Own::rows, size(), needed(), "rows of the table"),
                              field("columns", &Own::columns, size(), needed(), "features of a row")}),
      only_with("lstm, gru, experts", {field("hidden", &Own::hidden, size(), needed(), "hidden units")}),
      only_with("lstm, gru",
                {field("bidirectional", &Own::bidirectional, boolean(),
                       "whether the layer also runs from the last time step to the first"),
                 field("output", &Own::last_step_only, choice<bool>({{"sequence", false}, {"last", true}}),
                       "whether the output has all time steps or only the last one")}),
      attention_fields().fields(),
      only_with(
          "position_embedding",
          {later({"rows", size(), "the number of tokens", "trained rows, one for each position"}),
           field("trained", &Own::trained, boolean(), "whether the rows are trained (or fixed sines)")}),
      only_with("class_token", {field("unused", &Own::unused, integer(0, 1'000'000'000),
                                      "further tokens that the network holds and its loss does not train")})};
}

Fields<Own> element_fields() {
  return {
      only_with("layer_norm",
                {field("affine", &Own::affine, boolean(), "whether it has a scale and a shift")}),
      only_with("slice", {field("first", &Own::first, integer(0, 1'000'000'000), "first row that is taken"),
                          later({"count", size(), "required", "rows that are taken"})}),
      only_with("up_sample", {later({"factor", Allowed({KeyType::integer, KeyType::integers}, {1, 1e6}),
                                     "required", "factor on each spatial dimension; nearest neighbour"})}),
      only_with("reshape", {later({"shape", Allowed(KeyType::integers, kSizes), "required",
                                   "shape with as many elements as the input"})}),
      only_with("leaky_relu", {field("slope", &Own::slope, number(0), "slope for inputs below 0")}),
      only_with("elu", {field("alpha", &Own::alpha, number(0), "outputs are above -alpha")}),
      only_with("dropout", {field("rate", &Own::rate, number(0, 0.999), required("a number from 0 to 0.999"),
                                  "share that is dropped")}),
      only_with("measured", {later({"output", Allowed(KeyType::integers, kSizes), "required",
                                    "shape of one sample's output"}),
                             later({"parameters", Allowed(KeyType::integers, {1, 1e15}), "none",
                                    "elements of each trained array"})})};
}

const Fields<Own>& layer_fields() {
  static const Fields<Own> fields{
      later({"name", KeyType::text, "required", "unique name of the layer"}),
      later({"kind", one_of(layer_kind_words()), "required", "what the layer does"}),
      later({"inputs", KeyType::texts, "the layer above",
             "earlier layers, or `input` for the network's input"}),
      window_fields().fields(),
      only_with("dense", {field("units", &Own::units, size(), needed(), "features of the output")}),
      only_with("convolution, locally_connected, dense, state_space",
                {field("bias", &Own::bias, boolean(), "whether the layer has a bias")}),
      only_with("dense", {later({"weight_of", KeyType::text, "a weight of its own",
                                 "an earlier layer whose weight this layer uses (tied weights)"})}),
      sequence_fields().fields(),
      element_fields().fields()};
  return fields;
}

/// The fields of each kind, because networks have thousands of layers.
const std::vector<Fields<Own>>& fields_by_kind() {
  static const std::vector<Fields<Own>> all = [] {
    std::vector<Fields<Own>> kinds;
    for (const std::string& word : layer_kind_words()) {
      Group own;
      for (Field<Own> one : layer_fields().fields()) {
        if (keys_of_kind({one.key}, word).empty()) continue;
        one.key.only_with = {};
        own.push_back(std::move(one));
      }
      kinds.push_back({FieldGroup<Own>(std::move(own))});
    }
    return kinds;
  }();
  return all;
}

}  // namespace

const Keys& network_layer_keys() {
  return layer_fields().keys();
}

YamlMap read_layer_keys(const YamlValue& value, LayerKind kind, LayerKeys& keys) {
  return read_mapping(value, fields_by_kind().at(ordinal(kind)), keys);
}

}  // namespace stepcast
