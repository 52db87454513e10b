#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/onnx/graph.hpp"

namespace stepcast {
namespace {

using Form = OnnxValue::Form;

[[noreturn]] void refuse_form(const OnnxWriter& writer, const OnnxNode& node) {
  refuse_node(
      writer.graph, node,
      "is no addition of layers, and no part of a bias, a norm, an activation or attention that stepcast "
      "knows");
}

const OnnxValue* find_value(const OnnxWriter& writer, const OnnxNode& node, int index) {
  return fixed_value(writer, node, index) != nullptr ? nullptr : &value_of(writer, node, index);
}

bool is_whole_layer(const OnnxValue& value) {
  return value.form == Form::layer && value.part < 0;
}

void set_form(OnnxWriter& writer, const OnnxNode& node, OnnxValue value, Form form) {
  value.form = form;
  writer.values[node.output(0)] = std::move(value);
}

// ---- attention

std::int64_t units_of(const WrittenLayer& layer) {
  return layer.output.empty() ? 0 : layer.output.back();
}

/// A dense layer that nothing but this attention can read.
bool is_projection(const WrittenLayer* layer) {
  return layer != nullptr && layer->keys.starts_with("kind: dense") && layer->output.size() == 2;
}

/// Makes one dense layer of those that compute queries, keys and values of the same input. @returns its name
std::string joined_projection(OnnxWriter& writer, const OnnxNode& node, const OnnxValue& scores,
                              const OnnxValue& values) {
  WrittenLayer* query = find_layer(writer, scores.layer);
  WrittenLayer* key = find_layer(writer, scores.key);
  WrittenLayer* value = find_layer(writer, values.layer);
  if (scores.layer == scores.key && scores.key == values.layer) {
    const bool parts = scores.part == 0 && scores.key_part == 1 && values.part == 2;
    if (!parts) refuse_node(writer.graph, node, "expected queries, keys and values as thirds of one layer");
    return scores.layer;
  }
  const bool apart = scores.layer != scores.key && scores.key != values.layer && scores.layer != values.layer;
  const bool dense = apart && is_projection(query) && is_projection(key) && is_projection(value) &&
                     scores.part < 0 && scores.key_part < 0 && values.part < 0;
  const auto bias = [](const WrittenLayer& one) { return one.keys.find("bias: false") == std::string::npos; };
  if (!dense || query->inputs != key->inputs || query->inputs != value->inputs ||
      units_of(*key) != units_of(*value) || bias(*query) != bias(*key) || bias(*query) != bias(*value))
    refuse_node(
        writer.graph, node,
        "expected attention whose queries, keys and values are dense layers of one input, or thirds of one");
  const std::int64_t units = units_of(*query) + 2 * units_of(*key);
  query->keys = fmt::format("kind: dense, units: {}{}", units, bias(*query) ? "" : ", bias: false");
  query->output.back() = units;
  key->removed = value->removed = true;
  return query->name;
}

struct Heads {
  std::int64_t heads = 1, tokens = 1, features = 1;  ///< features of one head
};

/// Sizes of an attention's output: [batch, heads, tokens, features], or the first two as one.
Heads heads_of(const OnnxWriter& writer, const OnnxNode& node) {
  const auto found = writer.graph.whole_shapes.find(node.output(0));
  if (found == writer.graph.whole_shapes.end() || found->second.size() < 3)
    refuse_node(writer.graph, node,
                "expected attention of heads, tokens and features, whose sizes ONNX infers");
  const Shape& shape = found->second;
  double heads = 1;  // a double cannot overflow
  for (std::size_t i = 0; i + 2 < shape.size(); ++i) heads *= shape[i];
  heads /= writer.graph.batch;
  if (heads < 1 || heads > 1e6 || heads != std::floor(heads) || shape.back() > 1'000'000)
    refuse_node(writer.graph, node, "expected a whole number of heads for each sample");
  return {static_cast<std::int64_t>(heads), shape[shape.size() - 2], shape.back()};
}

/// The product of scores and values, which ends an attention.
void add_attention(OnnxWriter& writer, const OnnxNode& node) {
  const OnnxValue scores = value_of(writer, node, 0), values = value_of(writer, node, 1);
  const Heads sizes = heads_of(writer, node);
  if (values.form != Form::layer || find_layer(writer, values.layer) == nullptr)
    refuse_node(writer.graph, node, "expected the values of attention as input 1");
  const WrittenLayer* value = find_layer(writer, values.layer);
  const bool grouped = value != nullptr && scores.layer != values.layer &&
                       units_of(*value) != units_of(*find_layer(writer, scores.layer));
  const std::int64_t kv_heads = grouped ? units_of(*value) / sizes.features : 0;
  const std::string layer = joined_projection(writer, node, scores, values);
  append_layer(writer, node,
               fmt::format("kind: attention, heads: {}{}{}{}", sizes.heads,
                           kv_heads > 0 ? fmt::format(", kv_heads: {}", kv_heads) : "",
                           scores.causal ? ", causal: true" : "",
                           scores.dropout > 0 ? fmt::format(", dropout: {:.6g}", scores.dropout) : ""),
               {layer}, {sizes.tokens, sizes.heads * sizes.features});
  writer.values[node.output(0)].view = node.name().empty() ? node.op_type() : node.name();
}

void add_scores(OnnxWriter& writer, const OnnxNode& node) {
  OnnxValue scores = value_of(writer, node, 0);
  const OnnxValue& key = value_of(writer, node, 1);
  if (scores.form != Form::layer || key.form != Form::layer || find_layer(writer, scores.layer) == nullptr ||
      find_layer(writer, key.layer) == nullptr)
    refuse_node(writer.graph, node, "expected a weight as input 1, or queries and keys of attention");
  scores.key = key.layer;
  scores.key_part = key.part;
  set_form(writer, node, scores, Form::scores);
}

// ---- a layer and a fixed value

/// The addition of a weight: the bias of a product, the shift of a norm, or a row for each position.
void add_weight(OnnxWriter& writer, const OnnxNode& node, int weight) {
  const std::string& other = node.input(1 - weight);
  if (const auto product = writer.without_bias.find(other); product != writer.without_bias.end()) {
    WrittenLayer& layer = writer.layers[product->second];
    const bool convolution = layer.keys.starts_with("kind: convolution");
    take_bias(writer, node, weight, convolution ? layer.output.front() : layer.output.back(),
              convolution ? layer.output.size() - 1 : 0);
    layer.keys.resize(layer.keys.rfind(", bias"));
    writer.values[node.output(0)] = value_of(writer, node, 1 - weight);
    return;
  }
  if (const auto norm = writer.without_shift.find(other); norm != writer.without_shift.end()) {
    take_parameter(writer, node, weight, 1);
    writer.values[node.output(0)] = {.layer = writer.layers[norm->second].name};
    return;
  }
  const Shape shape = shape_of(writer, node, node.output(0));
  const FixedValue* table = fixed_value(writer, node, weight);
  const auto tensor = writer.graph.constants.find(table->initializer);
  if (shape.size() != 2 || tensor == writer.graph.constants.end() || tensor->second->dims_size() < 2)
    refuse_node(writer.graph, node, "adds an initializer that is not the bias of a MatMul");
  const Shape rows = take_parameter(writer, node, weight, tensor->second->dims_size());
  if (rows.back() != shape[1] || elements(rows) / std::max<std::int64_t>(1, shape[1]) < shape[0])
    refuse_node(writer.graph, node, "adds an initializer that has no row for each token");
  append_layer(writer, node, fmt::format("kind: position_embedding, rows: {}", elements(rows) / shape[1]),
               {layer_of(writer, node, 1 - weight)}, shape);
}

/// True if the node scales or shifts the network's input, by one number or one of each channel of an image,
/// as exports that take raw pixels do. That is no layer: nothing of it is trained, and no gradient passes it.
bool prepares_input(const OnnxWriter& writer, const OnnxNode& node, int fixed, const OnnxValue& value) {
  const std::string& type = node.op_type();
  const bool arithmetic = type == "Add" || type == "Sub" || type == "Mul" || type == "Div";
  if (!arithmetic || value.layer != "input" || !value.view.empty() || value.form != Form::layer) return false;
  if (is_scalar(writer, node, fixed)) return true;
  const onnx::TensorProto* tensor = constant(writer, node, fixed);
  const Shape& input = output_of(writer, value.layer);
  if (tensor == nullptr || input.size() < 3) return false;
  const int behind = input.size() - 1, channel = tensor->dims_size() - 1 - behind;
  return channel >= 0 && tensor->dims(channel) == input.front() &&
         elements({tensor->dims().begin(), tensor->dims().end()}) == input.front();
}

void add_with_fixed(OnnxWriter& writer, const OnnxNode& node, int fixed) {
  OnnxValue value = value_of(writer, node, 1 - fixed);
  const std::string& type = node.op_type();
  if (prepares_input(writer, node, fixed, value)) {
    writer.left_out.push_back(node.name().empty() ? node.output(0) : node.name());
    return set_form(writer, node, value, Form::layer);
  }
  if (value.form == Form::scores) {  // scaled, or masked
    value.causal |= fixed_value(writer, node, fixed)->triangular;
    return set_form(writer, node, value, Form::scores);
  }
  if (type == "Pow" && value.form == Form::centered) return set_form(writer, node, value, Form::square);
  if (type == "Pow" && is_whole_layer(value)) return set_form(writer, node, value, Form::curve);
  if (value.form == Form::curve || value.form == Form::deviation)
    return set_form(writer, node, value, value.form);
  if (value.form != Form::layer) refuse_form(writer, node);
  const bool bias = writer.without_bias.contains(node.input(1 - fixed)) &&
                    !fixed_value(writer, node, fixed)->initializer.empty();
  if (type == "Add" && (bias || !is_scalar(writer, node, fixed))) return add_weight(writer, node, fixed);
  const auto norm = writer.without_scale.find(node.input(1 - fixed));
  if (type == "Mul" && norm != writer.without_scale.end()) {
    take_parameter(writer, node, fixed, 1);
    writer.without_shift[node.output(0)] = norm->second;
    return set_form(writer, node, value, Form::layer);
  }
  const bool scales = (type == "Mul" || type == "Div") && is_scalar(writer, node, fixed);
  if (!scales) refuse_form(writer, node);
  set_form(writer, node, value, Form::layer);
}

// ---- two activations

/// True if one is a part of an activation of the layer that the other one is.
bool curve_of(const OnnxValue& curve, const OnnxValue& layer) {
  return curve.form == Form::curve && is_whole_layer(layer) && curve.layer == layer.layer;
}

/// x sigmoid(x): the layer of the sigmoid becomes silu.
bool add_silu(OnnxWriter& writer, const OnnxNode& node, int gate) {
  const OnnxValue sigmoid = value_of(writer, node, gate), input = value_of(writer, node, 1 - gate);
  WrittenLayer* layer = find_layer(writer, sigmoid.layer);
  const bool fits = is_whole_layer(sigmoid) && is_whole_layer(input) && layer != nullptr &&
                    layer->keys == "kind: sigmoid" && layer->inputs.front() == input.layer &&
                    uses_of(writer, node.input(gate)) == 1;
  if (!fits) return false;
  layer->keys = "kind: silu";
  writer.values[node.output(0)] = {.layer = layer->name};
  return true;
}

void add_norm(OnnxWriter& writer, const OnnxNode& node, const OnnxValue& value) {
  const Shape& shape = shape_of(writer, node, node.output(0));
  append_layer(writer, node, "kind: layer_norm", {value.layer}, shape);
  writer.without_scale[node.output(0)] = writer.layers.size() - 1;
}

void multiply(OnnxWriter& writer, const OnnxNode& node) {
  const OnnxValue a = value_of(writer, node, 0), b = value_of(writer, node, 1);
  if (curve_of(a, b) || curve_of(b, a)) {
    const OnnxValue& curve = a.form == Form::curve ? a : b;
    if (!curve.bent) return set_form(writer, node, curve, Form::curve);
    const std::string view = curve.view;
    append_layer(writer, node, "kind: gelu", {curve.layer}, output_of(writer, curve.layer));
    writer.values[node.output(0)].view = view;
    return;
  }
  if (a.form == Form::centered && b.form == Form::centered && a.layer == b.layer)
    return set_form(writer, node, a, Form::square);
  if (is_whole_layer(a) && is_whole_layer(b) && a.layer == b.layer)
    return set_form(writer, node, a, Form::curve);
  if (!add_silu(writer, node, 1) && !add_silu(writer, node, 0)) refuse_form(writer, node);
}

void add_two(OnnxWriter& writer, const OnnxNode& node) {
  const OnnxValue a = value_of(writer, node, 0), b = value_of(writer, node, 1);
  const std::string& type = node.op_type();
  if (type == "Mul") return multiply(writer, node);
  if (type == "Sub" && is_whole_layer(a) && b.form == Form::mean && a.layer == b.layer)
    return set_form(writer, node, a, Form::centered);
  if (type == "Div" && a.form == Form::centered && b.form == Form::deviation && a.layer == b.layer)
    return add_norm(writer, node, a);
  if (type == "Add" && curve_of(a, b)) return set_form(writer, node, a, Form::curve);
  if (type == "Add" && curve_of(b, a)) return set_form(writer, node, b, Form::curve);
  if (type != "Add") refuse_form(writer, node);
  add_layer(writer, node, "kind: add", 2);
}

}  // namespace

void add_product(OnnxWriter& writer, const OnnxNode& node) {
  if (fixed_value(writer, node, 1) == nullptr) {
    value_of(writer, node, 1);
    return value_of(writer, node, 0).form == Form::scores ? add_attention(writer, node)
                                                          : add_scores(writer, node);
  }
  const Shape weight = take_parameter(writer, node, 1, 2);
  append_dense(writer, node, weight[0], weight[1], ", bias: false");
  if (uses_of(writer, node.output(0)) == 1) writer.without_bias[node.output(0)] = writer.layers.size() - 1;
}

void add_arithmetic(OnnxWriter& writer, const OnnxNode& node) {
  if (node.op_type() == "Where") {  // masks scores: the mask, and what it leaves or puts in their place
    for (const int i : {1, 2}) {
      const OnnxValue* value = find_value(writer, node, i);
      if (value == nullptr || value->form != Form::scores) continue;
      OnnxValue scores = *value;
      const FixedValue* mask = fixed_value(writer, node, 0);
      scores.causal |= mask != nullptr && mask->triangular;
      return set_form(writer, node, scores, Form::scores);
    }
    refuse_form(writer, node);
  }
  if (node.input_size() != 2) {
    if (node.op_type() != "Sum") refuse_node(writer.graph, node, "expected two inputs");
    return add_layer(writer, node, "kind: add", node.input_size());
  }
  for (const int i : {0, 1})
    if (find_value(writer, node, i) == nullptr) return add_with_fixed(writer, node, i);
  add_two(writer, node);
}

void add_function(OnnxWriter& writer, const OnnxNode& node) {
  OnnxValue value = value_of(writer, node, 0);
  const std::string& type = node.op_type();
  if (type == "Sqrt" && value.form == Form::deviation) return set_form(writer, node, value, Form::deviation);
  if (type == "IsNaN" && value.form == Form::scores) return set_form(writer, node, value, Form::scores);
  if (type == "Erf" && is_whole_layer(value)) {
    value.bent = true;
    return set_form(writer, node, value, Form::curve);
  }
  if (type != "Tanh") refuse_form(writer, node);
  if (value.form != Form::curve) return add_layer(writer, node, "kind: tanh");
  value.bent = true;
  set_form(writer, node, value, Form::curve);
}

void add_softmax(OnnxWriter& writer, const OnnxNode& node) {
  const OnnxValue value = value_of(writer, node, 0);
  if (value.form == Form::scores) return set_form(writer, node, value, Form::scores);
  if (!is_last(writer, node)) refuse_node(writer.graph, node, "stands before other nodes, not at the end");
  add_loss(writer, "softmax_cross_entropy", layer_of(writer, node, 0));
  writer.values[node.output(0)] = {};
}

void add_sigmoid(OnnxWriter& writer, const OnnxNode& node) {
  if (!is_last(writer, node)) return add_layer(writer, node, "kind: sigmoid");
  add_loss(writer, "sigmoid_cross_entropy", layer_of(writer, node, 0));
  writer.values[node.output(0)] = {};
}

/// ReduceMean: an average over all positions, or a part of layer norm.
void add_mean(OnnxWriter& writer, const OnnxNode& node) {
  const OnnxValue value = value_of(writer, node, 0);
  const std::vector<std::int64_t> axes = integers(node, "axes", 0, 0);
  if (value.form == Form::square) return set_form(writer, node, value, Form::deviation);
  const Shape shape = shape_of(writer, node, node.input(0));
  const std::int64_t rank = shape.size();
  if (axes.size() == 1 && is_whole_layer(value) && (axes[0] == -1 || axes[0] == rank)) {
    const std::string layer = layer_of(writer, node, 0);
    writer.values[node.output(0)] = {.form = Form::mean, .layer = layer};
    return;
  }
  bool positions = rank > 1 && std::ssize(axes) == rank - 1;
  for (const std::int64_t axis : axes) positions &= axis > 1 || (axis < 0 && axis >= 1 - rank);
  if (!positions)
    refuse_node(writer.graph, node, "expected the mean over all positions, or over the last size");
  Shape averages(shape.size(), 1);
  averages.front() = shape.front();
  append_layer(writer, node,
               fmt::format("kind: average_pool, kernel: {}", list({shape.begin() + 1, shape.end()})),
               {layer_of(writer, node, 0)}, averages);
  writer.values[node.output(0)].view = node.name().empty() ? node.op_type() : node.name();
}

}  // namespace stepcast
