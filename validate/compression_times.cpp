#include "validate/compression_times.hpp"

#include <fmt/format.h>

#include <set>

#include "models/compression_text.hpp"
#include "report/atomic_file.hpp"
#include "validate/gather.hpp"
#include "validate/repeats.hpp"

namespace stepcast {
namespace {

/// Of every rank, on rank 0.
void join_ranks(Transport& transport, PassSamples& samples) {
  for (std::vector<double>* const times : {&samples.seconds, &samples.cpu_seconds}) {
    std::vector<double> all;
    for (const auto& rank : gathered(transport, *times)) all.insert(all.end(), rank.begin(), rank.end());
    if (!all.empty()) *times = std::move(all);
  }
}

void join_ranks(Transport& transport, CompressionTrace& trace) {
  join_ranks(transport, trace.copy);
  for (CompressionTrace::Codec& codec : trace.codecs) {
    join_ranks(transport, codec.quantize);
    join_ranks(transport, codec.restore);
  }
}

}  // namespace

void capture_compressions(const RankRun& run, const Validation& validation, const ValidationOptions& options,
                          Library& library, const GradientDevice& beside) {
  std::set<std::string> done;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const Need& need = validation.needs[i];
    if (!validation.compresses[i] || !done.insert(need.model).second) continue;
    say(run.state, fmt::format("timing the compression of gradients of {}", need.model).c_str());
    barrier(run.transport);
    const YamlNode model = command_line_name(need.model);
    CompressionCapture capturing;
    capturing.beside = beside;
    const auto file = compression_file(run.folder, need.model);
    capturing.name = file.stem().string();
    capturing.command = fmt::format("stepcast validate {} --ranks {}", options.scenario, run.cluster.ranks);
    capturing.elements =
        static_cast<std::size_t>(trainable_parameters(library.model(YamlValue(model, "model"))));
    CompressionTrace trace = capture_compression(capturing);
    join_ranks(run.transport, trace);
    if (run.transport.rank() == 0) write_atomically(file, to_yaml(trace));
  }
}

}  // namespace stepcast
