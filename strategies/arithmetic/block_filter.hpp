#pragma once

#include <span>
#include <string>
#include <vector>

namespace stepcast {

/// Blockwise model-update filtering: the update of the global model after every block of local training.
///
/// M is the mean of the workers' models, W_g the model that was broadcast before the block, h the block
/// momentum and z the block learning rate:
///
///   G = M - W_g;  D' = h D + z G;  W' = W + D'
///   classical:  W_g' = W'            Nesterov:  W_g' = W' + h D'
///
/// h = 0 and z = 1 is model averaging. DiLoCo's outer optimizer, Nesterov momentum h and rate z on the outer
/// gradient -G, is the Nesterov form: with b = -D / z, D' = h D + z G is b' = h b - G, and W_g' - W_g =
/// -z (-G + h b').
///
/// Sources: K. Chen, Q. Huo, "Scalable training of deep learning machines by incremental block training with
/// intra-block parallel optimization and blockwise model-update filtering", ICASSP 2016, section 3;
/// A. Douillard et al., "DiLoCo: distributed low-communication training of language models",
/// arXiv:2311.08105; the update of torch.optim.SGD with nesterov=True (PyTorch's documentation).
struct BlockFilter {
  enum class Form { classical, nesterov };

  double momentum = 0;       ///< h, in [0, 1)
  double learning_rate = 1;  ///< z, > 0
  Form form = Form::classical;
};

const std::vector<std::string>& block_form_names();  ///< in the order of BlockFilter::Form

/// State of the master from block to block: arrays of the model's length.
struct BlockState {
  std::span<float> model;   ///< W, before the first block the initial model
  std::span<float> change;  ///< D, before the first block zeros
};

/// Applies the filter after a block.
/// @param mean    M of this block
/// @param global  W_g: in, with which the block started; out, with which the next block starts
/// @throws std::invalid_argument if lengths differ
void filter_block_update(const BlockFilter& filter, std::span<const float> mean, const BlockState& state,
                         std::span<float> global);

}  // namespace stepcast
