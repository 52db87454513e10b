#pragma once

#include "core/units.hpp"
#include "models/cost/kernel_choice.hpp"

namespace stepcast {

/// The shares that the kernels of one library generation (cuDNN and a framework of 2019 and later) reach in
/// one precision of a device.
struct KernelShares {
  Seconds gap;             ///< between two kernels
  double streaming = 1;    ///< share of the memory bandwidth: ReLU, additions, updates
  double max_pool = 0;     ///< share of the bandwidth: max pools; 0: as streaming
  double batch_norm = 1;   ///< share of the bandwidth: batch norm
  double layer_norm = 1;   ///< share of the bandwidth: layer norm
  double dense = 1;        ///< share of the peak: dense layers and attention
  double flash = 0;        ///< share of the peak: a flash kernel of attention; 0: there is none
  double pointwise = 1;    ///< share of the peak: convolutions with a window of 1
  double window = 1;       ///< share of the peak: other convolutions, beside `winograd` and `fft`
  double winograd = 1;     ///< work saved for 2-D windows of 3 at stride 1
  double fft = 1;          ///< work saved for larger 2-D windows at stride 1
  Seconds recurrent_step;  ///< small kernels of one time step of an LSTM or GRU
  double weights = 1;      ///< gradients of filters: factor on `pointwise` and `window`
  /// Channels with which batch norm reaches half of its share, as a block of threads works on one channel.
  double batch_norm_channels = 0;
  Bytes cache{};  ///< size up to which the next layer reads an output from the second-level cache; 0: none
  /// Above 0: convolutions with a window of 2 and more, or a stride, copy inputs and outputs to another
  /// layout, and pad their input channels to a multiple of this.
  double channel_multiple = 0;
  KernelChoice choice = {};
};

}  // namespace stepcast
