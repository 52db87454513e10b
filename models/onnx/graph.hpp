#pragma once

// Debian's ONNX is compiled with these two.
#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#include <onnx/onnx_pb.h>

#include <istream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/network/layer.hpp"

namespace stepcast {

/// Integers that are known before the network runs: sizes, indices. A scalar has one value.
struct OnnxNumbers {
  bool scalar = false;
  std::vector<std::int64_t> values = {};
};

using OnnxSizes = std::map<std::string, std::int64_t>;

/// A graph of ONNX with the shapes that ONNX's own inference finds. The batch is the first size of every
/// activation.
struct OnnxGraph {
  std::string file;
  onnx::ModelProto model;
  std::map<std::string, const onnx::TensorProto*> constants;  ///< initializers and Constant nodes, by name
  std::map<std::string, OnnxNumbers> numbers;  ///< short lists of constants, and the results of nodes on them
  std::map<std::string, Shape> shapes;  ///< of activations whose first size is the batch, which is left out
  std::map<std::string, Shape> whole_shapes;  ///< of all values, with the batch
  std::int64_t batch = 1;                     ///< with which shapes were inferred
  std::map<std::string, int> uses;            ///< how many nodes and graph outputs read a value
  std::string input;                          ///< the first input that is not an initializer
  std::vector<std::string> more_ids;          ///< further inputs of the same integers, such as token types
  std::vector<std::string> masks;             ///< further inputs that only hide values of attention
};

/// The values of a tensor of at most 64 64-bit integers in one dimension or none; nothing if it is none.
std::optional<OnnxNumbers> integers_of(const onnx::TensorProto& tensor);

/// The integers that a node computes from the shapes and numbers that are known so far: `Shape`, `Gather`,
/// `Concat`, arithmetic and others of at most 64 values, none above 1e15. Nothing if they are not known.
std::optional<OnnxNumbers> folded(const OnnxGraph& graph, const onnx::NodeProto& node);

/// Refuses a node: "FILE: node NAME (OPERATOR): REASON".
[[noreturn]] void refuse_node(const OnnxGraph& graph, const onnx::NodeProto& node, const std::string& reason);

/// Reads a graph, checks its limits and infers its shapes. Nothing outside the stream is read.
/// @param is_known  whether an operator has a layer; a node of any other is refused before shapes are
/// inferred
/// @param sizes  of an input that the graph leaves free, by their name there or by "INPUT:INDEX"
/// @throws InputError for damaged bytes, external data, inputs that differ in kind, and graphs beyond a limit
OnnxGraph read_onnx_graph(std::istream& bytes, const std::string& file,
                          bool (*is_known)(const std::string& operator_type), const OnnxSizes& sizes = {});

using OnnxNode = onnx::NodeProto;

struct WrittenLayer {
  std::string name;
  std::string keys;  ///< of YAML, with the kind first
  std::vector<std::string> inputs;
  Shape output;          ///< as ONNX infers it; empty: a loss
  bool removed = false;  ///< it became a part of another layer
};

/// A value that does not depend on the network's input: a weight, a mask, a size, or a value computed from
/// these.
struct FixedValue {
  std::string initializer;  ///< initializer whose elements it holds, perhaps only some or in another order;
                            ///< empty: none
  bool transposed = false;
  bool triangular = false;  ///< a mask of later tokens, or computed from one
};

/// The meaning of a value of the graph that depends on the network's input.
struct OnnxValue {
  enum class Form {
    layer,      ///< the output of `layer`, maybe in another shape, or scaled
    scores,     ///< attention's products of queries in `layer` and keys in `key`, before the product with the
                ///< values
    curve,      ///< part of an activation of `layer`'s output, if the graph writes the activation as several
                ///< nodes
    mean,       ///< mean of the output of `layer` over the last dimension, as a part of layer norm
    centered,   ///< the output less that mean
    square,     ///< of the latter
    deviation,  ///< the mean of the latter, and its root
  };
  Form form = Form::layer;
  std::string layer = {};
  std::string view = {};  ///< the node that last changed the shape; empty: none
  int part = -1;          ///< which third of the features: queries, keys, values; -1: all
  bool bent = false;      ///< of a curve: Erf or Tanh was applied
  std::string key = {};   ///< of scores
  int key_part = -1;
  bool causal = false;
  double dropout = 0;  ///< of scores: share that is dropped behind the softmax
};

/// The network while it is written.
struct OnnxWriter {
  OnnxGraph graph;
  std::vector<WrittenLayer> layers = {};
  std::map<std::string, OnnxValue> values = {};  ///< by their name in the graph
  std::map<std::string, FixedValue> fixed = {};
  /// Layers that miss a parameter, which the next node on their output brings: outputs of MatMul (bias) and
  /// of norms that are written out (scale, shift).
  std::map<std::string, std::size_t> without_bias = {}, without_scale = {}, without_shift = {};
  std::set<std::string> replaced = {};     ///< operators that count as another kind, "HardSwish as silu"
  std::vector<std::string> left_out = {};  ///< nodes that scale or shift the network's input
  std::set<std::string> names = {};
  std::set<std::string> trained = {};  ///< initializers that layers own
  std::int64_t trained_elements = 0;   ///< of them, as stepcast counts parameters
};

const onnx::AttributeProto* attribute(const OnnxNode& node, const std::string& name);
std::int64_t integer(const OnnxNode& node, const std::string& name, std::int64_t otherwise);
double number(const OnnxNode& node, const std::string& name, double otherwise);
std::vector<std::int64_t> integers(const OnnxNode& node, const std::string& name, std::size_t count,
                                   std::int64_t otherwise);
std::string list(const std::vector<std::int64_t>& numbers);

bool has_input(const OnnxNode& node, int index);
/// An initializer, or nullptr.
const onnx::TensorProto* constant(const OnnxWriter& writer, const OnnxNode& node, int index);
/// The value if it does not depend on the network's input, or nullptr.
const FixedValue* fixed_value(const OnnxWriter& writer, const OnnxNode& node, int index);
/// True if it has one element at most, as far as that is known.
bool is_scalar(const OnnxWriter& writer, const OnnxNode& node, int index);

/// Takes an input of the node as a trained parameter. @returns its shape, turned if it was transposed
Shape take_parameter(OnnxWriter& writer, const OnnxNode& node, int index, std::size_t dimensions);

/// Takes an input of the node as a bias of `units` elements, which may have further sizes of 1.
/// @param after  sizes behind that of the units
void take_bias(OnnxWriter& writer, const OnnxNode& node, int index, std::int64_t units,
               std::size_t after = 0);

/// The inferred shape of a value, batch left out. @throws InputError if ONNX does not find it
const Shape& shape_of(const OnnxWriter& writer, const OnnxNode& node, const std::string& value);
/// The meaning of an input. @throws InputError if no earlier node made it
const OnnxValue& value_of(const OnnxWriter& writer, const OnnxNode& node, int index);
/// The shape of a layer's output, or of the network's input.
const Shape& output_of(const OnnxWriter& writer, const std::string& layer);
WrittenLayer* find_layer(OnnxWriter& writer, const std::string& name);

/// The layer that gives an input in the shape that ONNX infers; where the graph has changed the shape, a
/// reshape is added. @throws InputError for parts of layers that are written out
std::string layer_of(OnnxWriter& writer, const OnnxNode& node, int index);

/// The layer that gives an output of the graph, in the shape that ONNX infers.
std::string layer_of_output(OnnxWriter& writer, const std::string& output);

/// Appends a dense layer with `features` inputs, which works on each row of the last size: the order of the
/// sizes before it does not matter. `keys` follow the kind.
void append_dense(OnnxWriter& writer, const OnnxNode& node, std::int64_t features, std::int64_t units,
                  const std::string& keys);

/// Appends a layer whose output is the node's first one.
void append_layer(OnnxWriter& writer, const OnnxNode& node, const std::string& keys,
                  const std::vector<std::string>& inputs, const Shape& output);
/// Appends a layer for a node whose first `inputs` inputs are activations.
void add_layer(OnnxWriter& writer, const OnnxNode& node, const std::string& keys, int inputs = 1);
void add_loss(OnnxWriter& writer, const std::string& kind, const std::string& input);
/// True if the node's output leaves the graph and no node reads it.
bool is_last(const OnnxWriter& writer, const OnnxNode& node);
/// How many nodes and outputs of the graph read the value.
int uses_of(const OnnxWriter& writer, const std::string& value);

// Nodes of one kind of layer each (layers.cpp).

void add_convolution(OnnxWriter& writer, const OnnxNode& node);
void add_gemm(OnnxWriter& writer, const OnnxNode& node);
void add_batch_norm(OnnxWriter& writer, const OnnxNode& node);
void add_layer_norm(OnnxWriter& writer, const OnnxNode& node);
void add_pool(OnnxWriter& writer, const OnnxNode& node);
void add_global_pool(OnnxWriter& writer, const OnnxNode& node);
void add_dropout(OnnxWriter& writer, const OnnxNode& node);
void add_recurrent(OnnxWriter& writer, const OnnxNode& node);
void add_concatenation(OnnxWriter& writer, const OnnxNode& node);

// Nodes that are parts of layers which the graph writes out (composed_layers.cpp).

void add_product(OnnxWriter& writer, const OnnxNode& node);
/// Add, Sub, Mul, Div, Pow, Where.
void add_arithmetic(OnnxWriter& writer, const OnnxNode& node);
/// Erf, Tanh, Sqrt, Cast and others of one input.
void add_function(OnnxWriter& writer, const OnnxNode& node);
void add_softmax(OnnxWriter& writer, const OnnxNode& node);
void add_sigmoid(OnnxWriter& writer, const OnnxNode& node);
void add_mean(OnnxWriter& writer, const OnnxNode& node);

// Nodes that change the shape or take a part (views.cpp).

void add_view(OnnxWriter& writer, const OnnxNode& node);
void add_gather(OnnxWriter& writer, const OnnxNode& node);
void add_slice(OnnxWriter& writer, const OnnxNode& node);
void add_split(OnnxWriter& writer, const OnnxNode& node);
void add_initializer(OnnxWriter& writer, const std::string& name);
/// Notes the outputs of a node none of whose inputs depends on the network's input. @returns whether it is
/// one
bool add_fixed(OnnxWriter& writer, const OnnxNode& node);

}  // namespace stepcast
