#include "kernels/cudnn/layers/fused_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "kernels/cudnn/runtime/tensor.hpp"

namespace stepcast::cudnn {
namespace {

// Numbers of the tensors in memory, and of the numbers that are passed by value.
constexpr std::int64_t kQ = 1, kK = 2, kV = 3, kResult = 4, kLogarithms = 5, kScale = 6, kLeast = 7, kOne = 8,
                       kResultGradient = 9, kGradientOfQ = 10, kGradientOfK = 11, kGradientOfV = 12,
                       kFirstInside = 100;

constexpr float kLeastScore = std::numeric_limits<float>::lowest();
constexpr float kUnit = 1;

/// The last two dimensions exchanged.
GraphTensor transposed(GraphTensor tensor) {
  std::swap(tensor.sizes[2], tensor.sizes[3]);
  std::swap(tensor.strides[2], tensor.strides[3]);
  return tensor;
}

/// A list of operations. Each function adds one, and returns its result, which exists only inside of kernels
/// unless it is given.
class Operations {
 public:
  explicit Operations(const AttentionSizes& sizes) : s_(sizes) {}

  std::vector<GraphObject> list() { return std::move(list_); }

  /// One matrix of rows for each sample and head, in rows that hold `parts` of them side by side.
  GraphTensor rows(std::int64_t number, std::int64_t parts) const {
    const std::int64_t width = parts * s_.heads * s_.size;
    return {
        number, s_.type, {s_.batch, s_.heads, s_.tokens, s_.size}, {s_.tokens * width, s_.size, width, 1}};
  }
  GraphTensor logarithms() const { return column(kLogarithms); }
  static GraphTensor number(std::int64_t number) {
    return {number, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, GraphTensor::Place::value};
  }

  GraphTensor matmul(const GraphTensor& a, const GraphTensor& b, const std::optional<GraphTensor>& to = {}) {
    GraphObject product(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    product.set_one(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .finalize("cudnnBackendFinalize of a product");
    const GraphTensor c = to ? *to : inside({s_.batch, s_.heads, a.sizes[2], b.sizes[3]});
    GraphObject operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, std::vector{object(a)})
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, std::vector{object(b)})
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, std::vector{object(c)})
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, std::vector{product});
    add(operation);
    return c;
  }

  GraphTensor multiply(const GraphTensor& x, const GraphTensor& y) {
    return pointwise(CUDNN_POINTWISE_MUL, {x, y}, inside(x.sizes));
  }
  GraphTensor subtract(const GraphTensor& x, const GraphTensor& y) {
    return pointwise(CUDNN_POINTWISE_SUB, {x, y}, inside(x.sizes));
  }
  GraphTensor exponential(const GraphTensor& x, cudnnDataType_t type) {
    return pointwise(CUDNN_POINTWISE_EXP, {x}, inside(x.sizes, type));
  }
  /// x / y in the type of the tensors in memory.
  GraphTensor divide(const GraphTensor& x, const GraphTensor& y) {
    return pointwise(CUDNN_POINTWISE_DIV, {x, y}, inside(x.sizes, s_.type));
  }
  /// log(sum) + most, in memory.
  void keep_logarithms(const GraphTensor& most, const GraphTensor& sum) {
    const GraphTensor log = pointwise(CUDNN_POINTWISE_LOG, {sum}, inside(sum.sizes));
    pointwise(CUDNN_POINTWISE_ADD, {most, log}, logarithms());
  }
  /// One number for each row.
  GraphTensor reduce(cudnnReduceTensorOp_t how, const GraphTensor& x) {
    GraphObject reduction(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    reduction.set_one(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, how)
        .set_one(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
        .finalize("cudnnBackendFinalize of a reduction");
    const GraphTensor y = inside({s_.batch, s_.heads, s_.tokens, 1});
    GraphObject operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, std::vector{object(x)})
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, std::vector{object(y)})
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, std::vector{reduction});
    add(operation);
    return y;
  }
  /// The same elements seen as the transposed matrix.
  GraphTensor transpose(const GraphTensor& x) {
    GraphTensor y = transposed(x);
    y.number = next_++;
    y.place = GraphTensor::Place::inside;
    GraphObject operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, std::vector{object(x)})
        .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, std::vector{object(y)});
    add(operation);
    return y;
  }

  /// Q K^T / sqrt(size), in causal layers with the least number for tokens that come later.
  GraphTensor scores() {
    const GraphTensor all = multiply(matmul(rows(kQ, 3), transposed(rows(kK, 3))), number(kScale));
    if (!s_.causal) return all;
    const GraphTensor row = index(all, 2), column = index(all, 3);
    const GraphTensor seen = pointwise(CUDNN_POINTWISE_CMP_GE, {row, column},
                                       inside(all.sizes, CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
    return pointwise(CUDNN_POINTWISE_BINARY_SELECT, {all, number(kLeast), seen}, inside(all.sizes));
  }

 private:
  GraphTensor inside(const std::vector<std::int64_t>& sizes, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return {next_++, type, sizes, strides_of(sizes, Order::row_major), GraphTensor::Place::inside};
  }
  GraphTensor column(std::int64_t number) const {
    const std::vector<std::int64_t> sizes{s_.batch, s_.heads, s_.tokens, 1};
    return {number, CUDNN_DATA_FLOAT, sizes, strides_of(sizes, Order::row_major)};
  }

  GraphTensor index(const GraphTensor& like, std::int64_t axis) {
    return pointwise(CUDNN_POINTWISE_GEN_INDEX, {like}, inside(like.sizes, CUDNN_DATA_INT32),
                     CUDNN_DATA_INT32, axis);
  }

  GraphTensor pointwise(cudnnPointwiseMode_t mode, const std::vector<GraphTensor>& inputs,
                        const GraphTensor& to, cudnnDataType_t computed_as = CUDNN_DATA_FLOAT,
                        std::int64_t axis = -1) {
    constexpr std::array kInputs{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                 CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
    GraphObject function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    function.set_one(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
        .set_one(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, computed_as);
    if (axis >= 0) function.set(CUDNN_ATTR_POINTWISE_AXIS, std::vector{axis});
    function.finalize("cudnnBackendFinalize of a function");
    GraphObject operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, std::vector{function});
    for (std::size_t i = 0; i < inputs.size(); ++i)
      operation.set(kInputs.at(i), std::vector{object(inputs[i])});
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, std::vector{object(to)});
    add(operation);
    return to;
  }

  GraphObject object(const GraphTensor& tensor) {
    const auto known = objects_.find(tensor.number);
    return known != objects_.end() ? known->second
                                   : objects_.emplace(tensor.number, made(tensor)).first->second;
  }
  void add(GraphObject& operation) {
    list_.push_back(operation.finalize("cudnnBackendFinalize of an operation"));
  }

  AttentionSizes s_;
  std::int64_t next_ = kFirstInside;
  std::map<std::int64_t, GraphObject> objects_;
  std::vector<GraphObject> list_;
};

/// The first plan that can run within the workspace. @throws GpuError if there is none
GraphPlan first_plan(const Device& device, const std::vector<GraphObject>& operations) {
  const PlanTarget target{device.dnn.get()};
  std::string cause = "no engine";
  for (const GraphEngine& engine : engines_for(operations, target)) {
    try {
      GraphPlan plan(engine, target);
      if (plan.workspace() <= device.workspace.bytes) return plan;
      cause = "too large a workspace";
    } catch (const GpuError& error) {
      cause = error.what();
    }
  }
  throw GpuError(cause);
}

}  // namespace

std::vector<GraphObject> attention_forward(const AttentionSizes& sizes) {
  Operations o(sizes);
  const GraphTensor scores = o.scores();
  const GraphTensor most = o.reduce(CUDNN_REDUCE_TENSOR_MAX, scores);
  const GraphTensor powers = o.exponential(o.subtract(scores, most), CUDNN_DATA_FLOAT);
  const GraphTensor sums = o.reduce(CUDNN_REDUCE_TENSOR_ADD, powers);
  o.keep_logarithms(most, sums);
  o.matmul(o.divide(powers, sums), o.rows(kV, 3), o.rows(kResult, 1));
  return o.list();
}

/// With P the probabilities and D = dy V^T: dV = P^T dy, dS = P (D - rows' sums of dy y) / sqrt(size),
/// dQ = dS K, dK = dS^T Q.
std::vector<GraphObject> attention_backward(const AttentionSizes& sizes) {
  Operations o(sizes);
  const GraphTensor dy = o.rows(kResultGradient, 1), one = Operations::number(kOne);
  // The engines know the factors of dropout, which are 1 here.
  const GraphTensor sums =
      o.multiply(o.reduce(CUDNN_REDUCE_TENSOR_ADD, o.multiply(dy, o.rows(kResult, 1))), one);
  const GraphTensor p = o.exponential(o.subtract(o.scores(), o.logarithms()), sizes.type);
  o.matmul(o.transpose(p), dy, o.rows(kGradientOfV, 3));
  const GraphTensor d = o.multiply(o.matmul(dy, transposed(o.rows(kV, 3))), one);
  const GraphTensor ds = o.multiply(o.multiply(o.subtract(d, sums), p), Operations::number(kScale));
  o.matmul(o.transpose(ds), o.rows(kQ, 3), o.rows(kGradientOfK, 3));
  o.matmul(ds, o.transpose(transposed(o.rows(kK, 3))), o.rows(kGradientOfQ, 3));
  return o.list();
}

FusedAttention::FusedAttention(const AttentionSizes& sizes, GraphPlan forward, GraphPlan backward)
    : sizes_(sizes),
      forward_(std::move(forward)),
      backward_(std::move(backward)),
      scale_(1 / std::sqrt(static_cast<float>(sizes.size))) {}

std::unique_ptr<FusedAttention> FusedAttention::make(Device& device, const AttentionSizes& sizes,
                                                     std::string& why) {
  try {
    GraphPlan forward = first_plan(device, attention_forward(sizes)),
              backward = first_plan(device, attention_backward(sizes));
    device.workspace.use(std::max(forward.workspace(), backward.workspace()));
    return std::unique_ptr<FusedAttention>(
        new FusedAttention(sizes, std::move(forward), std::move(backward)));
  } catch (const GpuError& error) {
    why = error.what();
    return nullptr;
  }
}

const void* FusedAttention::part(const void* qkv, std::int64_t which) const {
  constexpr std::int64_t kBytes = 2;
  return static_cast<const char*>(qkv) + which * sizes_.heads * sizes_.size * kBytes;
}

std::string FusedAttention::name() const {
  return fmt::format("forward ENGINE_{}, backward ENGINE_{}", forward_.engine().number,
                     backward_.engine().number);
}

/// Tensors that both passes read.
std::vector<std::pair<std::int64_t, const void*>> FusedAttention::inputs(const void* qkv) const {
  std::vector<std::pair<std::int64_t, const void*>> arrays{
      {kQ, qkv}, {kK, part(qkv, 1)}, {kV, part(qkv, 2)}, {kScale, &scale_}};
  if (sizes_.causal) arrays.emplace_back(kLeast, &kLeastScore);
  return arrays;
}

void FusedAttention::forward(const Device& device, const void* qkv, void* y, float* logarithms) const {
  auto arrays = inputs(qkv);
  arrays.insert(arrays.end(), {{kResult, y}, {kLogarithms, logarithms}});
  forward_.run(device.dnn.get(), arrays, device.workspace.data());
}

void FusedAttention::backward(const Device& device, const Gradients& given) const {
  auto arrays = inputs(given.qkv);
  arrays.insert(arrays.end(), {{kResult, given.y},
                               {kLogarithms, given.logarithms},
                               {kOne, &kUnit},
                               {kResultGradient, given.dy},
                               {kGradientOfQ, given.dqkv},
                               {kGradientOfK, part(given.dqkv, 1)},
                               {kGradientOfV, part(given.dqkv, 2)}});
  backward_.run(device.dnn.get(), arrays, device.workspace.data());
}

}  // namespace stepcast::cudnn
