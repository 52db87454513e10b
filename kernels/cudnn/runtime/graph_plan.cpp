#include "kernels/cudnn/runtime/graph_plan.hpp"

#include <algorithm>
#include <array>

namespace stepcast::cudnn {
namespace {

// Attributes since cuDNN 9.8, by their numbers, so that older headers suffice.
constexpr auto kHeuristicTarget = static_cast<cudnnBackendAttributeName_t>(204);
constexpr auto kPlanTarget = static_cast<cudnnBackendAttributeName_t>(407);

constexpr std::int64_t kAlignment = 16;  ///< of the tensors' memory [bytes], as the older calls want it

using Descriptor = Owned<cudnnBackendDescriptor_t, cudnnBackendDestroyDescriptor>;

/// Says for which GPU an object is made.
void aim(GraphObject& object, const PlanTarget& target, cudnnBackendAttributeName_t by_description,
         cudnnBackendAttributeName_t by_handle) {
  if (target.description != nullptr) {
    object.set(by_description, std::vector{*target.description});
  } else {
    object.set_one(by_handle, CUDNN_TYPE_HANDLE, target.handle);
  }
}

}  // namespace

struct GraphObject::State {
  Descriptor descriptor;
  std::vector<GraphObject> kept;
};

GraphObject::GraphObject(cudnnBackendDescriptorType_t type)
    : state_(std::make_shared<State>(State{
          make_owned<Descriptor>(
              [type](cudnnBackendDescriptor_t* made) { return cudnnBackendCreateDescriptor(type, made); },
              "cudnnBackendCreateDescriptor"),
          {}})) {}

void GraphObject::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(get(), name, type, count, values), "cudnnBackendSetAttribute");
}

GraphObject& GraphObject::set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values) {
  set_raw(name, CUDNN_TYPE_INT64, values.size(), values.data());
  return *this;
}

GraphObject& GraphObject::set(cudnnBackendAttributeName_t name, const std::vector<GraphObject>& objects) {
  std::vector<cudnnBackendDescriptor_t> descriptors;
  for (const GraphObject& one : objects) descriptors.push_back(one.get());
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, descriptors.size(), descriptors.data());
  for (const GraphObject& one : objects) keep(one);
  return *this;
}

void GraphObject::keep(const GraphObject& other) {
  state_->kept.push_back(other);
}

GraphObject& GraphObject::set(cudnnBackendAttributeName_t name, const std::vector<void*>& pointers) {
  set_raw(name, CUDNN_TYPE_VOID_PTR, pointers.size(), pointers.data());
  return *this;
}

GraphObject& GraphObject::set(cudnnBackendAttributeName_t name, const std::string& text) {
  set_raw(name, CUDNN_TYPE_CHAR, text.size(), text.data());
  return *this;
}

GraphObject& GraphObject::finalize(const char* what) {
  check(cudnnBackendFinalize(get()), what);
  return *this;
}

std::int64_t GraphObject::integer(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0, count = 0;
  check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_INT64, 1, &count, &value),
        "cudnnBackendGetAttribute");
  return value;
}

std::vector<GraphObject> GraphObject::objects(cudnnBackendAttributeName_t name,
                                              cudnnBackendDescriptorType_t type) const {
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        "cudnnBackendGetAttribute");
  std::vector<GraphObject> made;
  std::vector<cudnnBackendDescriptor_t> descriptors;
  for (std::int64_t i = 0; i < count; ++i) {
    made.emplace_back(type);
    descriptors.push_back(made.back().get());
  }
  if (count == 0) return made;
  check(
      cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, descriptors.data()),
      "cudnnBackendGetAttribute");
  made.resize(count, made.front());
  return made;
}

std::vector<cudnnBackendNumericalNote_t> GraphObject::numerical_notes() const {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  std::int64_t count = 0;
  check(cudnnBackendGetAttribute(get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 notes.size(), &count, notes.data()),
        "cudnnBackendGetAttribute");
  return {notes.begin(), notes.begin() + count};
}

cudnnBackendDescriptor_t GraphObject::get() const {
  return state_->descriptor.get();
}

GraphObject made(const GraphTensor& tensor) {
  GraphObject object(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  object.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, std::vector{tensor.number})
      .set_one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor.type)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::vector{kAlignment})
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, tensor.sizes)
      .set(CUDNN_ATTR_TENSOR_STRIDES, tensor.strides);
  if (tensor.place == GraphTensor::Place::inside)
    object.set_one(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  if (tensor.place == GraphTensor::Place::value)
    object.set_one(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  return object.finalize("cudnnBackendFinalize of a tensor");
}

bool GraphEngine::has(cudnnBackendNumericalNote_t note) const {
  return std::ranges::find(notes, note) != notes.end();
}

std::vector<GraphEngine> engines_for(const std::vector<GraphObject>& operations, const PlanTarget& target) {
  GraphObject graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations);
  if (target.description == nullptr)
    graph.set_one(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph.finalize("cudnnBackendFinalize of a graph");
  std::vector<GraphEngine> engines;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    GraphObject heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, std::vector{graph})
        .set_one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (target.description != nullptr) heuristic.set(kHeuristicTarget, std::vector{*target.description});
    heuristic.finalize("cudnnBackendFinalize of a heuristic");
    for (GraphObject& settings :
         heuristic.objects(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)) {
      settings.keep(graph);
      const auto engine = settings.objects(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      if (engine.empty()) continue;
      engines.push_back({settings, engine.front().integer(CUDNN_ATTR_ENGINE_GLOBAL_INDEX),
                         engine.front().numerical_notes()});
    }
  }
  return engines;
}

GraphPlan::GraphPlan(GraphEngine engine, const PlanTarget& target)
    : engine_(std::move(engine)), plan_(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
  plan_.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, std::vector{engine_.settings});
  aim(plan_, target, kPlanTarget, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  plan_.finalize("cudnnBackendFinalize of a plan");
  workspace_ = plan_.integer(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
}

void GraphPlan::run(cudnnHandle_t handle, const std::vector<std::pair<std::int64_t, const void*>>& arrays,
                    void* workspace) const {
  std::vector<std::int64_t> numbers;
  std::vector<void*> memory;
  for (const auto& [number, data] : arrays) {
    numbers.push_back(number);
    memory.push_back(const_cast<void*>(data));  // inputs, too, are void* in the API
  }
  GraphObject pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, memory)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, std::vector<void*>{workspace})
      .finalize("cudnnBackendFinalize of arrays");
  check(cudnnBackendExecute(handle, plan_.get(), pack.get()), "cudnnBackendExecute");
}

}  // namespace stepcast::cudnn
