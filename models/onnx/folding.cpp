#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>

#include "models/onnx/graph.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostNumbers = 64;  // of a list that is read or computed
constexpr double kLargest = 1e15;         // absolute value that is computed

using Numbers = OnnxNumbers;
using Folded = std::optional<Numbers>;

const Numbers* known(const OnnxGraph& graph, const OnnxNode& node, int index) {
  if (!has_input(node, index)) return nullptr;
  const auto found = graph.numbers.find(node.input(index));
  return found == graph.numbers.end() ? nullptr : &found->second;
}

/// The value at a position, which counts from the end if it is negative.
std::optional<std::int64_t> element(const Numbers& numbers, std::int64_t position) {
  const std::int64_t size = numbers.values.size();
  if (position < 0) position += size;
  if (position < 0 || position >= size) return std::nullopt;
  return numbers.values[position];
}

Folded same(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers* input = known(graph, node, 0);
  return input == nullptr ? Folded{} : *input;
}

Folded cast(const OnnxGraph& graph, const OnnxNode& node) {
  const std::int64_t to = integer(node, "to", 0);
  const bool integers = to == onnx::TensorProto::INT64 || to == onnx::TensorProto::INT32;
  return integers ? same(graph, node) : Folded{};
}

/// The values from `begin` to `end` in steps, as Python counts them.
Numbers sliced(const Numbers& numbers, std::int64_t begin, std::int64_t end, std::int64_t step) {
  const std::int64_t size = numbers.values.size();
  const auto place = [size](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? std::max(at, -size) + size : at, 0, size);
  };
  Numbers result;
  for (std::int64_t i = place(begin); i < place(end); i += std::min(step, size))
    result.values.push_back(numbers.values[i]);
  return result;
}

Folded shape(const OnnxGraph& graph, const OnnxNode& node) {
  const auto found = graph.whole_shapes.find(node.input(0));
  if (found == graph.whole_shapes.end() || found->second.empty()) return {};
  return sliced({false, found->second}, integer(node, "start", 0), integer(node, "end", INT64_MAX), 1);
}

Folded gather(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers *data = known(graph, node, 0), *indices = known(graph, node, 1);
  if (data == nullptr || indices == nullptr || data->scalar || integer(node, "axis", 0) > 0) return {};
  Numbers result{indices->scalar, {}};
  for (const std::int64_t index : indices->values) {
    const auto value = element(*data, index);
    if (!value) return {};
    result.values.push_back(*value);
  }
  return result;
}

/// An attribute with one number, or an input, which replaced it in later versions of ONNX.
std::optional<std::int64_t> one_number(const OnnxGraph& graph, const OnnxNode& node, int index,
                                       const char* name, std::optional<std::int64_t> otherwise) {
  const auto* old = attribute(node, name);
  if (old != nullptr) return old->ints_size() == 1 ? std::optional(old->ints(0)) : std::nullopt;
  if (!has_input(node, index)) return otherwise;
  const Numbers* numbers = known(graph, node, index);
  return numbers == nullptr || numbers->values.size() != 1 ? std::nullopt : element(*numbers, 0);
}

Folded slice(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers* data = known(graph, node, 0);
  const auto begin = one_number(graph, node, 1, "starts", {}), end = one_number(graph, node, 2, "ends", {});
  const auto axis = one_number(graph, node, 3, "axes", 0), step = one_number(graph, node, 4, "steps", 1);
  const bool whole = data != nullptr && !data->scalar && begin && end && axis && step;
  if (!whole || (*axis != 0 && *axis != -1) || *step < 1) return {};
  return sliced(*data, *begin, *end, *step);
}

Folded concatenate(const OnnxGraph& graph, const OnnxNode& node) {
  Numbers result;
  for (int i = 0; i < node.input_size(); ++i) {
    const Numbers* part = known(graph, node, i);
    if (part == nullptr || part->scalar) return {};
    result.values.insert(result.values.end(), part->values.begin(), part->values.end());
    if (result.values.size() > kMostNumbers) return {};
  }
  return result;
}

Folded unsqueeze(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers* input = known(graph, node, 0);
  return input == nullptr || !input->scalar ? Folded{} : Numbers{false, input->values};
}

Folded squeeze(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers* input = known(graph, node, 0);
  return input == nullptr || input->values.size() != 1 ? Folded{} : Numbers{true, input->values};
}

/// To a list, or of one number to a scalar.
Folded reshape(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers *input = known(graph, node, 0), *sizes = known(graph, node, 1);
  if (input == nullptr || sizes == nullptr || sizes->values.size() > 1) return {};
  const std::int64_t size = input->values.size();
  const bool scalar = sizes->values.empty();
  const bool fits = scalar ? size == 1 : sizes->values[0] == -1 || sizes->values[0] == size;
  return fits ? Numbers{scalar, input->values} : Folded{};
}

Folded product(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers* input = known(graph, node, 0);
  if (input == nullptr) return {};
  double result = 1;
  for (const std::int64_t value : input->values) result *= value;
  if (std::abs(result) > kLargest) return {};
  return Numbers{integer(node, "keepdims", 1) == 0, {static_cast<std::int64_t>(result)}};
}

Folded constant_of_shape(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers* sizes = known(graph, node, 0);
  const auto* value = attribute(node, "value");
  if (sizes == nullptr || sizes->values.size() > 1 || value == nullptr) return {};
  const Folded filling = integers_of(value->t());
  const std::int64_t size = sizes->values.empty() ? 1 : sizes->values[0];
  if (!filling || filling->values.size() != 1 || size < 0 || size > static_cast<std::int64_t>(kMostNumbers))
    return {};
  return Numbers{sizes->values.empty(), std::vector<std::int64_t>(size, filling->values[0])};
}

/// A number of two; nothing where it is not defined or too large.
std::optional<std::int64_t> computed(const std::string& type, std::int64_t a, std::int64_t b) {
  if (type == "Equal") return a == b ? 1 : 0;
  if (std::max(std::abs(static_cast<double>(a)), std::abs(static_cast<double>(b))) > kLargest) return {};
  if (type == "Add") return a + b;
  if (type == "Sub") return a - b;
  if (type == "Div") return b == 0 ? std::nullopt : std::optional(a / b);
  const bool fits = std::abs(1.0 * a * b) <= kLargest;
  return fits ? std::optional(a * b) : std::nullopt;
}

/// The length that lists reach when those of one number are repeated; nothing if they do not fit.
std::optional<std::size_t> common_size(const std::vector<const Numbers*>& all) {
  std::size_t size = 1;
  for (const Numbers* one : all) {
    if (one == nullptr || one->values.empty()) return {};
    if (one->values.size() > 1 && size > 1 && one->values.size() != size) return {};
    size = std::max(size, one->values.size());
  }
  return size;
}

std::int64_t repeated(const Numbers& numbers, std::size_t at) {
  return numbers.values[numbers.values.size() == 1 ? 0 : at];
}

Folded arithmetic(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers *a = known(graph, node, 0), *b = known(graph, node, 1);
  const auto size = common_size({a, b});
  if (!size || node.input_size() != 2) return {};
  Numbers result{a->scalar && b->scalar, {}};
  for (std::size_t i = 0; i < *size; ++i) {
    const auto value = computed(node.op_type(), repeated(*a, i), repeated(*b, i));
    if (!value) return {};
    result.values.push_back(*value);
  }
  return result;
}

Folded where(const OnnxGraph& graph, const OnnxNode& node) {
  const Numbers *which = known(graph, node, 0), *a = known(graph, node, 1), *b = known(graph, node, 2);
  const auto size = common_size({which, a, b});
  if (!size) return {};
  Numbers result{which->scalar && a->scalar && b->scalar, {}};
  for (std::size_t i = 0; i < *size; ++i)
    result.values.push_back(repeated(repeated(*which, i) != 0 ? *a : *b, i));
  return result;
}

}  // namespace

std::optional<OnnxNumbers> integers_of(const onnx::TensorProto& tensor) {
  if (tensor.data_type() != onnx::TensorProto::INT64 || tensor.dims_size() > 1) return {};
  OnnxNumbers numbers{tensor.dims_size() == 0, {tensor.int64_data().begin(), tensor.int64_data().end()}};
  const std::string& bytes = tensor.raw_data();
  const std::size_t size = numbers.scalar ? 1 : tensor.dims(0);
  if (size > kMostNumbers) return {};
  if (numbers.values.empty() && bytes.size() == size * sizeof(std::int64_t)) {
    numbers.values.resize(size);
    if (size > 0) std::memcpy(numbers.values.data(), bytes.data(), bytes.size());
  }
  if (numbers.values.size() != size) return {};
  return numbers;
}

std::optional<OnnxNumbers> folded(const OnnxGraph& graph, const onnx::NodeProto& node) {
  using Fold = Folded (*)(const OnnxGraph&, const OnnxNode&);
  static const std::map<std::string, Fold> operators = {
      {"Shape", shape},        {"Gather", gather},       {"Slice", slice},
      {"Concat", concatenate}, {"Unsqueeze", unsqueeze}, {"Squeeze", squeeze},
      {"Reshape", reshape},    {"Identity", same},       {"Cast", cast},
      {"ReduceProd", product}, {"Where", where},         {"ConstantOfShape", constant_of_shape},
      {"Add", arithmetic},     {"Sub", arithmetic},      {"Mul", arithmetic},
      {"Div", arithmetic},     {"Equal", arithmetic}};
  const auto found = operators.find(node.op_type());
  if (found == operators.end() || node.input_size() == 0) return {};
  return found->second(graph, node);
}

}  // namespace stepcast
