#include "models/onnx/graph.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>

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
    refuse(graph, fmt::format("is no complete ONNX file of at most {} bytes", kMostBytes));
  if (!graph.model.has_graph() || graph.model.graph().node_size() == 0)
    refuse(graph, "is no ONNX file: it holds no nodes");
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

void check_limits(OnnxGraph& graph) {
  const onnx::GraphProto& proto = graph.model.graph();
  if (proto.node_size() > kMostNodes)
    refuse(graph, fmt::format("expected at most {} nodes, got {}", kMostNodes, proto.node_size()));
  if (proto.initializer_size() > kMostConstants)
    refuse(graph,
           fmt::format("expected at most {} initializers, got {}", kMostConstants, proto.initializer_size()));
  if (proto.sparse_initializer_size() > 0) refuse(graph, "sparse initializers are not supported");
  if (graph.model.functions_size() > 0) refuse(graph, "functions of the model are not supported");
}

/// Gives a free batch its stand-in. @returns the batch with which shapes are inferred
std::int64_t fix_batch(OnnxGraph& graph) {
  onnx::ValueInfoProto* input = nullptr;
  for (onnx::ValueInfoProto& one : *graph.model.mutable_graph()->mutable_input()) {
    if (graph.constants.count(one.name()) > 0) continue;
    if (input != nullptr) refuse(graph, "expected one input besides initializers, got several");
    input = &one;
  }
  if (input == nullptr) refuse(graph, "expected one input besides initializers, got none");
  graph.input = input->name();
  auto* shape = input->mutable_type()->mutable_tensor_type()->mutable_shape();
  if (shape->dim_size() < 2 || shape->dim_size() > 5)
    refuse(graph, fmt::format("input {}: expected a batch and 1 to 4 sizes", printable(graph.input)));
  for (int i = 1; i < shape->dim_size(); ++i) {
    if (shape->dim(i).dim_value() < 1)
      refuse(graph, fmt::format("input {}: size {} is free; only the batch, the first one, may be",
                                printable(graph.input), i));
  }
  if (shape->dim(0).dim_value() < 1) shape->mutable_dim(0)->set_dim_value(kFreeBatch);
  return shape->dim(0).dim_value();
}

void add_shape(const onnx::ValueInfoProto& value, std::int64_t batch, OnnxGraph& graph) {
  const auto& dims = value.type().tensor_type().shape().dim();
  Shape shape;
  for (const auto& dim : dims) {
    if (dim.dim_value() < 1) return;
    shape.push_back(dim.dim_value());
  }
  graph.whole_shapes[value.name()] = shape;
  if (shape.size() < 2 || shape.front() != batch) return;
  shape.erase(shape.begin());
  graph.shapes[value.name()] = shape;
}

/// Gives a convolution its kernel as an attribute. Without it ONNX's inference takes the kernel from the
/// weight and does not compare its number of sizes with that of the input.
void set_kernel(const OnnxGraph& graph, onnx::NodeProto& node) {
  const auto weight = graph.constants.find(node.input_size() > 1 ? node.input(1) : "");
  if (weight == graph.constants.end() || weight->second->dims_size() < 3)
    refuse_node(graph, node, "expected an initializer with 3 sizes or more as input 1");
  for (int i = node.attribute_size() - 1; i >= 0; --i)
    if (node.attribute(i).name() == "kernel_shape") node.mutable_attribute()->DeleteSubrange(i, 1);
  onnx::AttributeProto* kernel = node.add_attribute();
  kernel->set_name("kernel_shape");
  kernel->set_type(onnx::AttributeProto::INTS);
  for (int i = 2; i < weight->second->dims_size(); ++i) kernel->add_ints(weight->second->dims(i));
}

void infer_shapes(OnnxGraph& graph) {
  const std::int64_t batch = fix_batch(graph);
  graph.batch = batch;
  onnx::ModelProto copy = graph.model;
  copy.mutable_graph()->clear_value_info();  // a shape with another batch would contradict
  for (auto& output : *copy.mutable_graph()->mutable_output())
    output.mutable_type()->mutable_tensor_type()->clear_shape();
  for (auto& node : *copy.mutable_graph()->mutable_node()) {
    if (node.op_type() == "Gelu") node.set_op_type("Identity");  // ONNX 1.12 does not know its shape
    if (node.op_type() == "Conv") set_kernel(graph, node);
  }
  try {
    onnx::shape_inference::InferShapes(copy);
  } catch (const std::exception& error) {
    refuse(graph, fmt::format("ONNX cannot infer its shapes: {}", printable(error.what())));
  }
  add_shape(*std::find_if(copy.graph().input().begin(), copy.graph().input().end(),
                          [&](const auto& one) { return one.name() == graph.input; }),
            batch, graph);
  for (const auto& value : copy.graph().value_info()) add_shape(value, batch, graph);
  for (const auto& value : copy.graph().output()) add_shape(value, batch, graph);
}

}  // namespace

void refuse_node(const OnnxGraph& graph, const onnx::NodeProto& node, const std::string& reason) {
  const std::string& name = node.name().empty() && node.output_size() > 0 ? node.output(0) : node.name();
  throw InputError(
      fmt::format("{}: node {} ({}): {}", graph.file, printable(name), printable(node.op_type()), reason));
}

OnnxGraph read_onnx_graph(std::istream& bytes, const std::string& file,
                          bool (*is_known)(const std::string&)) {
  OnnxGraph graph;
  graph.file = file;
  parse(bytes, graph);
  check_limits(graph);
  for (const onnx::TensorProto& tensor : graph.model.graph().initializer())
    add_constant(tensor.name(), tensor, graph);
  check_nodes(graph, is_known);
  for (const auto& output : graph.model.graph().output()) ++graph.uses[output.name()];
  infer_shapes(graph);
  return graph;
}

}  // namespace stepcast
