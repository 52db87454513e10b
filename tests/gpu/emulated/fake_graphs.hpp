#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "fake_cudnn.hpp"

/// Objects of the fake of cuDNN's graph API.
namespace stepcast::fake {

using Name = cudnnBackendAttributeName_t;

struct Item {
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  std::map<Name, std::string> values = {};  ///< bytes of each attribute

  template <class Value>
  std::vector<Value> all(Name name) const {
    const auto found = values.find(name);
    if (found == values.end()) return {};
    std::vector<Value> list(found->second.size() / sizeof(Value));
    std::memcpy(list.data(), found->second.data(), found->second.size());
    return list;
  }
  template <class Value>
  Value one(Name name) const {
    const auto list = all<Value>(name);
    return list.empty() ? Value{} : list.front();
  }
  const Item& object(Name name) const { return *static_cast<const Item*>(one<void*>(name)); }
  bool has(Name name) const { return values.contains(name); }
};

inline Sizes narrow(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}
inline Tensor tensor_of(const Item& one) {
  return {one.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE),
          narrow(one.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
          narrow(one.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES))};
}
inline std::int64_t number_of(const Item& tensor) {
  return tensor.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
}

/// The memory of a tensor in a pack, null if the pack lacks it.
void* memory_of(const Item& tensor, const Item& pack);

/// True if the fake takes the products of an attention layer on these operations: 2 bytes, whole packs.
bool takes_attention(const std::vector<const Item*>& operations);
/// Starts products, functions, reductions and transpositions, in the order of the list.
cudnnStatus_t start_operations(cudnnHandle_t handle, const std::vector<const Item*>& operations,
                               const Item& pack);

}  // namespace stepcast::fake
