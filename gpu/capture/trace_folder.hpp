#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/layer_times/trace.hpp"

namespace stepcast {

/// Selects the captures of one model, precision and layout in a folder.
struct TraceChoice {
  std::filesystem::path folder;
  std::string model, precision, layout;
};

/// Reads the selected captures. @throws InputError if there are none or they come from several devices
std::vector<Trace> read_traces(const TraceChoice& choice);

/// Models with captures at two or more batch sizes in the folder.
std::vector<std::string> models_in(const TraceChoice& choice);

}  // namespace stepcast
