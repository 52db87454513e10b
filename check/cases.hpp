#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/reference/reference.hpp"

namespace stepcast::test {

using reference::Array;
using reference::Case;

/// Numbers uniform in [-1, 1), each a pure function of the stream and the index.
Array uniform_array(std::size_t count, std::uint32_t stream);
std::vector<float> as_floats(const Array& values);
Array as_doubles(const std::vector<float>& values);
std::size_t elements(const Shape& shape);

// Layers with their parameters, as the reader of models makes them.
Layer convolution_layer(Shape input, std::int64_t filters, Window window, bool bias, std::int64_t groups = 1);
Layer locally_connected_layer(Shape input, std::int64_t filters, Window window, bool bias);
Layer pool_layer(LayerKind kind, Shape input, Window window);
Layer dense_layer(Shape input, std::int64_t units, bool bias);
Layer norm_layer(LayerKind kind, Shape input);
Layer plain_layer(LayerKind kind, Shape input, double coefficient = 0);
Layer recurrent_layer(LayerKind kind, Shape input, std::int64_t hidden, bool bidirectional,
                      bool whole_sequence);
Layer attention_layer(Shape input, std::int64_t heads, bool causal);
Layer experts_layer(Shape input, std::int64_t experts, std::int64_t top, std::int64_t hidden);
Layer loss_layer(LayerKind kind, Shape input);
Layer embedding_layer();
Layer position_embedding_layer(Shape input, std::int64_t rows);
Layer token_layer(LayerKind kind, Shape input);  ///< class_token or first_token
Layer up_sample_layer(const Shape& input, std::vector<std::int64_t> factors);
Layer reshape_layer(Shape input, Shape output);

/// A batch norm, and a term that is added to its output before a ReLU. The outputs, with the term and without
/// it, are further from zero than the rounding error, so that the ReLU has the same mask at every precision.
struct NormBeforeRelu {
  Case norm;
  Array term;
};
NormBeforeRelu norm_before_relu(std::int64_t channels);

struct NamedCase {
  std::string name;
  Case value;
};

/// Every kind of layer that all backends compute, filled with random numbers, in shapes that reveal mistakes:
/// odd sizes, strides, asymmetric padding, one to three dimensions, with and without bias.
std::vector<NamedCase> all_cases();
/// The same, and the kinds that only processors compute.
std::vector<NamedCase> processor_cases();

}  // namespace stepcast::test
