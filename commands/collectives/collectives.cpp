#include <fmt/format.h>

#include <cmath>

#include "commands/collectives/estimate.hpp"
#include "commands/commands.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "report/results/results.hpp"

namespace stepcast {
namespace {

struct CollectivesOptions {
  std::string platform, nccl, measured, output;
  std::string min_bytes = "8", max_bytes = "8G";
  std::vector<std::string> set;
  AskedCollective asked;
  int factor = 2;
  bool tables = false;
};

/// A size as nccl-tests takes it ("8", "32K", "1M", "8G", powers of 1024) or with a unit ("4 MiB").
Bytes size_of(const std::string& option, const std::string& text) {
  const auto refuse = [&] {
    throw InputError(fmt::format(
        "{}: expected a size from 1 B to 1 TiB such as 8, 32K, 1M or \"4 MiB\", got \"{}\"", option, text));
  };
  std::optional<double> bytes = parse_quantity(text, Dimension::bytes);
  if (!bytes && !text.empty()) {
    const std::string units = "KMG";
    const auto unit = units.find(text.back());
    const bool has_unit = unit != std::string::npos;
    bytes =
        parse_number(has_unit ? std::string_view(text).substr(0, text.size() - 1) : std::string_view(text));
    if (bytes && has_unit) *bytes *= std::pow(1024.0, unit + 1);
  }
  if (!bytes || !(*bytes >= 1 && *bytes <= std::pow(2.0, 40))) refuse();
  return {std::floor(*bytes)};
}

std::vector<Bytes> sizes_of(const CollectivesOptions& options) {
  const Bytes most = size_of("--max-bytes", options.max_bytes);
  std::vector<Bytes> sizes;
  for (Bytes size = size_of("--min-bytes", options.min_bytes); size <= most; size.value *= options.factor)
    sizes.push_back(size);
  if (sizes.empty()) throw InputError("--min-bytes: expected at most --max-bytes");
  return sizes;
}

std::vector<Assignment> assignments(const CollectivesOptions& options) {
  std::vector<Assignment> values = parse_assignments(options.set);
  if (!options.nccl.empty()) values.push_back(assignment("software.nccl", options.nccl));
  return values;
}

/// The collective of the measured table, or without a table the one that the options ask for.
MeasuredCollective measured_collective(const CollectivesOptions& options, const Platform& platform) {
  if (!options.measured.empty())
    return measured_collective(read_nccl_tests(read_file(options.measured), options.measured),
                               options.measured, options.asked);
  const auto& names = nccl_operation_names();
  const auto found = std::ranges::find(names, options.asked.name);
  MeasuredCollective asked;
  if (found != names.end()) asked.operation = static_cast<NcclOperation>(found - names.begin());
  asked.ranks = options.asked.ranks > 0 ? options.asked.ranks : platform.devices();
  asked.per_node = options.asked.per_node;
  if (asked.ranks < 2) throw InputError("--gpus: expected at least 2");
  return asked;
}

/// nccl-tests' width of times.
std::string time_text(Seconds time) {
  const double micro = 1e6 * time.value;
  return fmt::format("{:.{}f}", micro, micro < 100 ? 2 : micro < 1e4 ? 1 : 0);
}

double giga_per_second(Bytes size, Seconds time) {
  return size.value / time.value / 1e9;
}

/// Elements that a rank sends or receives, as nccl-tests counts them.
double elements(NcclOperation operation, Bytes size, int ranks) {
  const bool shared = operation == NcclOperation::all_gather || operation == NcclOperation::reduce_scatter ||
                      operation == NcclOperation::all_to_all;
  return std::floor(size.value / 4 / (shared ? ranks : 1));
}

void print_header(const Platform& platform, const NcclRanks& group, NcclOperation operation, bool measured) {
  const NcclChannels channels = nccl_channels(platform, group);
  fmt::print("# {}: {} ranks on {} node{} of {}, {}, {} channel{}\n",
             nccl_operation_names()[ordinal(operation)], group.ranks(), group.nodes,
             group.nodes == 1 ? "" : "s", platform.name, library_text(platform.software), channels.channels,
             channels.channels == 1 ? "" : "s");
  if (std::isfinite(channels.rings.value))
    fmt::print("# rings inside a node: {:.1f} GB/s\n", channels.rings.value / 1e9);
  if (std::isfinite(channels.network.value))
    fmt::print("# NICs of a node: {:.1f} GB/s\n", channels.network.value / 1e9);
  fmt::print("#\n#       size         count      type   redop     time   algbw   busbw      algo   proto{}\n",
             measured ? "  measured   busbw   error" : "");
  fmt::print("#        (B)    (elements)                       (us)  (GB/s)  (GB/s)                {}\n",
             measured ? "      (us)  (GB/s)     (%)" : "");
}

void print_row(const CollectiveRow& row, NcclOperation operation, int ranks) {
  const bool sums = operation == NcclOperation::all_reduce || operation == NcclOperation::reduce_scatter ||
                    operation == NcclOperation::reduce;
  const double rate = giga_per_second(row.size, row.estimate.time), factor = bus_factor(operation, ranks);
  fmt::print("{:>12.0f}  {:>12.0f}     float  {:>6}  {:>7}  {:>6.2f}  {:>6.2f}  {:>8}  {:>6}", row.size.value,
             elements(operation, row.size, ranks), sums ? "sum" : "none", time_text(row.estimate.time), rate,
             factor * rate, to_string(row.estimate.algorithm), to_string(row.estimate.protocol));
  if (row.measured) {
    fmt::print("  {:>8}  {:>6.2f}  {:>+6.1f}", time_text(*row.measured),
               factor * giga_per_second(row.size, *row.measured),
               100 * (row.estimate.time / *row.measured - 1));
  }
  fmt::print("\n");
}

void print_errors(const std::vector<CollectiveRow>& rows) {
  for (const auto& [range, name] :
       {std::pair{SizeRange::from, "from 1 MiB on"}, std::pair{SizeRange::below, "below 1 MiB"}}) {
    const auto error = mean_error(rows, range);
    if (error)
      fmt::print("# error {}: {:.1f} % (geometric mean; bias {:+.1f} %)\n", name, 100 * *error,
                 100 * *bias(rows, range));
  }
}

std::string csv_of(const std::vector<CollectiveRow>& rows, NcclOperation operation, const NcclRanks& group) {
  std::string text =
      "collective,ranks,nodes,size_bytes,seconds,algbw_gb_per_second,busbw_gb_per_second,algorithm,protocol,"
      "measured_seconds\n";
  for (const CollectiveRow& row : rows) {
    const double rate = giga_per_second(row.size, row.estimate.time);
    text += fmt::format(
        "{},{},{},{:.0f},{:.9g},{:.6g},{:.6g},{},{},{}\n", nccl_operation_names()[ordinal(operation)],
        group.ranks(), group.nodes, row.size.value, row.estimate.time.value, rate,
        bus_factor(operation, group.ranks()) * rate, to_string(row.estimate.algorithm),
        to_string(row.estimate.protocol), row.measured ? fmt::format("{:.9g}", row.measured->value) : "");
  }
  return text;
}

void run_collectives(const CollectivesOptions& options) {
  if (options.tables) return fmt::print("{}", to_text(measured_tables()));
  if (options.platform.empty()) throw InputError("collectives: expected a platform, or --measured-tables");
  Library library;
  const Platform platform = platform_with(library, options.platform, assignments(options));
  if (platform.software.nccl == 0)
    throw InputError(
        fmt::format("platform {}: does not name NCCL; add software: {{nccl: \"2.18\"}}, or give --nccl 2.18",
                    platform.name));
  const MeasuredCollective measured = measured_collective(options, platform);
  const NcclOperation operation = measured.operation;
  const int ranks = measured.ranks;
  const NcclRanks group = first_devices(platform, ranks, measured.per_node);
  const bool compares = !measured.tests.rows.empty();
  const auto rows = compares ? collective_rows(platform, group, operation, measured.tests)
                             : collective_rows(platform, group, operation, sizes_of(options));
  print_header(platform, group, operation, compares);
  for (const CollectiveRow& row : rows) print_row(row, operation, ranks);
  print_errors(rows);
  if (const std::string doubts = measured.tests.doubts(); !doubts.empty()) fmt::print("# note: {}\n", doubts);
  const std::string csv = csv_of(rows, operation, group);
  add_json_rows("collectives", read_csv(csv, "collectives.csv"));
  if (options.output.empty()) return;
  check_writable(options.output);
  write_atomically(std::filesystem::path(options.output) / "collectives.csv", csv);
}

}  // namespace

void add_collectives(Command app) {
  const Command command = app.add_subcommand(
      "collectives", "Print the times of NCCL's collectives on a platform, as nccl-tests prints them.");
  auto options = std::make_shared<CollectivesOptions>();
  command.add_option("platform", options->platform, "Name in platforms/, or a path that ends in .yaml.");
  command
      .add_option("--collective", options->asked.name,
                  "Collective operation. Default: that of the measured table, or all_reduce.")
      .one_of(nccl_operation_names());
  command
      .add_option("--gpus", options->asked.ranks,
                  "Number of ranks. Default: that of the measured table, or all devices.")
      .range(2, 1 << 20);
  command
      .add_option("--gpus-per-node", options->asked.per_node,
                  "Ranks on each node. Default: one for each device of a node.")
      .range(1, 256);
  command.add_option("--nccl", options->nccl, "Version of NCCL. Default: software.nccl of the platform.")
      .type_name("VERSION");
  command.add_option("--set", options->set, "Replace a value of the platform, such as network.nics=4.")
      .type_name("KEY=VALUE")
      .one_value();
  command.add_option("--min-bytes", options->min_bytes, "Smallest size.").type_name("SIZE").show_default();
  command.add_option("--max-bytes", options->max_bytes, "Largest size.").type_name("SIZE").show_default();
  command.add_option("--factor", options->factor, "Factor from one size to the next.")
      .range(2, 1024)
      .show_default();
  const Option measured =
      command.add_option("--measured", options->measured, "Text or JSON of nccl-tests to compare with.")
          .type_name("FILE");
  command
      .add_flag("--measured-tables", options->tables,
                "Compare with all tables of validate/data/nccl_tests.yaml and print their errors.")
      .excludes(measured);
  command.add_option("-o,--output", options->output, "Also write DIR/collectives.csv.").type_name("DIR");
  command.callback([=] { run_collectives(*options); }, Command::Json::yes);
  command.footer("Example: stepcast collectives dgx-a100 --nccl 2.18 --gpus 16");
}

}  // namespace stepcast
