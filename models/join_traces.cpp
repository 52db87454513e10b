#include "models/join_traces.hpp"

#include <algorithm>
#include <stdexcept>

namespace stepcast {
namespace {

void append(std::vector<double>& to, const std::vector<double>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void append(PassSamples& to, const PassSamples& from) {
  append(to.seconds, from.seconds);
  append(to.cpu_seconds, from.cpu_seconds);
}

}  // namespace

void join(Trace& trace, const Trace& other) {
  if (trace.layers.size() != other.layers.size())
    throw std::invalid_argument("only traces of the same network can be joined");
  trace.ranks += other.ranks;
  append(trace.step_seconds, other.step_seconds);
  append(trace.step_cpu_seconds, other.step_cpu_seconds);
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    append(trace.layers[i].forward, other.layers[i].forward);
    append(trace.layers[i].backward_data, other.layers[i].backward_data);
    append(trace.layers[i].backward_weights, other.layers[i].backward_weights);
    append(trace.layers[i].update, other.layers[i].update);
  }
  for (const std::string& flag : other.flags) {
    if (std::find(trace.flags.begin(), trace.flags.end(), flag) == trace.flags.end())
      trace.flags.push_back(flag);
  }
}

}  // namespace stepcast
