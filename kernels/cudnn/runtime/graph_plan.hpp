#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cudnn/cuda/handles.hpp"

/// cuDNN's graph API: a graph of operations on tensors, the engines that can execute it, and plans, which are
/// engines that are made ready for one kind of GPU. Source: NVIDIA, cuDNN Backend API, cudnn_graph.h.
namespace stepcast::cudnn {

/// An object of the graph API, which keeps the objects that it was given. Copies are the same object.
class GraphObject {
 public:
  /// @throws GpuError, as all other functions do
  explicit GraphObject(cudnnBackendDescriptorType_t type);

  GraphObject& set(cudnnBackendAttributeName_t name, const std::vector<std::int64_t>& values);
  GraphObject& set(cudnnBackendAttributeName_t name, const std::vector<GraphObject>& objects);
  GraphObject& set(cudnnBackendAttributeName_t name, const std::vector<void*>& pointers);
  GraphObject& set(cudnnBackendAttributeName_t name, const std::string& text);
  template <class Value>
  GraphObject& set_one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const Value& value) {
    set_raw(name, type, 1, &value);
    return *this;
  }
  /// Keeps another object as long as this one.
  void keep(const GraphObject& other);
  /// Ends the making of the object. @param what  for the error
  GraphObject& finalize(const char* what);

  std::int64_t integer(cudnnBackendAttributeName_t name) const;
  /// The objects that an attribute lists.
  std::vector<GraphObject> objects(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type) const;
  std::vector<cudnnBackendNumericalNote_t> numerical_notes() const;
  cudnnBackendDescriptor_t get() const;

 private:
  struct State;

  void set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
               const void* values);

  std::shared_ptr<State> state_;
};

/// A tensor of a graph. Plans find its memory by its number.
struct GraphTensor {
  std::int64_t number = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<std::int64_t> sizes, strides;  ///< [elements]
  /// In the GPU's memory; inside of kernels alone; or a number of the host that is passed by value.
  enum class Place { memory, inside, value } place = Place::memory;
};
GraphObject made(const GraphTensor& tensor);

/// The GPU that plans are made for: that of a handle, or a description of one that need not be here, which
/// cuDNN takes from 9.8 on (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR).
struct PlanTarget {
  cudnnHandle_t handle = nullptr;
  const GraphObject* description = nullptr;  ///< null: the handle's GPU
};

/// An engine with its settings that may execute a graph.
struct GraphEngine {
  GraphObject settings;
  std::int64_t number = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;

  bool has(cudnnBackendNumericalNote_t note) const;
};

/// Engines for a graph of these operations, in the order of cuDNN's heuristic of mode A and then of its
/// fallback. Nothing is computed or timed.
std::vector<GraphEngine> engines_for(const std::vector<GraphObject>& operations, const PlanTarget& target);

/// An engine that is ready to run.
class GraphPlan {
 public:
  /// @throws GpuError if the engine cannot execute the graph on this GPU
  GraphPlan(GraphEngine engine, const PlanTarget& target);

  const GraphEngine& engine() const { return engine_; }
  std::size_t workspace() const { return workspace_; }  ///< [bytes]
  /// Starts the plan on the handle's stream. @param arrays  the number of each tensor, and its memory
  void run(cudnnHandle_t handle, const std::vector<std::pair<std::int64_t, const void*>>& arrays,
           void* workspace) const;

 private:
  GraphEngine engine_;
  GraphObject plan_;
  std::size_t workspace_ = 0;
};

}  // namespace stepcast::cudnn
