#include "commands/import/network.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "models/cost/cost.hpp"
#include "models/hugging_face/network_text.hpp"
#include "models/network/model.hpp"

namespace stepcast {

void import_network(const std::filesystem::path& config, std::int64_t sequence,
                    const std::filesystem::path& output) {
  if (output.extension() != ".yaml")
    throw InputError(fmt::format("--output: expected a path ending in .yaml, got \"{}\"", output.string()));
  const YamlNode node = read_yaml(config);
  const HuggingFaceConfig network = read_hugging_face_config(YamlValue(node, ""));
  if (sequence > 0 && !network.reads_tokens())
    throw InputError("--sequence: not valid for a network of images, whose size is in its configuration");
  const std::string text = network_text(network, output.stem().string(), sequence);
  const YamlNode written = parse_yaml(text, output.string());
  const Model model = read_model(YamlValue(written, ""));
  check_writable(output.has_parent_path() ? output.parent_path() : ".");
  write_atomically(output, text);
  fmt::print("{}: one sample is one {}, {} parameters, {:.6g} GFLOP forward\nwritten: {}\n", model.name,
             model.sample, trainable_parameters(model), forward_flops(model).value / 1e9, output.string());
}

}  // namespace stepcast
