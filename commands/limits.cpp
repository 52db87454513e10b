#include "commands/limits.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/parse_number.hpp"
#include "core/utf8.hpp"
#include "report/human.hpp"
#include "sim/form_rule.hpp"

namespace stepcast {
namespace {

/// Measured with Debian 12's SimGrid 3.32: an empty process, and what a simulation, workers and links add; a
/// link more where SimGrid knows it (docs/performance.md).
constexpr double kProcessBytes = 48e6, kBytesASimulation = 2.5e6, kBytesAWorker = 3000, kBytesALink = 24,
                 kBytesASimGridLink = 1500;

/// Of a run with servers: a message that is under way, a path between a worker and a server there and back;
/// and what an update leaves on record (four numbers, in lists that grow by doubling: twice as much as is in
/// them, and once more one of them while it grows).
constexpr double kBytesAPair = 1000, kBytesAnUpdate = 72;

/// What workers and servers send each other, and record.
double server_bytes(const Experiment& experiment) {
  double trainers = 0, servers = 0;
  for (const Role& role : experiment.plan.roles) (role.training ? trainers : servers) += role.members;
  return trainers * servers * (kBytesAPair + experiment.steps * kBytesAnUpdate);
}

Bytes machine_memory() {
  return {static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE))};
}

Bytes limit_of(const std::string& text) {
  if (text.empty()) return 0.8 * machine_memory();
  const auto bytes = parse_quantity(text, Dimension::bytes);
  if (!bytes || *bytes <= 0) {
    throw InputError(
        fmt::format("--memory-limit: expected a size such as \"8 GiB\", got \"{}\"", printable(text)));
  }
  return {*bytes};
}

}  // namespace

Bytes simulated_memory(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const auto& communicators = plan.communicators;
  const bool simgrid = plan.asynchronous ? !shares_links(plan, experiment.form)
                                         : experiment.form == Form::message ||
                                               experiment.form == Form::fluid || communicators.size() > 1 ||
                                               (!communicators.empty() && communicators.front().streams > 1);
  const double links = experiment.bandwidths.size();
  return {kBytesASimulation + kBytesAWorker * plan.workers +
          links * (kBytesALink + (simgrid ? kBytesASimGridLink : 0)) +
          (plan.asynchronous ? server_bytes(experiment) : 0)};
}

RunSize estimated(const Experiment& largest, std::size_t points, int simulations) {
  RunSize size;
  size.points = points;
  size.simulations = static_cast<double>(points) * simulations;
  size.workers = largest.plan.workers;
  size.process_memory = Bytes{kProcessBytes} + simulated_memory(largest);
  return size;
}

std::string to_string(const RunSize& size, const std::string& scenario) {
  return fmt::format("{}: {} points, {} simulations, up to {} workers, about {} a process", scenario,
                     size.points, size.simulations, size.workers, human(size.process_memory));
}

void check_limits(const RunSize& size, const RunOptions& options) {
  check_process_memory(size.process_memory, options.processes, options.memory_limit);
}

void check_process_memory(Bytes each, int processes, const std::string& limit_text) {
  const Bytes limit = limit_of(limit_text), needed = static_cast<double>(processes) * each;
  if (needed <= limit) return;
  const int fit = static_cast<int>(limit / each);
  const std::string way_out = fit >= 1 ? fmt::format("use -j {} or raise --memory-limit", fit)
                                       : "raise --memory-limit or simulate fewer workers";
  throw LimitError(fmt::format("{} process{} of about {} need{} {}, over the limit of {}: {}", processes,
                               processes == 1 ? "" : "es", human(each), processes == 1 ? "s" : "",
                               human(needed), human(limit), way_out));
}

void read_shard(RunOptions& options) {
  if (options.shard_text.empty()) return;
  const auto slash = options.shard_text.find('/');
  const auto shard = parse_integer(std::string_view(options.shard_text).substr(0, slash));
  const auto shards = slash == std::string::npos
                          ? std::nullopt
                          : parse_integer(std::string_view(options.shard_text).substr(slash + 1));
  if (!shard || !shards || *shards < 1 || *shards > 1'000'000 || *shard < 0 || *shard >= *shards) {
    throw InputError(
        fmt::format("--shard: expected i/N with 0 <= i < N, got \"{}\"", printable(options.shard_text)));
  }
  options.shard = static_cast<int>(*shard);
  options.shards = static_cast<int>(*shards);
}

}  // namespace stepcast
