#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/network.hpp"

namespace stepcast {

/// Parameters of a network, array after array in the model's order, running statistics included. Arrays of
/// layers that a part has not are empty.
using Parameters = std::vector<std::vector<float>>;

Parameters read_parameters(Network& network);
/// Of the whole model's, those that the network has.
void write_parameters(Network& network, const Parameters& parameters);

/// A line of text, "stepcast parameters MODEL NUMBERS", then little-endian float32.
void save_checkpoint(const std::filesystem::path& file, const Model& model, const Parameters& parameters);
/// @throws InputError for a file that is no checkpoint, or one of another model
Parameters load_checkpoint(const std::filesystem::path& file, const Model& model);

}  // namespace stepcast
