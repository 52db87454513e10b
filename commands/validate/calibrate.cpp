#include <fmt/format.h>

#include <set>

#include "commands/commands.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "core/os/process.hpp"
#include "core/text.hpp"
#include "kernels/timing/host_info.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "validate/launch/launcher.hpp"
#include "validate/measure/benchmark_readers.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {
namespace {

struct CalibrateOptions {
  int ranks = 2;
  std::string cluster = "memory", transport = "own", output, from, collective;
};

LinkMeasurements measured(const Cluster& cluster) {
  const WorkFolder folder;
  const SignalGuard signals;
  const ClusterGuard up(cluster, folder.path());
  RankJob job;
  job.cluster = cluster;
  job.folder = folder.path();
  job.arguments = {"calibrate"};
  job.interrupted = SignalGuard::interrupted;
  std::string last;
  job.progress = [&last](const std::string& doing) {
    if (doing == last || doing.empty()) return;
    fmt::print(stderr, "\rcalibrate: {:60}", last = doing);
  };
  run_ranks(job);
  fmt::print(stderr, "\n");
  return read_link_measurements(links_file(folder.path()));
}

std::string name_of(const std::filesystem::path& file) {
  return file.stem().string();
}

/// All-reduces of each size: the fastest own algorithm, its time by the link table, and the libraries'
/// times.
Table all_reduce_table(const LinkMeasurements& links, const LinkTable& fitted, const Cluster& cluster) {
  Table table;
  table.columns = {{"all-reduce", "B"},
                   {"fastest algorithm", "", Align::left},
                   {"measured"},
                   {"predicted"},
                   {"error", "%"}};
  const auto times = all_reduce_times(links, fitted, cluster.ranks);
  std::set<std::string> libraries;
  for (const AllReduceTime& one : times) {
    for (const auto& [library, seconds] : one.by_library) libraries.insert(library);
  }
  for (const std::string& library : libraries) {
    table.columns.push_back({library});
    table.columns.push_back({"measured / " + library, "%"});
  }
  for (const AllReduceTime& one : times) {
    const bool flat = cluster.racks == 1;  // the link table has no uplinks
    auto& row = table.rows.emplace_back();
    row = {fmt::format("{:.0f}", one.bytes), one.algorithm, human(Seconds{one.measured}),
           flat ? human(Seconds{one.predicted}) : "-",
           flat ? fmt::format("{:+.1f}", 100 * (one.predicted / one.measured - 1)) : "-"};
    for (const std::string& library : libraries) {
      const auto found = one.by_library.find(library);
      const bool known = found != one.by_library.end();
      row.push_back(known ? human(Seconds{found->second}) : "-");
      row.push_back(known ? fmt::format("{:.0f}", 100 * one.measured / found->second) : "-");
    }
  }
  return table;
}

void print_sharing(const LinkMeasurements& links) {
  const Contention sharing = contention_of(links);
  fmt::print("memory bandwidth: {} for a single rank, {} per rank with all ranks active\n",
             human(sharing.memory_alone, "B/s"), human(sharing.memory_together, "B/s"));
  fmt::print("compute during an all-reduce: slower by a factor of {:.3g} (strategy.compute_slowdown)\n",
             sharing.compute_slowdown);
}

void write_platform(const CalibrateOptions& options, const MeasuredPlatform& platform) {
  write_atomically(options.output, platform_text(platform));
  fmt::print("latency {}, bandwidth {}\n", human(platform.links.latency),
             human(platform.links.bandwidth.value, "B/s"));
}

void calibrate_here(const CalibrateOptions& options) {
  const Cluster cluster = read_cluster(options.cluster, options.ranks, options.transport);
  const LinkMeasurements links = measured(cluster);
  MeasuredPlatform platform{name_of(options.output), "", cluster, measured_link_table(links, cluster)};
  platform.source = fmt::format("stepcast calibrate --ranks {} --cluster {} --transport {} on {}, {}",
                                options.ranks, options.cluster, options.transport, processor_name(), today());
  auto raw = std::filesystem::path(options.output).replace_extension(".csv");
  write_atomically(raw, to_csv(to_results(links)));
  fmt::print("{}", to_string(all_reduce_table(links, platform.links, cluster)));
  print_sharing(links);
  write_platform(options, platform);
  fmt::print("written: {}, {}\n", options.output, raw.string());
}

void calibrate_from(const CalibrateOptions& options, bool ranks_given) {
  const BenchmarkTimes benchmark = read_benchmark(read_file(options.from), options.from,
                                                  ranks_given ? options.ranks : 0, options.collective);
  MeasuredPlatform platform;
  platform.name = name_of(options.output);
  platform.source =
      fmt::format("{} in {}", benchmark.what, std::filesystem::path(options.from).filename().string());
  platform.cluster.kind = Cluster::Kind::netcluster;
  platform.cluster.ranks = std::max(2, benchmark.ranks);
  platform.links = fitted_link_table(benchmark.times);
  write_platform(options, platform);
  if (!benchmark.doubts.empty()) fmt::print("note: {}\n", benchmark.doubts);
  fmt::print("written: {}\n", options.output);
}

void calibrate_links(const CalibrateOptions& options, bool ranks_given) {
  const std::filesystem::path file = options.output;
  if (file.extension() != ".yaml")
    throw InputError(fmt::format("-o: expected a name ending in .yaml, got \"{}\"", options.output));
  check_writable(file.has_parent_path() ? file.parent_path() : ".");
  if (options.from.empty()) {
    calibrate_here(options);
  } else {
    calibrate_from(options, ranks_given);
  }
}

/// Options of a platform that is fitted to a benchmark.
void add_benchmark_options(const Command& command, CalibrateOptions& options, const Option& cluster,
                           const Option& transport) {
  command
      .add_option("--from", options.from,
                  "Output of nccl-tests or of the OSU micro-benchmarks to read instead of measuring.")
      .type_name("FILE")
      .excludes(cluster)
      .excludes(transport);
  command
      .add_option("--collective", options.collective,
                  "With --from: collective of a table of nccl-tests that does not name it.")
      .one_of({"all_reduce", "all_gather", "reduce_scatter", "sendrecv"});
}

}  // namespace

void add_calibrate(Command app) {
  const Command command = app.add_subcommand(
      "calibrate",
      "Measure the links between ranks, or read the output of a benchmark, and write a platform.");
  auto options = std::make_shared<CalibrateOptions>();
  const Option ranks =
      command
          .add_option("--ranks", options->ranks,
                      "Number of ranks to start. With --from: number of ranks of the benchmark's all-reduce.")
          .range(2, 64)
          .show_default();
  const Option cluster =
      command
          .add_option("--cluster", options->cluster,
                      "Links between the ranks: memory, loopback, or "
                      "netcluster:RATE[,packet=BYTES][,racks=2,uplink=RATE] (emulated network, needs root).")
          .show_default();
  const Option transport = command.add_option("--transport", options->transport, kTransportHelp)
                               .one_of(transport_names())
                               .show_default();
  add_benchmark_options(command, *options, cluster, transport);
  command
      .add_option(
          "-o,--output", options->output,
          "Platform file, a name that ends in .yaml, or - for standard output. The measured times go to a "
          ".csv file of the same name.")
      .type_name("FILE")
      .required();
  command.footer("Example: stepcast calibrate --ranks 2 -o this-machine.yaml");
  command.callback_with_file([options, ranks] { calibrate_links(*options, ranks.given()); }, options->output,
                             "calibrated");
}

}  // namespace stepcast
