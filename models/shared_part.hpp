#pragma once

#include <optional>
#include <vector>

#include "models/cut.hpp"
#include "models/model.hpp"

namespace stepcast {

struct ShardedModel;

/// What a kernel must know of a layer that devices share as shard_tensor has it.
struct LayerShare {
  enum class Form {
    columns,  ///< dense, by units: the error signal of its input is one term of a sum over the devices
    rows,     ///< dense, by inputs: its output, without the bias, is one term of a sum
    classes,  ///< softmax_cross_entropy: sums of exponentials and the target's score are terms
  };

  Form form{};
  Rows classes;  ///< of the whole that the device scores; what its part has beyond them is padding
};

/// What a device has of an array, taken as a matrix with a row for each index of the first dimension.
struct ArrayPart {
  std::vector<Rows> rows;  ///< of the whole, one run after the other
  Rows columns;            ///< of each of them
};

/// What one device has of a network whose layers are shared.
struct SharedPart {
  Model whole, model;
  std::vector<std::optional<LayerShare>> shares;  ///< of each layer
  std::vector<std::vector<ArrayPart>> arrays;     ///< of each layer's parameters
};

/// The device at `place` of `ways` that share transformer blocks (shard_tensor). Rows of queries, keys and
/// values are dealt out each by heads.
SharedPart tensor_part(const Model& model, int ways, int place);

/// Why kernels cannot compute parts of this network; empty where they can: a layer reads what another device
/// has.
std::string part_problem(const ShardedModel& sharded);

/// A parameter array of the whole network -> the device's own, in row-major order; what is padded is 0.
std::vector<float> own_part(const std::vector<float>& whole, const SharedPart& part, std::size_t layer,
                            std::size_t array);
/// And back: writes the device's own into the whole.
void put_back(const std::vector<float>& own, const SharedPart& part, std::size_t layer, std::size_t array,
              std::vector<float>& whole);

}  // namespace stepcast
