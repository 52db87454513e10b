#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace stepcast {

/// Writes the network file of a Hugging Face `config.json`, and prints the network's totals.
/// @param sequence  tokens of a sample; 0: as many as the configuration allows
/// @param output    file; its stem becomes the name of the network
/// @throws InputError if the configuration cannot be read or `sequence` does not fit
void import_network(const std::filesystem::path& config, std::int64_t sequence,
                    const std::filesystem::path& output);

/// Writes the network file of an ONNX graph, and prints the network's totals.
/// @param sizes  of inputs that the graph leaves free, each as NAME=N
/// @throws InputError if the graph cannot be read, or if stepcast was built without ONNX
void import_onnx(const std::filesystem::path& graph, const std::vector<std::string>& sizes,
                 const std::filesystem::path& output);

}  // namespace stepcast
