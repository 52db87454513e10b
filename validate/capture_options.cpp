#include "validate/capture_options.hpp"

#include <fmt/format.h>

#include "validate/core_distance.hpp"
#include "validate/repeats.hpp"

namespace stepcast {
namespace {

/// Of a pair of steps: by how much it was disturbed, on any rank. Where the host has moved their cores, it
/// does not count.
double worst_of(const CaptureShared& shared, double own) {
  Transport& transport = shared.run.transport;
  const double worst = greatest_value(transport, own);
  CoreDistance* const cores = transport.cores();
  const bool moved = cores != nullptr && !cores->is_settled();
  if (moved) cores->wait();
  shared.sums.keep(!moved || shared.options.accept_disturbed);
  return moved ? 1 : worst;
}

}  // namespace

CaptureOptions capture_options(const CaptureShared& shared, const Need& need) {
  const auto& [run, validation, options, place, sums] = shared;
  CaptureOptions capturing;
  capturing.name = trace_file(run.folder, need).stem().string();
  capturing.command = fmt::format("stepcast validate {} --ranks {}", options.scenario, run.cluster.ranks);
  capturing.batch = need.batch;
  capturing.part.accumulate = need.accumulates;
  if (!options.sleep) capturing.copies = need.copies;
  capturing.warm_up = 1;
  capturing.disturbance = options.accept_disturbed ? 1e9 : kDisturbance;
  capturing.attempts = 2 * kAttempts;
  capturing.progress = [&run = shared.run](double, Seconds) { run.state.beat.fetch_add(1); };
  if (options.sleep) return capturing;
  capturing.worst = [&shared](double own) { return worst_of(shared, own); };
  if (need.exchanges)
    capturing.exchange.before_update = [&run = shared.run, &sums = shared.sums](Network& network) {
      const ParameterView& all = network.all_parameters();
      sums.sum(run.transport, {all.gradient, all.elements});
    };
  return capturing;
}

StepExchange sums_within_passes(const CaptureShared& shared) {
  if (shared.options.sleep) return {};
  return {.within_pass = [&run = shared.run, &sums = shared.sums](std::span<float> summed) {
    sums.sum(run.transport, summed);
  }};
}

}  // namespace stepcast
