#include "gpu/capture/models.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/reader/library.hpp"

namespace stepcast {

Model model_of(const std::string& name) {
  const YamlNode typed = command_line_name(name);
  const YamlNode tree = read_yaml(data_file(YamlValue(typed, "--model"), "models"));
  return read_model(YamlValue(tree, ""));
}

std::vector<std::string> models_for_gpu(std::vector<std::string>& left_out) {
  std::vector<std::string> names, usable;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "models")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const Model model = model_of(name);
    const bool lacking = std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& layer) {
      return layer.kind == LayerKind::locally_connected;
    });
    if (lacking)
      left_out.push_back(fmt::format("{}: left out: kind locally_connected is not supported on GPUs", name));
    else
      usable.push_back(name);
  }
  return usable;
}

std::string trace_name(const std::string& model, std::int64_t batch, const std::string& precision,
                       const std::string& layout) {
  return fmt::format("{}-b{}-{}-{}-gpu", model, batch, precision, layout);
}

}  // namespace stepcast
