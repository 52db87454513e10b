#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/network/layer.hpp"

namespace stepcast {

/// Seconds of the passes of one operator in one step.
struct OperatorTimes {
  double forward = 0, backward_data = 0, backward_weights = 0;
  double halved = 0;  ///< part of both backward passes that was split in equal halves, as no name tells more
  double gradient_sum = 0;  ///< sums of gradients right after its backward pass: its input has other readers
};

/// An outermost operator of the forward pass that has a node in the backward pass.
struct NetworkOperator {
  std::string name;
  std::string kind;           ///< as operator_kind says
  std::vector<Shape> shapes;  ///< of its inputs and parameters, with the batch; empty if not recorded
  OperatorTimes times;
  Shape output = {};  ///< of its first output, with the batch: that of the gradient; empty: not recorded
  int round = 0;      ///< of the forward and backward passes of one step: its micro-batch
  /// Elements of each array whose gradient its backward pass adds to `.grad`, the last one first; -1: not
  /// recorded
  std::vector<std::int64_t> parameters = {};
};

/// Number of elements of a shape as a file gives it; -1 if a size is negative or the product is above 1e15.
std::int64_t recorded_elements(const Shape& shape);

/// GPU work that belongs to no layer.
enum class Share { optimizer, zero_grad, accumulation, input, communication, buckets, other, unknown };
const char* to_string(Share share);

/// One training step: its operators in forward order.
struct ProfileStep {
  std::string name;
  std::vector<NetworkOperator> operators;
  std::map<Share, double> shares;  ///< [s]
  double wall = 0;                 ///< of the host [s]
};

}  // namespace stepcast
