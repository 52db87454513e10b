#include "fake_graphs.hpp"

// Fakes of cuDNN's graph API for graphs of one convolution or of an attention layer: objects that check what
// they are given, engines of which some must not be taken, and plans, which run the fakes of the older calls
// or fake_operations.cpp.

using namespace stepcast::fake;

namespace {

Item& item(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Item*>(descriptor);
}

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

/// The attributes of a pass in the order x, w, y, window.
struct PassNames {
  Name x, w, y, window;
};
PassNames names_of(const Item& operation) {
  switch (operation.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC};
    default:
      return {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC};
  }
}

/// The attributes that an object cannot be without.
std::vector<Name> needs_of(const Item& one) {
  switch (one.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT,
              CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_ATTR_TENSOR_STRIDES};
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,  CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
              CUDNN_ATTR_CONVOLUTION_CONV_MODE,     CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
              CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_ATTR_CONVOLUTION_DILATIONS,
              CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES};
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
      return {CUDNN_ATTR_MATMUL_COMP_TYPE};
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return {CUDNN_ATTR_POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MATH_PREC};
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
      return {CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_ATTR_REDUCTION_COMP_TYPE};
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
              CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_ATTR_OPERATION_MATMUL_DESC};
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
              CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
              CUDNN_ATTR_OPERATION_REDUCTION_DESC};
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC};
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_ATTR_OPERATIONGRAPH_HANDLE};
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_ATTR_ENGINEHEUR_MODE};
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_HANDLE};
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
              CUDNN_ATTR_VARIANT_PACK_WORKSPACE};
    default: {
      const PassNames names = names_of(one);
      return {names.x, names.w, names.y, names.window};
    }
  }
}

/// Engines of the fake heuristics.
enum Engine : std::int64_t { kRefuses = 10, kOnTensorCores, kRounds, kNeedsTooMuch, kWorks };

std::vector<const Item*> operations_of(const Item& graph) {
  return graph.all<const Item*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

bool is_convolution(const Item& operation) {
  return operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

/// The heuristic of mode A knows engines for convolutions of stride 1 and for attention, and its fallback
/// none.
std::vector<std::int64_t> engines_of(const Item& heuristic) {
  if (heuristic.one<int>(CUDNN_ATTR_ENGINEHEUR_MODE) != CUDNN_HEUR_MODE_A) return {};
  const auto operations = operations_of(heuristic.object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  const Item& first = *operations.front();
  if (!is_convolution(first))
    return takes_attention(operations) ? std::vector<std::int64_t>{kRefuses, kWorks}
                                       : std::vector<std::int64_t>{};
  const auto strides =
      first.object(names_of(first).window).all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  if (!std::ranges::all_of(strides, [](std::int64_t one) { return one == 1; })) return {};
  return {kRefuses, kOnTensorCores, kRounds, kNeedsTooMuch, kWorks};
}

std::int64_t engine_number(const Item& engine) {
  return engine.one<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
}

void put(Item& one, Name name, const void* value, std::size_t bytes) {
  one.values[name] = std::string(static_cast<const char*>(value), bytes);
}

/// Fills the engine configurations that the caller made.
void fill_settings(const Item& heuristic, std::int64_t count, void* const* made) {
  const void* graph = heuristic.one<void*>(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const auto engines = engines_of(heuristic);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto number = engines.at(i);
    Item& settings = item(made[i]);
    put(settings, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &number, sizeof number);
    put(settings, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &graph, sizeof graph);
    settings.is_final = true;
  }
}

/// Starts a pass of a convolution.
cudnnStatus_t start_convolution(cudnnHandle_t handle, const Item& operation, const Item& pack) {
  const PassNames names = names_of(operation);
  const Item& window = operation.object(names.window);
  Tensor x = tensor_of(operation.object(names.x)), w = tensor_of(operation.object(names.w)),
         y = tensor_of(operation.object(names.y));
  Convolution c{narrow(window.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)),
                narrow(window.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)),
                narrow(window.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS)),
                CUDNN_FMA_MATH,
                x.dims[1] / w.dims[1],
                true};
  const auto as = [](auto& one) { return reinterpret_cast<cudnnTensorDescriptor_t>(&one); };
  auto* const filter = reinterpret_cast<cudnnFilterDescriptor_t>(&w);
  auto* const convolution = reinterpret_cast<cudnnConvolutionDescriptor_t>(&c);
  void *in = memory_of(operation.object(names.x), pack), *taps = memory_of(operation.object(names.w), pack),
       *out = memory_of(operation.object(names.y), pack);
  void* const work = pack.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
    return cudnnConvolutionForward(handle, nullptr, as(x), in, filter, taps, convolution,
                                   CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, work, 8192, nullptr,
                                   as(y), out);
  if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
    return cudnnConvolutionBackwardData(handle, nullptr, filter, taps, as(y), out, convolution,
                                        CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, work, 8192, nullptr, as(x), in);
  return cudnnConvolutionBackwardFilter(handle, nullptr, as(x), in, as(y), out, convolution,
                                        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, work, 8192, nullptr, filter,
                                        taps);
}

}  // namespace

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* made) {
  *made = new Item{type};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t one) {
  delete &item(one);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t one, Name name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  if (item(one).is_final || count < 1) return CUDNN_STATUS_BAD_PARAM;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (std::int64_t i = 0; i < count; ++i)
      if (!item(static_cast<void* const*>(values)[i]).is_final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  }
  put(item(one), name, values, count * bytes_of(type));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t one) {
  for (const Name name : needs_of(item(one)))
    if (!item(one).has(name)) return CUDNN_STATUS_BAD_PARAM;
  if (item(one).type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
      engine_number(item(one).object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)) == kRefuses)
    return CUDNN_STATUS_NOT_SUPPORTED;
  item(one).is_final = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const one, Name name,
                                       cudnnBackendAttributeType_t, std::int64_t asked, std::int64_t* count,
                                       void* values) {
  const Item& from = item(one);
  const auto give = [&](const auto& value) {
    std::memcpy(values, &value, sizeof value);
    *count = 1;
  };
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *count = engines_of(from).size();
    if (values != nullptr) fill_settings(from, std::min(asked, *count), static_cast<void* const*>(values));
  } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    *count = 1;
    if (values != nullptr) item(*static_cast<void**>(values)).values = from.values;
  } else if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) {
    give(engine_number(from));
  } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    *count = 0;
    if (engine_number(from) == kOnTensorCores) give(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    if (engine_number(from) == kRounds) give(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    const bool much = engine_number(from.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)) == kNeedsTooMuch;
    give(much ? std::int64_t{1} << 40 : std::int64_t{8192});
  } else {
    return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t arrays) {
  if (!item(plan).is_final || !item(arrays).is_final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  const Item& settings = item(plan).object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const auto operations = operations_of(settings.object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  return is_convolution(*operations.front()) ? start_convolution(handle, *operations.front(), item(arrays))
                                             : start_operations(handle, operations, item(arrays));
}
