#pragma once

#include <memory>
#include <type_traits>

#include "kernels/cudnn/status.hpp"

namespace stepcast::cudnn {

/// A handle or descriptor of a C library that is destroyed with its owner. What `destroy` returns is dropped:
/// there is nobody left to tell.
template <class Handle, auto Destroy>
struct Destroyer {
  void operator()(Handle handle) const { static_cast<void>(Destroy(handle)); }
};
template <class Handle, auto Destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroyer<Handle, Destroy>>;

/// make_owned<Descriptor>(cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor")
template <class Owner, class Create>
Owner make_owned(const Create& create, const char* call) {
  typename Owner::pointer handle = nullptr;
  check(create(&handle), call);
  return Owner(handle);
}

using Stream = Owned<cudaStream_t, cudaStreamDestroy>;
using Event = Owned<cudaEvent_t, cudaEventDestroy>;

}  // namespace stepcast::cudnn
