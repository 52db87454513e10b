#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/trace.hpp"

namespace stepcast {

/// What a forecast is made from: captures of one model, one precision and one layout.
struct TraceChoice {
  std::filesystem::path folder;
  std::string model, precision, layout;
};

/// @throws InputError where there is none, or they come from several devices
std::vector<Trace> read_traces(const TraceChoice& choice);

/// Models of which there are such captures at two batch sizes at least.
std::vector<std::string> models_in(const TraceChoice& choice);

}  // namespace stepcast
