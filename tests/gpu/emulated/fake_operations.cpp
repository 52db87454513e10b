#include <cmath>
#include <memory>

#include "fake_graphs.hpp"
#include "fake_streams.hpp"

// Operations of the fake graph API on matrices {sample, head, row, column}: products, functions of elements,
// reductions of rows and transpositions, in double precision, rounded to the types of tensors.

namespace stepcast::fake {
namespace {

/// A tensor with its elements: in memory, or in a buffer where it exists only inside of kernels.
struct Operand {
  std::int64_t number = 0;
  Tensor tensor;
  void* memory = nullptr;
  bool inside = false;
  double value = 0;  ///< where it is passed by value
  bool by_value = false;
};

struct Step {
  cudnnBackendDescriptorType_t type{};
  int how = 0;  ///< function or reduction
  std::int64_t axis = 0;
  std::vector<Operand> in;
  Operand out;
};

using Buffers = std::map<std::int64_t, std::shared_ptr<std::vector<double>>>;

Operand operand(const Item& item, const Item& pack) {
  Operand one{number_of(item), tensor_of(item)};
  one.inside = item.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  one.by_value = item.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  if (one.inside) return one;
  one.memory = memory_of(item, pack);
  if (one.by_value && one.memory != nullptr) one.value = *static_cast<const float*>(one.memory);
  return one;
}

double rounded(cudnnDataType_t type, double value) {
  if (type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16) return value;
  std::uint16_t bits = 0;
  fake::write(cuda_type(type), &bits, std::int64_t{0}, value);
  return fake::read(cuda_type(type), &bits, std::int64_t{0});
}

/// The place of an element; a tensor with one element along a side has it at every place of that side.
Sizes within(const Tensor& tensor, Sizes at) {
  for (std::size_t i = 0; i < at.size(); ++i)
    if (tensor.dims[i] == 1) at[i] = 0;
  return at;
}

/// Runs steps one after the other.
class Run {
 public:
  double load(const Operand& one, const Sizes& at) {
    if (one.by_value) return one.value;
    const std::int64_t place = one.tensor.at(within(one.tensor, at));
    if (const auto seen = views_.find(one.number); seen != views_.end())
      return read(seen->second.tensor, seen->second.memory, place);
    if (one.inside) return buffers_.at(one.number)->at(place);
    return read(one.tensor, one.memory, place);
  }
  void store(const Operand& one, const Sizes& at, double value) {
    const std::int64_t place = one.tensor.at(at);
    if (!one.inside) return write(one.tensor, one.memory, place, value);
    auto& buffer = buffers_[one.number];
    if (buffer == nullptr) buffer = std::make_shared<std::vector<double>>(elements(one.tensor));
    buffer->at(place) = rounded(one.tensor.type, value);
  }
  /// The same elements under other strides.
  void see(const Operand& from, const Operand& as) {
    if (from.inside) {
      buffers_[as.number] = buffers_.at(from.number);
    } else {
      views_.emplace(as.number, from);
    }
  }

 private:
  static std::size_t elements(const Tensor& tensor) {
    std::size_t count = 1;
    for (const int size : tensor.dims) count *= size;
    return count;
  }

  Buffers buffers_;
  std::map<std::int64_t, Operand> views_;
};

void multiply(Run& run, const Step& step) {
  const int depth = step.in[0].tensor.dims[3];
  for_each(step.out.tensor.dims, [&](const Sizes& at) {
    double sum = 0;
    for (int k = 0; k < depth; ++k)
      sum += run.load(step.in[0], {at[0], at[1], at[2], k}) * run.load(step.in[1], {at[0], at[1], k, at[3]});
    run.store(step.out, at, sum);
  });
}

void reduce(Run& run, const Step& step) {
  for_each(step.out.tensor.dims, [&](const Sizes& at) {
    const bool most = step.how == CUDNN_REDUCE_TENSOR_MAX;
    double found = most ? -HUGE_VAL : 0;
    for (int k = 0; k < step.in[0].tensor.dims[3]; ++k) {
      const double value = run.load(step.in[0], {at[0], at[1], at[2], k});
      found = most ? std::max(found, value) : found + value;
    }
    run.store(step.out, at, found);
  });
}

double function(const Step& step, const std::vector<double>& v, const Sizes& at) {
  switch (step.how) {
    case CUDNN_POINTWISE_MUL:
      return v[0] * v[1];
    case CUDNN_POINTWISE_SUB:
      return v[0] - v[1];
    case CUDNN_POINTWISE_ADD:
      return v[0] + v[1];
    case CUDNN_POINTWISE_DIV:
      return v[0] / v[1];
    case CUDNN_POINTWISE_EXP:
      return std::exp(v[0]);
    case CUDNN_POINTWISE_LOG:
      return std::log(v[0]);
    case CUDNN_POINTWISE_GEN_INDEX:
      return at[step.axis];
    case CUDNN_POINTWISE_CMP_GE:
      return v[0] >= v[1] ? 1 : 0;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return v[2] != 0 ? v[0] : v[1];
    default:
      return NAN;
  }
}

void apply(Run& run, const Step& step) {
  for_each(step.out.tensor.dims, [&](const Sizes& at) {
    std::vector<double> values;
    if (step.how != CUDNN_POINTWISE_GEN_INDEX)
      for (const Operand& one : step.in) values.push_back(run.load(one, at));
    run.store(step.out, at, function(step, values, at));
  });
}

void execute(Run& run, const Step& step) {
  if (step.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) return multiply(run, step);
  if (step.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) return reduce(run, step);
  if (step.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) return run.see(step.in[0], step.out);
  apply(run, step);
}

Step step_of(const Item& operation, const Item& pack) {
  Step step;
  step.type = operation.type;
  const auto take = [&](std::initializer_list<Name> inputs, Name output) {
    for (const Name one : inputs)
      if (operation.has(one)) step.in.push_back(operand(operation.object(one), pack));
    step.out = operand(operation.object(output), pack);
  };
  if (operation.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
    take({CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
         CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  } else if (operation.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
    take({CUDNN_ATTR_OPERATION_REDUCTION_XDESC}, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    step.how = operation.object(CUDNN_ATTR_OPERATION_REDUCTION_DESC).one<int>(CUDNN_ATTR_REDUCTION_OPERATOR);
  } else if (operation.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
    take({CUDNN_ATTR_OPERATION_RESHAPE_XDESC}, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  } else {
    take({CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
          CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
         CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    const Item& function = operation.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    step.how = function.one<int>(CUDNN_ATTR_POINTWISE_MODE);
    step.axis = function.one<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
  }
  return step;
}

bool has_memory(const Step& step) {
  const auto good = [](const Operand& one) {
    return one.inside || (one.memory != nullptr &&
                          (one.by_value || reinterpret_cast<std::uintptr_t>(one.memory) % 16 == 0));
  };
  return good(step.out) && std::ranges::all_of(step.in, good);
}

}  // namespace

void* memory_of(const Item& tensor, const Item& pack) {
  const auto numbers = pack.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto found = std::ranges::find(numbers, number_of(tensor));
  const std::size_t at = found - numbers.begin();
  return at < pointers.size() ? pointers[at] : nullptr;
}

bool takes_attention(const std::vector<const Item*>& operations) {
  const auto product = std::ranges::find(operations, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, &Item::type);
  if (product == operations.end()) return false;
  const Tensor q = tensor_of((*product)->object(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
  return q.type != CUDNN_DATA_FLOAT && q.dims[3] % 8 == 0;
}

cudnnStatus_t start_operations(cudnnHandle_t handle, const std::vector<const Item*>& operations,
                               const Item& pack) {
  std::vector<Step> steps;
  for (const Item* one : operations) steps.push_back(step_of(*one, pack));
  if (!std::ranges::all_of(steps, has_memory)) return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(handle, [steps] {
    Run run;
    for (const Step& step : steps) execute(run, step);
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace stepcast::fake
