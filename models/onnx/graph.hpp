#pragma once

// Debian's ONNX is compiled with these two.
#ifndef ONNX_ML
#define ONNX_ML 1
#endif
#ifndef ONNX_NAMESPACE
#define ONNX_NAMESPACE onnx
#endif
#include <onnx/onnx_pb.h>

#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/network/layer.hpp"

namespace stepcast {

/// Integers that are known before the network runs: sizes, indices. A scalar has one value.
struct OnnxNumbers {
  bool scalar = false;
  std::vector<std::int64_t> values = {};
};

/// A graph of ONNX with the shapes that ONNX's own inference finds. The batch is the first size of every
/// activation.
struct OnnxGraph {
  std::string file;
  onnx::ModelProto model;
  std::map<std::string, const onnx::TensorProto*> constants;  ///< initializers and Constant nodes, by name
  std::map<std::string, OnnxNumbers> numbers;  ///< short lists of constants, and the results of nodes on them
  std::map<std::string, Shape> shapes;  ///< of activations whose first size is the batch, which is left out
  std::map<std::string, Shape> whole_shapes;  ///< of all values, with the batch
  std::int64_t batch = 1;                     ///< with which shapes were inferred
  std::map<std::string, int> uses;            ///< how many nodes and graph outputs read a value
  std::string input;                          ///< the only input that is not an initializer
};

/// The values of a tensor of at most 64 64-bit integers in one dimension or none; nothing if it is none.
std::optional<OnnxNumbers> integers_of(const onnx::TensorProto& tensor);

/// The integers that a node computes from the shapes and numbers that are known so far: `Shape`, `Gather`,
/// `Concat`, arithmetic and others of at most 64 values, none above 1e15. Nothing if they are not known.
std::optional<OnnxNumbers> folded(const OnnxGraph& graph, const onnx::NodeProto& node);

/// Refuses a node: "FILE: node NAME (OPERATOR): REASON".
[[noreturn]] void refuse_node(const OnnxGraph& graph, const onnx::NodeProto& node, const std::string& reason);

/// Reads a graph, checks its limits and infers its shapes. Nothing outside the stream is read.
/// @param is_known  whether an operator has a layer; a node of any other is refused before shapes are
/// inferred
/// @throws InputError for damaged bytes, external data, several inputs and graphs beyond a limit
OnnxGraph read_onnx_graph(std::istream& bytes, const std::string& file,
                          bool (*is_known)(const std::string& operator_type));

}  // namespace stepcast
