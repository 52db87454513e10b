#include "models/onnx/graph.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.hpp"
#include "core/text.hpp"

namespace stepcast {
namespace {

constexpr int kMostBytes = 2'000'000'000;  // protobuf's own limit is 2^31
constexpr int kMostDepth = 16;             // a graph without subgraphs needs 8
constexpr int kMostNodes = 20'000;
constexpr int kMostConstants = 100'000;
constexpr std::int64_t kMostElements = 1'000'000'000'000'000;

/// Stands for a batch that the graph leaves free. A large prime: no product of a network's sizes equals it.
constexpr std::int64_t kFreeBatch = 7919;

[[noreturn]] void refuse(const OnnxGraph& graph, const std::string& reason) {
  throw InputError(fmt::format("{}: {}", graph.file, reason));
}

void parse(std::istream& bytes, OnnxGraph& graph) {
  google::protobuf::io::IstreamInputStream stream(&bytes);
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(kMostBytes);
  coded.SetRecursionLimit(kMostDepth);
  if (!graph.model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    refuse(graph, fmt::format("is not a complete ONNX file of at most {} bytes", kMostBytes));
  if (!graph.model.has_graph() || graph.model.graph().node_size() == 0)
    refuse(graph, "is not an ONNX file: it has no nodes");
}

void add_constant(const std::string& name, const onnx::TensorProto& tensor, OnnxGraph& graph) {
  const std::string shown = printable(name);
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL || tensor.external_data_size() > 0)
    refuse(graph, fmt::format("initializer {}: its data is in another file, which is not supported", shown));
  std::int64_t product = 1;
  for (const std::int64_t size : tensor.dims()) {
    if (size < 0 || (size > 0 && product > kMostElements / size))
      refuse(graph, fmt::format("initializer {}: its sizes are negative or too large", shown));
    product *= size;
  }
  if (!graph.constants.emplace(name, &tensor).second)
    refuse(graph, fmt::format("initializer {}: occurs twice", shown));
  if (const auto numbers = integers_of(tensor)) graph.numbers[name] = *numbers;
}

/// ONNX's inference divides by strides without a check.
void check_strides(const OnnxGraph& graph, const onnx::NodeProto& node) {
  for (const auto& attribute : node.attribute()) {
    if (attribute.name() != "strides" && attribute.name() != "dilations") continue;
    for (const std::int64_t value : attribute.ints())
      if (value < 1) refuse_node(graph, node, "expected strides and dilations of at least 1");
  }
}

void check_nodes(OnnxGraph& graph, bool (*is_known)(const std::string&)) {
  for (const onnx::NodeProto& node : graph.model.graph().node()) {
    const bool own_domain = node.domain().empty() || node.domain() == "ai.onnx";
    if (node.op_type().find("uantize") != std::string::npos || node.op_type().starts_with("QLinear"))
      refuse_node(graph, node, "belongs to a quantized network; export the network in floating point");
    if (!own_domain || !is_known(node.op_type()))
      refuse_node(graph, node, "has no kind of layer in stepcast");
    check_strides(graph, node);
    if (node.output_size() < 1) refuse_node(graph, node, "has no output");
    for (const std::string& input : node.input()) ++graph.uses[input];
    if (node.op_type() != "Constant") continue;
    if (node.attribute_size() == 1 && node.attribute(0).has_t())
      add_constant(node.output(0), node.attribute(0).t(), graph);
    else
      refuse_node(graph, node, "expected a constant tensor");
  }
}

/// The sizes that a reshape gives an initializer; empty if they do not hold as many elements.
std::vector<std::int64_t> reshaped(const onnx::TensorProto& tensor, std::vector<std::int64_t> sizes) {
  std::int64_t elements = 1, known = 1;
  for (const std::int64_t size : tensor.dims()) elements *= size;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && i < static_cast<std::size_t>(tensor.dims_size())) sizes[i] = tensor.dims(i);
    if (sizes[i] < -1 || sizes[i] == 0 || sizes[i] > kMostElements / known) return {};
    if (sizes[i] > 0) known *= sizes[i];
  }
  const auto free = std::ranges::find(sizes, -1);
  if (free != sizes.end()) *free = elements / known;
  return elements == known * (free == sizes.end() ? 1 : *free) ? sizes : std::vector<std::int64_t>{};
}

/// Replaces reshapes of initializers that nothing else reads by initializers of the new shape. CNTK's exports
/// reshape the weights of a dense layer behind a map. Only shapes matter, so the new ones hold no data.
void fold_reshaped_initializers(OnnxGraph& graph) {
  onnx::GraphProto& proto = *graph.model.mutable_graph();
  for (int i = 0; i < proto.node_size();) {
    const onnx::NodeProto& node = proto.node(i++);
    if (node.op_type() != "Reshape" || node.input_size() != 2) continue;
    const auto weight = graph.constants.find(node.input(0));
    const auto shape = graph.numbers.find(node.input(1));
    if (weight == graph.constants.end() || shape == graph.numbers.end() || graph.uses[node.input(0)] != 1 ||
        graph.numbers.contains(node.input(0)))
      continue;
    const std::vector<std::int64_t> sizes = reshaped(*weight->second, shape->second.values);
    if (sizes.empty()) continue;
    onnx::TensorProto& tensor = *proto.add_initializer();
    tensor.set_name(node.output(0));
    tensor.set_data_type(weight->second->data_type());
    for (const std::int64_t size : sizes) tensor.add_dims(size);
    add_constant(tensor.name(), tensor, graph);
    proto.mutable_node()->DeleteSubrange(--i, 1);
  }
}

void check_limits(OnnxGraph& graph) {
  const onnx::GraphProto& proto = graph.model.graph();
  if (proto.node_size() > kMostNodes)
    refuse(graph, fmt::format("expected at most {} nodes, got {}", kMostNodes, proto.node_size()));
  if (proto.initializer_size() > kMostConstants)
    refuse(graph,
           fmt::format("expected at most {} initializers, got {}", kMostConstants, proto.initializer_size()));
  if (proto.sparse_initializer_size() > 0) refuse(graph, "sparse initializers are not supported");
  if (graph.model.functions_size() > 0)
    refuse(graph,
           "functions of the model are not supported; export with torch.onnx.export(..., dynamo=False)");
}

/// Gives the free sizes of an input those that the user names, and a free batch its stand-in.
void fix_sizes(OnnxGraph& graph, onnx::ValueInfoProto& input, const OnnxSizes& sizes,
               std::set<std::string>& used) {
  auto* shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
  if (shape->dim_size() < 2 || shape->dim_size() > 5)
    refuse(graph, fmt::format("input {}: expected a batch and 1 to 4 sizes", printable(input.name())));
  for (int i = 0; i < shape->dim_size(); ++i) {
    if (shape->dim(i).dim_value() >= 1) continue;
    const std::string place = fmt::format("{}:{}", input.name(), i);
    const std::string name = shape->dim(i).dim_param().empty() ? place : shape->dim(i).dim_param();
    const auto given = sizes.contains(name) ? sizes.find(name) : sizes.find(place);
    if (given != sizes.end()) {
      shape->mutable_dim(i)->set_dim_value(given->second);
      used.insert(given->first);
    } else if (i == 0) {
      shape->mutable_dim(0)->set_dim_value(kFreeBatch);
    } else {
      refuse(graph, fmt::format("input {}: size {} is not fixed; give --size {}=N", printable(input.name()),
                                i, printable(name)));
    }
  }
}

/// Sorts the inputs: the network's own, further ones of the same integers, and masks.
/// @returns the batch with which shapes are inferred
std::int64_t read_inputs(OnnxGraph& graph, const OnnxSizes& sizes) {
  const onnx::ValueInfoProto* first = nullptr;
  std::set<std::string> used;
  for (onnx::ValueInfoProto& one : *graph.model.mutable_graph()->mutable_input()) {
    if (graph.constants.count(one.name()) > 0) continue;
    fix_sizes(graph, one, sizes, used);
    const bool mask = one.name().find("mask") != std::string::npos;
    if (mask) {
      graph.masks.push_back(one.name());
    } else if (first == nullptr) {
      first = &one;
    } else {
      const auto& type = one.type().tensor_type();
      const bool ids =
          type.elem_type() == onnx::TensorProto::INT64 || type.elem_type() == onnx::TensorProto::INT32;
      if (!ids || one.type().SerializeAsString() != first->type().SerializeAsString())
        refuse(graph,
               fmt::format("input {}: expected one input besides initializers, masks (*mask*) and further "
                           "integers of the same shape",
                           printable(one.name())));
      graph.more_ids.push_back(one.name());
    }
  }
  if (first == nullptr) refuse(graph, "expected one input besides initializers, got none");
  for (const auto& [name, size] : sizes) {
    if (!used.contains(name))
      refuse(graph, fmt::format("--size {}: no input has a free size of this name", printable(name)));
  }
  graph.input = first->name();
  return first->type().tensor_type().shape().dim(0).dim_value();
}

void add_shape(const std::string& name, const onnx::TypeProto& type, OnnxGraph& graph) {
  Shape shape;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (dim.dim_value() < 1) return;
    shape.push_back(dim.dim_value());
  }
  graph.whole_shapes[name] = shape;
  if (shape.size() < 2 || shape.front() != graph.batch) return;
  shape.erase(shape.begin());
  graph.shapes[name] = shape;
}

/// Gives a convolution its kernel as an attribute. Without it ONNX's inference takes the kernel from the
/// weight and does not compare its number of sizes with that of the input.
void set_kernel(const OnnxGraph& graph, onnx::NodeProto& node) {
  const auto weight = graph.constants.find(node.input_size() > 1 ? node.input(1) : "");
  if (weight == graph.constants.end() || weight->second->dims_size() < 3)
    refuse_node(graph, node, "expected an initializer with 3 sizes or more as input 1");
  const auto& sizes = weight->second->dims();
  for (int i = node.attribute_size() - 1; i >= 0; --i) {
    if (node.attribute(i).name() != "kernel_shape") continue;
    if (!std::equal(sizes.begin() + 2, sizes.end(), node.attribute(i).ints().begin(),
                    node.attribute(i).ints().end()))
      refuse_node(graph, node, "its kernel_shape is not that of its filters");
    node.mutable_attribute()->DeleteSubrange(i, 1);
  }
  onnx::AttributeProto* kernel = node.add_attribute();
  kernel->set_name("kernel_shape");
  kernel->set_type(onnx::AttributeProto::INTS);
  for (int i = 2; i < sizes.size(); ++i) kernel->add_ints(sizes[i]);
}

/// Types of the values that nodes compute, by name.
using Types = std::map<std::string, onnx::TypeProto>;

/// Adds numbers as an initializer, which ONNX's inference reads.
void add_numbers(const std::string& name, const OnnxNumbers& numbers, onnx::GraphProto& single) {
  onnx::TensorProto& tensor = *single.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::INT64);
  if (!numbers.scalar) tensor.add_dims(numbers.values.size());
  for (const std::int64_t number : numbers.values) tensor.add_int64_data(number);
}

/// Declares an input of the only node of `single`, as far as it is known.
void declare(const OnnxGraph& graph, const Types& types, const std::string& name, onnx::GraphProto& single) {
  const auto numbers = graph.numbers.find(name);
  if (numbers != graph.numbers.end()) return add_numbers(name, numbers->second, single);
  onnx::TypeProto type;
  if (const auto known = types.find(name); known != types.end()) {
    type = known->second;
  } else if (const auto constant = graph.constants.find(name); constant != graph.constants.end()) {
    auto* tensor = type.mutable_tensor_type();
    tensor->set_elem_type(constant->second->data_type());
    tensor->mutable_shape();
    for (const std::int64_t size : constant->second->dims())
      tensor->mutable_shape()->add_dim()->set_dim_value(size);
  } else {
    return;
  }
  onnx::ValueInfoProto& value = *single.add_value_info();
  value.set_name(name);
  *value.mutable_type() = type;
}

/// The types of a node's outputs as ONNX infers them, once those of its inputs are known. A graph of this
/// node alone gives them: shapes that the network's input decides, such as `view(x.size(0), -1)`, are folded
/// to constants on the way.
void infer_node(const std::unordered_map<std::string, int>& versions, const onnx::NodeProto& node,
                Types& types, OnnxGraph& graph) {
  onnx::GraphProto single;
  onnx::NodeProto& own = *single.add_node();
  own = node;
  if (node.op_type() == "Gelu") own.set_op_type("Identity");  // ONNX 1.12 does not know its shape
  if (node.op_type() == "Conv") set_kernel(graph, own);
  for (const std::string& input : node.input()) declare(graph, types, input, single);
  const int declared = single.value_info_size();
  try {
    onnx::shape_inference::InferShapes(&single, versions);
  } catch (const std::exception& error) {
    refuse_node(graph, node, fmt::format("ONNX cannot infer its shape: {}", printable(error.what())));
  }
  for (int i = declared; i < single.value_info_size(); ++i) {
    const onnx::ValueInfoProto& output = single.value_info(i);
    types[output.name()] = output.type();
    add_shape(output.name(), output.type(), graph);
  }
}

void infer_shapes(OnnxGraph& graph, const OnnxSizes& sizes) {
  graph.batch = read_inputs(graph, sizes);
  Types types;
  for (const auto& input : graph.model.graph().input()) {
    if (graph.constants.count(input.name()) > 0) continue;
    types[input.name()] = input.type();
    add_shape(input.name(), input.type(), graph);
  }
  std::unordered_map<std::string, int> versions;
  for (const auto& operators : graph.model.opset_import()) versions[operators.domain()] = operators.version();
  for (const onnx::NodeProto& node : graph.model.graph().node()) {
    if (node.op_type() == "Constant") continue;
    infer_node(versions, node, types, graph);
    if (const auto numbers = folded(graph, node)) graph.numbers[node.output(0)] = *numbers;
  }
}

}  // namespace

void refuse_node(const OnnxGraph& graph, const onnx::NodeProto& node, const std::string& reason) {
  const std::string& name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  throw InputError(
      fmt::format("{}: node {} ({}): {}", graph.file, printable(name), printable(node.op_type()), reason));
}

OnnxGraph read_onnx_graph(std::istream& bytes, const std::string& file, bool (*is_known)(const std::string&),
                          const OnnxSizes& sizes) {
  OnnxGraph graph;
  graph.file = file;
  parse(bytes, graph);
  check_limits(graph);
  for (const onnx::TensorProto& tensor : graph.model.graph().initializer())
    add_constant(tensor.name(), tensor, graph);
  check_nodes(graph, is_known);
  fold_reshaped_initializers(graph);
  for (const auto& output : graph.model.graph().output()) ++graph.uses[output.name()];
  infer_shapes(graph, sizes);
  return graph;
}

}  // namespace stepcast
