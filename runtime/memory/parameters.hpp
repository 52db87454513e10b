#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/network/network.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Maps elements of a model's parameters (or gradients), numbered in the model's order, to elements of a
/// network's memory, where arrays are padded and aligned.
class ParameterLayout {
 public:
  explicit ParameterLayout(const Network& network);

  std::int64_t model_elements() const { return arrays_.back().model; }
  std::int64_t stored_elements() const { return arrays_.back().stored; }
  /// The slice of the memory that holds a slice of the model. Adjacent slices of the model are adjacent in
  /// memory; the slice of a whole array includes its padding.
  Slice stored(const Slice& of_model) const;

 private:
  struct Start {
    std::int64_t model = 0, stored = 0;
  };

  std::int64_t stored(std::int64_t of_model) const;

  std::vector<Start> arrays_;  ///< first element of each array, in order; the last entry is the end
};

/// All trainable arrays of a network in the order and with the padding of its memory (host or device), after
/// all work that was submitted to the backend.
std::vector<float> stored_parameters(const Network& network);
/// Writes them back. @param values  as many elements as stored_parameters returns
void store_parameters(const float* values, Network& network);

/// Parameters of a model, one array after the other in the model's order, running statistics included. Arrays
/// of layers that a shard of the model does not have are empty.
using Parameters = std::vector<std::vector<float>>;

Parameters read_parameters(Network& network);
/// Writes those arrays of the whole model that the network has.
void write_parameters(Network& network, const Parameters& parameters);

/// Writes a line of text, "stepcast parameters MODEL NUMBERS", and the values as little-endian float32.
void save_checkpoint(const std::filesystem::path& file, const Model& model, const Parameters& parameters);
/// @throws InputError for a file that is not a checkpoint, or is one of another model
Parameters load_checkpoint(const std::filesystem::path& file, const Model& model);

}  // namespace stepcast
