#pragma once

#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "models/layer.hpp"

namespace stepcast {

/// A network: layers in an order in which every input comes before its user. Immutable after reading.
struct Model {
  std::string name;
  std::string source;
  std::string sample =
      "sample";  ///< what one sample is, for printing: "image", "frame", "chunk of 106 frames"
  Shape input;   ///< of one sample
  std::vector<Layer> layers;
};

/// Reads `models/NAME.yaml`; throws InputError.
Model read_model(const YamlValue& value);

std::int64_t trainable_parameters(const Model& model);
std::int64_t all_parameters(const Model& model);    ///< with running statistics
std::int64_t gradient_tensors(const Model& model);  ///< trainable arrays

}  // namespace stepcast
