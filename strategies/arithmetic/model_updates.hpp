#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/words.hpp"

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

const Words<BlockFilter::Form>& block_form_words();

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

/// sum += gradient, on a worker between two pushes and on a server between two updates.
///
/// Source: J. Dean et al., "Large scale distributed deep networks", NIPS 2012, section 4.1 and algorithm 1
/// (Downpour SGD). The server's optimizers stand in optimizer.hpp.
/// @throws std::invalid_argument if lengths differ
void accumulate(std::span<const float> gradient, std::span<float> sum);

/// Divides each value, such as a sum of models by their number.
void divide(float divisor, std::span<float> values);

/// p += force (towards - p): one side of an elastic exchange. In the asynchronous algorithm, the worker moves
/// towards the center that it last read, and the center towards the worker that last wrote, with equal and
/// opposite force, so that worker + center stays the same.
///
/// If an exchange follows a step of plain SGD at rate r on a loss of curvature 1, x and y shrink for every
/// force in (0, 1] and r in (0, 2). If exchange and step happen at the same time, as the paper analyses them,
/// they shrink for force < (4 - 2 r) / (4 - r).
///
/// Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with elastic averaging SGD", NIPS 2015,
/// algorithm 1.
/// @throws std::invalid_argument if lengths differ
void elastic_move(double force, std::span<const float> towards, std::span<float> parameters);

/// Gradient energy matching: a worker of asynchronous SGD scales its update, element by element, so that the
/// center moves no faster than sequential SGD with momentum (the proxy) would, times `kappa`.
///
/// g is the gradient, r the learning rate, m the momentum, p the proxy's velocity, c the center received now
/// and c0 the center received before:
///
///   u = -r g;  p = m p + u;  s = (kappa |p| - |c - c0|) / |u + e|, into [0, largest];  update = s u
///
/// so that |c - c0| + |update| = kappa |p| where s is not limited. The update is added to the center.
///
/// Source: J. Hermans, G. Louppe, "Gradient energy matching for distributed asynchronous gradient descent",
/// arXiv:1805.08469; details (`largest`, `epsilon`, the order of receiving and updating) from the authors'
/// program, github.com/montefiore-institute/gradient-energy-matching, because the paper's text was not
/// available. kappa and momentum are the defaults of NNLO's driver (github.com/vlimant/NNLO).
struct EnergyMatching {
  double learning_rate = 0.01;
  double momentum = 0.9;
  double kappa = 2;
  double largest = 5;      ///< upper limit of the scale
  double epsilon = 1e-12;  ///< avoids a division by 0
};

/// State of a worker: arrays of the model's length.
struct EnergyMatchingState {
  std::span<float> proxy;   ///< p; zeros before the first update
  std::span<float> center;  ///< c0; the initial parameters before the first update
};

/// Computes the update of a worker.
/// @param gradient  g, at the center received before
/// @param center    c, received after the gradient was computed
/// @param update    out: the update to send, which is added to the center
/// @throws std::invalid_argument if lengths differ
void match_energy(const EnergyMatching& options, std::span<const float> gradient,
                  std::span<const float> center, const EnergyMatchingState& state, std::span<float> update);

/// A step s and the change of the gradient y.
struct LbfgsPair {
  std::vector<float> step, change;
};
/// The last pairs, newest last.
using LbfgsHistory = std::deque<LbfgsPair>;

/// Vector operations of one batch of `sandblaster` with a full history: a dot product and a sum for each pair
/// in each of the two loops; the derivative along the direction at the end of a step and at the start of the
/// next, from which s y follows; the two new differences, with y y; the scaling; and the step.
int lbfgs_operations(int history);

/// A line search that knows the derivative along the direction, but not the function. With f(a) the function
/// at the length a of the step, a trial is accepted if
///
///   (2 delta - 1) f'(0) >= f'(a) >= sigma f'(0),   delta = 0.1, sigma = 0.9
///
/// These are the approximate Wolfe conditions. Source: W. Hager, H. Zhang, "A new conjugate gradient method
/// with guaranteed descent and an efficient line search", SIAM Journal on Optimization 16, 2005, section 1.
/// The second one makes the curvature of the pair that L-BFGS remembers positive.
struct LineSearch {
  double slope = 0;                                       ///< f'(0), below 0 for a direction of descent
  double length = 1;                                      ///< a of the trial under way
  double low = 0;                                         ///< the longest step that was too short
  double high = std::numeric_limits<double>::infinity();  ///< the shortest step that was too long
  int trials = 0;                                         ///< refused so far

  /// Judges the trial. If it is refused, `length` becomes that of the next one: twice as long, or halfway
  /// between `low` and `high`. The trial after kMaxRefused refused ones is accepted.
  /// @param derivative  f'(length); one that is not finite counts as too long
  bool accepts(double derivative);

  static constexpr int kMaxRefused = 20;
};

}  // namespace stepcast
