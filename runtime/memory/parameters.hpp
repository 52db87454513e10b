#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/network/network.hpp"

namespace stepcast {

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
