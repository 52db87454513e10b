#include "commands/import/network.hpp"

#include <fmt/format.h>

#include "commands/import/written_file.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "models/cost/cost.hpp"
#include "models/hugging_face/network_text.hpp"
#include "models/network/model.hpp"
#ifdef STEPCAST_HAS_ONNX
#include <fstream>
#include <map>
#include <optional>

#include "core/text.hpp"
#include "models/onnx/network_text.hpp"
#endif

namespace stepcast {

namespace {

void check_extension(const std::filesystem::path& output) {
  if (output.extension() != ".yaml")
    throw InputError(fmt::format("--output: expected a path ending in .yaml, got \"{}\"", output.string()));
}

void write_network(const std::string& text, const std::filesystem::path& output) {
  check_writable(output.has_parent_path() ? output.parent_path() : ".");
  write_atomically(output, text);
  const Model model = read_written([&] {
    const YamlNode written = parse_yaml_file(text, output.string());
    return read_model(YamlValue(written, ""));
  });
  const std::int64_t trained = trainable_parameters(model), untrained = all_parameters(model) - trained;
  fmt::print("{}: one sample is one {}, {} parameters{}, {:.6g} GFLOP forward\n", model.name, model.sample,
             trained, untrained > 0 ? fmt::format(" and {} that are not trained", untrained) : "",
             forward_flops(model).value / 1e9);
  const std::size_t losses = model.source.find("; ");
  if (losses != std::string::npos) fmt::print("note: {}\n", model.source.substr(losses + 2));
  fmt::print("written: {}\n", output.string());
}

}  // namespace

void import_network(const std::filesystem::path& config, std::int64_t sequence,
                    const std::filesystem::path& output) {
  check_extension(output);
  const YamlNode node = read_yaml(config);
  const HuggingFaceConfig network = read_hugging_face_config(YamlValue(node, ""));
  if (sequence > 0 && !network.reads_tokens())
    throw InputError("--sequence: not valid for a network of images, whose size is in its configuration");
  write_network(network_text(network, output.stem().string(), sequence), output);
}

#ifdef STEPCAST_HAS_ONNX
void import_onnx(const std::filesystem::path& graph, const std::vector<std::string>& sizes,
                 const std::filesystem::path& output) {
  check_extension(output);
  std::map<std::string, std::int64_t> by_name;
  for (const std::string& one : sizes) {
    const std::size_t equals = one.rfind('=');
    const auto size = equals == std::string::npos ? std::nullopt : parse_integer(one.substr(equals + 1));
    if (!size || *size < 1 || *size > 1'000'000'000)
      throw InputError(
          fmt::format("--size: expected NAME=N with N from 1 to 1e9, got \"{}\"", printable(one)));
    by_name[one.substr(0, equals)] = *size;
  }
  std::ifstream stream(graph, std::ios::binary);
  if (!stream) throw InputError(fmt::format("{}: cannot read this file", graph.string()));
  write_network(onnx_network_text(stream, graph.string(), output.stem().string(), by_name), output);
}
#else
void import_onnx(const std::filesystem::path& graph, const std::vector<std::string>&,
                 const std::filesystem::path&) {
  throw InputError(fmt::format(
      "{}: stepcast was built without ONNX; install libonnx-dev and libprotobuf-dev, and build again",
      graph.string()));
}
#endif

}  // namespace stepcast
