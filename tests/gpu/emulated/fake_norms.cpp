#include <cmath>

#include "fake_cudnn.hpp"
#include "fake_streams.hpp"

// A fake of cuDNN's batch norm: plain loops by its descriptors. It replaces the library's functions.

using namespace stepcast::fake;

namespace {

constexpr std::size_t kWork = 512,
                      kReserve = 256;  ///< requested by the size queries and checked in the calls

/// Calls visit(channel, index in memory) for all elements.
void for_each_element(const Tensor& x, const std::function<void(std::size_t, std::int64_t)>& visit) {
  for_each(x.dims, [&](const Sizes& at) { visit(at[1], x.at(at)); });
}

bool agree(cudnnBatchNormMode_t mode, const Tensor& x, const Tensor& y, const Tensor& statistics) {
  Sizes channels(x.dims.size(), 1);
  channels[1] = x.dims[1];
  const bool spatial = mode == CUDNN_BATCHNORM_SPATIAL || mode == CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
  return spatial && x.dims == y.dims && x.type == y.type && statistics.dims == channels &&
         statistics.type == CUDNN_DATA_FLOAT;
}

double count_of(const Tensor& x) {
  double count = 1;
  for (std::size_t i = 0; i < x.dims.size(); ++i) count *= i == 1 ? 1 : x.dims[i];
  return count;
}

bool plain(const void* alpha, const void* beta) {
  return *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0;
}

}  // namespace

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived, const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t) {
  Tensor made{CUDNN_DATA_FLOAT, Sizes(of(x).dims.size(), 1), Sizes(of(x).dims.size(), 1)};
  made.dims[1] = of(x).dims[1];
  made.strides[0] = made.dims[1];
  of(derived) = made;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, std::size_t* bytes) {
  *bytes = kWork;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t,
    std::size_t* bytes) {
  *bytes = 2 * kWork;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t, cudnnBatchNormMode_t,
                                                                   cudnnBatchNormOps_t,
                                                                   const cudnnActivationDescriptor_t,
                                                                   const cudnnTensorDescriptor_t,
                                                                   std::size_t* bytes) {
  *bytes = kReserve;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void* alpha,
    const void* beta, const cudnnTensorDescriptor_t x_desc, const void* x,
    const cudnnTensorDescriptor_t z_desc, const void* z, const cudnnTensorDescriptor_t y_desc, void* y,
    const cudnnTensorDescriptor_t statistics, const void* scale, const void* bias, double follow,
    void* running_mean, void* running_variance, double epsilon, void* saved_mean, void* saved_inverse,
    cudnnActivationDescriptor_t activation, void* work, std::size_t work_bytes, void* reserve,
    std::size_t reserve_bytes) {
  const Tensor in = of(x_desc);
  const bool refused = !agree(mode, in, of(y_desc), of(statistics)) || ops != CUDNN_BATCHNORM_OPS_BN ||
                       !plain(alpha, beta) || z_desc != nullptr || z != nullptr || activation != nullptr ||
                       work == nullptr || work_bytes < kWork || reserve == nullptr ||
                       reserve_bytes < kReserve || (running_mean == nullptr) != (running_variance == nullptr);
  if (refused) return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(handle, [=] {
    const std::size_t channels = in.dims[1];
    const double count = count_of(in);
    std::vector<double> mean(channels), variance(channels);
    for_each_element(in, [&](std::size_t c, std::int64_t at) { mean[c] += read(in, x, at) / count; });
    for_each_element(in, [&](std::size_t c, std::int64_t at) {
      const double off = read(in, x, at) - mean[c];
      variance[c] += off * off / count;
    });
    auto* means = static_cast<float*>(saved_mean);
    auto* inverses = static_cast<float*>(saved_inverse);
    for (std::size_t c = 0; c < channels; ++c) {
      means[c] = mean[c];
      inverses[c] = 1 / std::sqrt(variance[c] + epsilon);
      if (running_mean == nullptr) continue;
      auto &old_mean = static_cast<float*>(running_mean)[c], &old = static_cast<float*>(running_variance)[c];
      old_mean = (1 - follow) * old_mean + follow * mean[c];
      old = (1 - follow) * old + follow * variance[c] * count / (count - 1);
    }
    for_each_element(in, [&](std::size_t c, std::int64_t at) {
      const double normal = (read(in, x, at) - mean[c]) * inverses[c];
      write(in, y, at, static_cast<const float*>(scale)[c] * normal + static_cast<const float*>(bias)[c]);
    });
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops, const void* data_alpha,
    const void* data_beta, const void* alpha, const void* beta, const cudnnTensorDescriptor_t x_desc,
    const void* x, const cudnnTensorDescriptor_t y_desc, const void* y, const cudnnTensorDescriptor_t dy_desc,
    const void* dy, const cudnnTensorDescriptor_t dz_desc, void* dz, const cudnnTensorDescriptor_t dx_desc,
    void* dx, const cudnnTensorDescriptor_t statistics, const void* scale, const void* bias,
    void* scale_gradient, void* bias_gradient, double, const void* saved_mean, const void* saved_inverse,
    cudnnActivationDescriptor_t activation, void* work, std::size_t work_bytes, void* reserve,
    std::size_t reserve_bytes) {
  const Tensor in = of(x_desc);
  const bool refused = !agree(mode, in, of(dy_desc), of(statistics)) || in.strides != of(dx_desc).strides ||
                       ops != CUDNN_BATCHNORM_OPS_BN || !plain(data_alpha, data_beta) ||
                       !plain(alpha, beta) || y_desc != nullptr || y != nullptr || dz_desc != nullptr ||
                       dz != nullptr || activation != nullptr || bias == nullptr || work == nullptr ||
                       work_bytes < 2 * kWork || reserve == nullptr || reserve_bytes < kReserve;
  if (refused) return CUDNN_STATUS_BAD_PARAM;
  enqueue_on(handle, [=] {
    const std::size_t channels = in.dims[1];
    const double count = count_of(in);
    const auto *mean = static_cast<const float*>(saved_mean),
               *inverse = static_cast<const float*>(saved_inverse);
    const auto normal = [&](std::size_t c, std::int64_t at) {
      return (double{read(in, x, at)} - mean[c]) * inverse[c];
    };
    std::vector<double> sum(channels), weighted(channels);
    for_each_element(in, [&](std::size_t c, std::int64_t at) {
      sum[c] += read(in, dy, at);
      weighted[c] += read(in, dy, at) * normal(c, at);
    });
    for (std::size_t c = 0; c < channels; ++c) {
      static_cast<float*>(scale_gradient)[c] = weighted[c];
      static_cast<float*>(bias_gradient)[c] = sum[c];
    }
    for_each_element(in, [&](std::size_t c, std::int64_t at) {
      const double rest = read(in, dy, at) - (sum[c] + normal(c, at) * weighted[c]) / count;
      write(in, dx, at, static_cast<const float*>(scale)[c] * inverse[c] * rest);
    });
  });
  return CUDNN_STATUS_SUCCESS;
}
