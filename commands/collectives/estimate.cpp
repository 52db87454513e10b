#include "commands/collectives/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

std::optional<double> mean_of(const std::vector<CollectiveRow>& rows, SizeRange range, bool absolute) {
  double sum = 0;
  int count = 0;
  for (const CollectiveRow& row : rows) {
    if (!row.measured || (row.size >= kLargeSize) != (range == SizeRange::from)) continue;
    sum += absolute ? std::abs(row.log_error()) : row.log_error();
    ++count;
  }
  if (count == 0) return std::nullopt;
  return std::exp(sum / count) - 1;
}

}  // namespace

Platform platform_with(Library& library, const std::string& name, const std::vector<Assignment>& values) {
  const YamlNode node = command_line_name(name);
  YamlNode tree = library.tree(YamlValue(node, "platform"), "platforms");
  for (const Assignment& one : values) assign(tree, one);
  return library.platform(YamlValue(tree, ""));
}

NcclRanks first_devices(const Platform& platform, int ranks, int per_node) {
  const int all = platform.devices_per_node;
  if (per_node == 0) per_node = std::min(ranks, all);
  if (per_node > all)
    throw InputError(fmt::format("--gpus-per-node: expected at most {}, the devices of a node of {}, got {}",
                                 all, platform.name, per_node));
  if (ranks % per_node != 0)
    throw InputError(
        fmt::format("--gpus: expected a multiple of the {} devices of each node, got {}", per_node, ranks));
  NcclRanks group;
  group.nodes = ranks / per_node;
  if (group.nodes > platform.max_nodes)
    throw InputError(fmt::format("--gpus: {} devices, {} a node, are {} nodes; {} has at most {}", ranks,
                                 per_node, group.nodes, platform.name, platform.max_nodes));
  group.devices.resize(per_node);
  std::iota(group.devices.begin(), group.devices.end(), 0);
  return group;
}

double CollectiveRow::log_error() const {
  return measured ? std::log(estimate.time / *measured) : 0;
}

std::vector<CollectiveRow> collective_rows(const Platform& platform, const NcclRanks& group,
                                           NcclOperation operation, const std::vector<Bytes>& sizes) {
  const NcclChannels channels = nccl_channels(platform, group);
  std::vector<CollectiveRow> rows;
  for (const Bytes size : sizes)
    rows.push_back({size, nccl_time(platform.software, channels, operation, size), {}});
  return rows;
}

std::vector<CollectiveRow> collective_rows(const Platform& platform, const NcclRanks& group,
                                           NcclOperation operation, const NcclTests& measured) {
  const NcclChannels channels = nccl_channels(platform, group);
  std::vector<CollectiveRow> rows;
  for (const NcclTestsRow& row : measured.rows)
    rows.push_back({row.size, nccl_time(platform.software, channels, operation, row.size, RankParts::by_size),
                    row.time()});
  return rows;
}

std::optional<double> mean_error(const std::vector<CollectiveRow>& rows, SizeRange range) {
  return mean_of(rows, range, true);
}

std::optional<double> bias(const std::vector<CollectiveRow>& rows, SizeRange range) {
  return mean_of(rows, range, false);
}

namespace {

std::vector<Assignment> assignments(const YamlMap& map) {
  std::vector<Assignment> values;
  if (const auto set = map.maybe("set")) {
    for (const auto& [path, value] : set->any_map().entries()) values.push_back({path, value.node()});
  }
  return values;
}

MeasuredTable read_table(const YamlValue& value, Library& library) {
  const YamlMap map = value.map({"name", "operation", "machine", "platform", "set", "ranks", "per_node",
                                 "nccl", "use", "source", "printed"});
  MeasuredTable table;
  table.name = map.at("name").text();
  table.machine = map.at("machine").text();
  table.nccl = map.at("nccl").text();
  table.source = map.at("source").text();
  table.use = static_cast<MeasuredTable::Use>(map.at("use").one_of({"fit", "test", "set_aside"}));
  table.ranks = map.at("ranks").integer(2, 1 << 20);
  const auto per_node = map.maybe("per_node");
  const auto operation = map.maybe("operation");
  const Platform platform = platform_with(library, map.at("platform").text(), assignments(map));
  table.rows = collective_rows(
      platform, first_devices(platform, table.ranks, per_node ? per_node->integer(1, 256) : 0),
      operation ? static_cast<NcclOperation>(operation->one_of(nccl_operation_names()))
                : NcclOperation::all_reduce,
      read_nccl_tests(map.at("printed").text(), table.name));
  return table;
}

std::string percent(const std::optional<double>& share, bool sign = false) {
  if (!share) return "-";
  return sign ? fmt::format("{:+.1f}", 100 * *share) : fmt::format("{:.1f}", 100 * *share);
}

/// Each table counts once.
struct Mean {
  double sum = 0;
  int tables = 0;

  void add(const std::optional<double>& error) {
    if (!error) return;
    sum += std::log(1 + *error);
    ++tables;
  }
  std::string text() const {
    return tables == 0 ? "-"
                       : fmt::format("{:.1f} % ({} tables)", 100 * (std::exp(sum / tables) - 1), tables);
  }
};

/// The means of the tables of some uses, and how many of them have an aim's error or less.
std::string mean_line(const std::vector<MeasuredTable>& tables, const std::vector<MeasuredTable::Use>& uses,
                      const std::string& name) {
  constexpr double kAimFrom = 0.1, kAimBelow = 0.2;
  Mean from, below;
  int met_from = 0, met_below = 0;
  for (const MeasuredTable& one : tables) {
    if (std::ranges::find(uses, one.use) == uses.end()) continue;
    const auto error_from = mean_error(one.rows, SizeRange::from);
    const auto error_below = mean_error(one.rows, SizeRange::below);
    from.add(error_from);
    below.add(error_below);
    met_from += error_from.value_or(INFINITY) <= kAimFrom ? 1 : 0;
    met_below += error_below.value_or(INFINITY) <= kAimBelow ? 1 : 0;
  }
  return fmt::format("{:<14} from 1 MiB on {}, {} at most 10 %; below {}, {} at most 20 %\n", name + ":",
                     from.text(), met_from, below.text(), met_below);
}

}  // namespace

std::vector<MeasuredTable> measured_tables() {
  const YamlNode root = read_yaml(data_folder() / "validate/data/nccl_tests.yaml");
  Library library;
  std::vector<MeasuredTable> tables;
  for (const YamlValue& value : YamlValue(root, "").map({"tables"}).at("tables").list())
    tables.push_back(read_table(value, library));
  return tables;
}

std::string to_text(const std::vector<MeasuredTable>& tables) {
  using Use = MeasuredTable::Use;
  static const std::vector<std::string> uses{"fit", "test", "set aside"};
  Table text{{{"table", "", Align::left},
              {"use", "", Align::left},
              {"NCCL"},
              {"ranks"},
              {"rows"},
              {"error from 1 MiB", "%"},
              {"bias", "%"},
              {"error below", "%"},
              {"bias", "%"}},
             {}};
  for (const MeasuredTable& one : tables) {
    text.rows.push_back({one.name, uses[ordinal(one.use)], one.nccl, std::to_string(one.ranks),
                         std::to_string(one.rows.size()), percent(mean_error(one.rows, SizeRange::from)),
                         percent(bias(one.rows, SizeRange::from), true),
                         percent(mean_error(one.rows, SizeRange::below)),
                         percent(bias(one.rows, SizeRange::below), true)});
  }
  return to_string(text, terminal_width()) + "\nGeometric means of the error, each table once\n" +
         mean_line(tables, {Use::test}, "test") + mean_line(tables, {Use::fit}, "fit") +
         mean_line(tables, {Use::test, Use::fit}, "test and fit") +
         mean_line(tables, {Use::set_aside}, "set aside");
}

namespace {

NcclOperation operation_of(const NcclTests& tests, const std::string& asked, const std::string& file) {
  const std::string name = collective_of(tests, asked, file);
  const auto& names = nccl_operation_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw InputError(
        fmt::format("{}: a table of {}_perf; expected one of: {}", file, name, fmt::join(names, ", ")));
  return static_cast<NcclOperation>(found - names.begin());
}

/// The ranks that the user gives, else those of the table: its list of ranks, or busbw / algbw.
int ranks_of(const MeasuredCollective& measured, int asked) {
  if (asked > 0) return asked;
  const NcclTests& tests = measured.tests;
  if (tests.ranks > 0) return tests.ranks;
  const int ranks = ranks_of_bandwidths(measured.operation, tests.algorithm_bandwidth, tests.bus_bandwidth);
  if (ranks == 0)
    throw InputError(fmt::format(
        "{}:1:1: the table does not say how many ranks it had, and its bandwidths do not tell: give --gpus",
        measured.file));
  return ranks;
}

/// @throws InputError if the bandwidths of the table are not those of the collective over these ranks
void check_bandwidths(const MeasuredCollective& measured) {
  constexpr double kRounding = 0.03;  // of printed bandwidths from 1 GB/s on
  const NcclTests& tests = measured.tests;
  if (tests.algorithm_bandwidth < 1) return;
  const double factor = tests.bus_bandwidth / tests.algorithm_bandwidth;
  const double expected = bus_factor(measured.operation, measured.ranks);
  if (std::abs(factor - expected) <= kRounding) return;
  throw InputError(fmt::format(
      "{}:1:1: busbw / algbw is {:.3g} in this table, and {:.3g} for {} of {} ranks: give "
      "--collective and --gpus",
      measured.file, factor, expected, nccl_operation_names()[ordinal(measured.operation)], measured.ranks));
}

/// Ranks on each node: of the user, else of the hosts in the table; 0: not known.
int ranks_per_node(const MeasuredCollective& measured, int asked) {
  const NcclTests& tests = measured.tests;
  if (asked > 0 || tests.nodes == 0 || tests.ranks != measured.ranks) return asked;
  if (measured.ranks % tests.nodes != 0)
    throw InputError(
        fmt::format("{}:1:1: {} ranks on {} hosts: expected equally many on each; give --gpus-per-node",
                    measured.file, measured.ranks, tests.nodes));
  return measured.ranks / tests.nodes;
}

}  // namespace

MeasuredCollective measured_collective(NcclTests tests, const std::string& file,
                                       const AskedCollective& asked) {
  MeasuredCollective measured;
  measured.file = file;
  measured.operation = operation_of(tests, asked.name, file);
  measured.tests = std::move(tests);
  measured.ranks = ranks_of(measured, asked.ranks);
  if (measured.ranks < 2) throw InputError("--gpus: expected at least 2");
  check_bandwidths(measured);
  measured.per_node = ranks_per_node(measured, asked.per_node);
  return measured;
}

}  // namespace stepcast
