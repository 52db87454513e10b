#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>

namespace stepcast {

/// The text of a network file for an ONNX graph: layers in the graph's order, then a loss for each output
/// that needs one (a last Softmax or Sigmoid becomes the loss). The trained parameters are those of the
/// graph's initializers; values of weights are not read.
/// @param file  name of the graph in errors
/// @param name  name of the network
/// @param sizes  of an input that the graph leaves free, by their name there or by "INPUT:INDEX"
/// @throws InputError for damaged bytes, and for a node that no kind of layer stands for
std::string onnx_network_text(std::istream& bytes, const std::string& file, const std::string& name,
                              const std::map<std::string, std::int64_t>& sizes = {});

}  // namespace stepcast
