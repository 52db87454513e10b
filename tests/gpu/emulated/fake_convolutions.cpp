#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>

#include "fake_cudnn.hpp"
#include "fake_streams.hpp"

// Fakes of cuDNN's convolutions: plain loops over the sizes in the descriptors, which are checked by cuDNN's
// rules. They replace the library's functions.

using namespace stepcast::fake;

void stepcast::fake::for_each(const Sizes& dims, const std::function<void(const Sizes&)>& visit) {
  Sizes at(dims.size(), 0);
  while (true) {
    visit(at);
    std::size_t i = dims.size();
    while (i > 0 && ++at[i - 1] == dims[i - 1]) at[--i] = 0;
    if (i == 0) return;
  }
}

namespace {

/// True if the sizes agree by the rules of cuDNN's manual.
bool agree(const Tensor& x, const Tensor& w, const Convolution& c, const Tensor& y) {
  if (x.dims[1] != w.dims[1] * c.groups || w.dims[0] % c.groups != 0) return false;
  if (y.dims[1] != w.dims[0] || x.dims[0] != y.dims[0]) return false;
  if (x.type != w.type || x.type != y.type) return false;
  if (!(c.by_graph ? has_one_layout(x, w, y) : has_algorithm(x, w, y))) return false;
  for (std::size_t d = 0; d < c.pad.size(); ++d) {
    const int left = x.dims[d + 2] + 2 * c.pad[d] - w.dims[d + 2];
    if (left < 0 || y.dims[d + 2] != left / c.stride[d] + 1 || c.dilation[d] != 1) return false;
  }
  return true;
}

/// Copies of the descriptors, which callers may change before the work runs.
struct Call {
  Tensor x, w;
  Convolution c;
  Tensor y;
};
using Sums = std::vector<double>;

/// Calls visit(index in x, in w, in y) for all products.
void for_each_product(const Call& call,
                      const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) {
  const Tensor &x = call.x, &w = call.w, &y = call.y;
  const Convolution& c = call.c;
  for_each(y.dims, [&](const Sizes& out) {
    Sizes taps = w.dims;
    taps.erase(taps.begin());
    const int first = out[1] / (w.dims[0] / c.groups) * w.dims[1];  // channel that the filter reads
    for_each(taps, [&](const Sizes& tap) {                          // channel, then the window
      Sizes in{out[0], first + tap[0]}, filter{out[1], tap[0]};
      for (std::size_t d = 0; d < c.pad.size(); ++d) {
        in.push_back(out[d + 2] * c.stride[d] - c.pad[d] + tap[d + 1]);
        filter.push_back(tap[d + 1]);
        if (in.back() < 0 || in.back() >= x.dims[d + 2]) return;
      }
      visit(x.at(in), w.at(filter), y.at(out));
    });
  });
}

/// Starts to sum products into `to`, in double precision.
cudnnStatus_t start_sum(cudnnHandle_t handle, const Call& call, const Tensor& to, void* memory,
                        const std::function<void(const Call&, Sums&)>& products) {
  enqueue_on(handle, [call, to, memory, products] {
    Sums sums(to.bytes() / (to.type == CUDNN_DATA_FLOAT ? 4 : 2));
    products(call, sums);
    for_each(to.dims, [&](const Sizes& at) { write(to, memory, to.at(at), sums[to.at(at)]); });
  });
  return CUDNN_STATUS_SUCCESS;
}

/// True if a call has what its algorithm needs: the workspace that it takes with this math type, memory that
/// is aligned for loads of 16 bytes, and a layout that it takes.
bool runs(const Convolution& c, int algorithm, const void* workspace, std::size_t bytes,
          std::initializer_list<const void*> arrays) {
  const bool aligned = std::ranges::all_of(arrays, [](const void* one) {
    return one != nullptr && reinterpret_cast<std::uintptr_t>(one) % 16 == 0;
  });
  return aligned && algorithm != kFails && algorithm != kTooLarge && workspace != nullptr &&
         bytes >= workspace_of(algorithm, c.math);
}

}  // namespace

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void*, const cudnnTensorDescriptor_t x,
                                      const void* in, const cudnnFilterDescriptor_t w, const void* filter,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t how,
                                      void* work, std::size_t bytes, const void*,
                                      const cudnnTensorDescriptor_t y, void* out) {
  if (!agree(of(x), of(w), of(c), of(y)) || !runs(of(c), how, work, bytes, {in, filter, out}))
    return CUDNN_STATUS_BAD_PARAM;
  return start_sum(handle, {of(x), of(w), of(c), of(y)}, of(y), out,
                   [in, filter](const Call& call, Sums& sums) {
                     for_each_product(call, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
                       sums[o] += double{read(call.x, in, i)} * read(call.w, filter, k);
                     });
                   });
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void*, const cudnnFilterDescriptor_t w,
                                           const void* filter, const cudnnTensorDescriptor_t dy,
                                           const void* errors, const cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t how, void* work, std::size_t bytes,
                                           const void*, const cudnnTensorDescriptor_t dx, void* out) {
  if (!agree(of(dx), of(w), of(c), of(dy)) || !runs(of(c), how, work, bytes, {filter, errors, out}))
    return CUDNN_STATUS_BAD_PARAM;
  return start_sum(handle, {of(dx), of(w), of(c), of(dy)}, of(dx), out,
                   [filter, errors](const Call& call, Sums& sums) {
                     for_each_product(call, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
                       sums[i] += double{read(call.y, errors, o)} * read(call.w, filter, k);
                     });
                   });
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void*,
                                             const cudnnTensorDescriptor_t x, const void* in,
                                             const cudnnTensorDescriptor_t dy, const void* errors,
                                             const cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t how, void* work,
                                             std::size_t bytes, const void*, const cudnnFilterDescriptor_t dw,
                                             void* out) {
  if (!agree(of(x), of(dw), of(c), of(dy)) || !runs(of(c), how, work, bytes, {in, errors, out}))
    return CUDNN_STATUS_BAD_PARAM;
  return start_sum(handle, {of(x), of(dw), of(c), of(dy)}, of(dw), out,
                   [in, errors](const Call& call, Sums& sums) {
                     for_each_product(call, [&](std::int64_t i, std::int64_t k, std::int64_t o) {
                       sums[k] += double{read(call.x, in, i)} * read(call.y, errors, o);
                     });
                   });
}
