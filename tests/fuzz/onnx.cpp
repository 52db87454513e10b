// ONNX graphs, as protobuf's text, so that changes keep its form, or as bytes.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <sstream>

#include "core/yaml.hpp"
#include "models/network/model.hpp"
#include "models/onnx/graph.hpp"
#include "models/onnx/network_text.hpp"
#include "tests/fuzz/input.hpp"

using namespace stepcast;

namespace {

class Silent : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
};

/// The bytes of a graph; those of the input if it is not protobuf's text.
std::string graph_bytes(const std::string& text) {
  Silent silent;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&silent);
  parser.SetRecursionLimit(32);
  onnx::ModelProto model;
  return parser.ParseFromString(text, &model) ? model.SerializePartialAsString() : text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes = graph_bytes({reinterpret_cast<const char*>(data), size});
  std::string written;
  refuses_or_reads([&] {
    std::istringstream stream(bytes);
    written = onnx_network_text(stream, "graph.onnx", "net");
  });
  if (written.empty()) return 0;
  const YamlNode root = parse_yaml(written, "network.yaml");  // what is written is a network
  read_model(YamlValue(root, ""));
  return 0;
}
