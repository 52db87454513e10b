#pragma once

#include <string>
#include <vector>

#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Reads a model by its name in models/ or by a path that ends in .yaml. @throws InputError
Model model_of(const std::string& name);

/// Names of all models in models/ that the GPU backend supports; `left_out` gets one line with the reason for
/// each other model.
std::vector<std::string> models_for_gpu(std::vector<std::string>& left_out);

/// Name of a trace that is captured on a GPU, such as "resnet50-b32-tf32-nhwc-gpu".
std::string trace_name(const std::string& model, std::int64_t batch, const std::string& precision,
                       const std::string& layout);

}  // namespace stepcast
