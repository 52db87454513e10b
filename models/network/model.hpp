#pragma once

#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "models/network/layer.hpp"

namespace stepcast {

/// A network: layers in topological order. It does not change after reading.
struct Model {
  std::string name;
  std::string source;
  std::string sample = "sample";  ///< word for one sample in tables: "image", "frame", "chunk of 106 frames"
  Shape input;                    ///< shape of one sample
  std::vector<Layer> layers;
  std::vector<LayerBlock> blocks;  ///< the blocks of a stack, and repeated blocks
};

/// Reads the YAML file of a network. @throws InputError
Model read_model(const YamlValue& value);

bool has_layers(const Model& model, LayerKind kind);    ///< at least one of this kind
std::int64_t trainable_parameters(const Model& model);  ///< number of elements
std::int64_t all_parameters(const Model& model);        ///< number of elements, with running statistics
std::int64_t gradient_tensors(const Model& model);      ///< number of trainable arrays

/// For each layer, whether its backward pass must compute the gradient of its inputs: true if a layer below
/// has parameters.
std::vector<bool> backward_data_needed(const Model& model);

/// For each layer, the number of layers that read its output.
std::vector<int> consumers(const Model& model);

}  // namespace stepcast
