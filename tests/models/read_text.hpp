#pragma once

#include <string>

#include "core/yaml.hpp"
#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// The model of a YAML text; errors name the file "m.yaml".
inline Model model_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "m.yaml");
  return read_model(YamlValue(node, ""));
}

/// A network of the source tree.
inline Model shipped_model(const std::string& name) {
  return load_model(std::string(STEPCAST_SOURCE_DIR) + "/models", name);
}

inline Trace trace_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "t.yaml");
  return read_trace(YamlValue(node, ""));
}

inline const Layer& layer_named(const Model& model, const std::string& name) {
  for (const Layer& layer : model.layers) {
    if (layer.name == name) return layer;
  }
  throw std::out_of_range(name);
}

}  // namespace stepcast
