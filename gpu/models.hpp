#pragma once

#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/trace.hpp"

namespace stepcast {

/// A name in models/ or a path ending in .yaml, from the command line. @throws InputError
Model model_of(const std::string& name);

/// All names in models/ whose layers the GPU backend has; `left_out` gets the others with the reason.
std::vector<std::string> models_for_gpu(std::vector<std::string>& left_out);

/// "resnet50-b32-tf32-nhwc-gpu": what a capture on a GPU is called.
std::string trace_name(const std::string& model, std::int64_t batch, const std::string& precision,
                       const std::string& layout);

}  // namespace stepcast
