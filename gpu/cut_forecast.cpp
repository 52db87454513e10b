#include "gpu/cut_forecast.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/cut_times.hpp"

namespace stepcast {

std::vector<Trace> traces_of_part(const std::vector<Trace>& traces, const Model& model, const Parts& parts,
                                  const Device& device) {
  const SampleCut cut{parts, first_mixing_layer(model)};
  if (const std::string problem = cut_problem(model, cut); !problem.empty())
    throw InputError(fmt::format("--parts {}: {}", fmt::join(parts, ","), problem));
  const Model part = cut_model(model, cut);
  const int devices = device_count(parts);
  std::vector<Trace> result;
  for (const Trace& trace : traces) {
    PartModel computed{&part, {}};
    for (std::size_t layer = 0; layer < part.layers.size(); ++layer)
      computed.batch.push_back(cut.cuts(layer) ? trace.batch : (trace.batch + devices - 1) / devices);
    result.push_back(part_trace(model, trace, computed, device));
    result.back().batch = trace.batch;
  }
  return result;
}

}  // namespace stepcast
