#include "commands/collectives/measured_tables.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/os/atomic_file.hpp"
#include "report/text/text_table.hpp"

namespace stepcast {
namespace {

std::filesystem::path tables_folder() {
  return data_folder() / "validate/data/nccl_tests";
}

std::vector<Assignment> assignments(const YamlMap& map) {
  std::vector<Assignment> values;
  if (const auto set = map.maybe("set")) {
    for (const auto& [path, value] : set->any_map().entries()) values.push_back({path, value.node()});
  }
  return values;
}

MeasuredTable read_table(const YamlValue& value, Library& library) {
  const YamlMap map = value.map(
      {"name", "operation", "machine", "platform", "set", "ranks", "per_node", "nccl", "use", "source"});
  MeasuredTable table;
  table.name = map.at("name").text();
  table.machine = map.at("machine").text();
  table.nccl = map.at("nccl").text();
  table.source = map.at("source").text();
  table.use = static_cast<MeasuredTable::Use>(map.at("use").one_of({"fit", "test", "set_aside"}));
  table.ranks = static_cast<int>(map.at("ranks").integer(2, 1 << 20));
  const auto per_node = map.maybe("per_node");
  const auto operation = map.maybe("operation");
  const Platform platform = platform_with(library, map.at("platform").text(), assignments(map));
  const std::string file = (tables_folder() / (table.name + ".txt")).string();
  table.rows = collective_rows(
      platform,
      first_devices(platform, table.ranks, per_node ? static_cast<int>(per_node->integer(1, 256)) : 0),
      operation ? static_cast<NcclOperation>(operation->one_of(nccl_operation_names()))
                : NcclOperation::all_reduce,
      read_nccl_tests(read_file(file), file));
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

std::string mean_line(const std::vector<MeasuredTable>& tables, MeasuredTable::Use use,
                      const std::string& name) {
  Mean from, below;
  for (const MeasuredTable& one : tables) {
    if (one.use != use) continue;
    from.add(mean_error(one.rows, SizeRange::from));
    below.add(mean_error(one.rows, SizeRange::below));
  }
  return fmt::format("{:<10} from 1 MiB on {}, below {}\n", name + ":", from.text(), below.text());
}

}  // namespace

std::vector<MeasuredTable> measured_tables() {
  const YamlNode root = read_yaml(tables_folder() / "tables.yaml");
  Library library;
  std::vector<MeasuredTable> tables;
  for (const YamlValue& value : YamlValue(root, "").map({"tables"}).at("tables").list())
    tables.push_back(read_table(value, library));
  return tables;
}

std::string to_text(const std::vector<MeasuredTable>& tables) {
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
    text.rows.push_back(
        {one.name, uses[static_cast<std::size_t>(one.use)], one.nccl, std::to_string(one.ranks),
         std::to_string(one.rows.size()), percent(mean_error(one.rows, SizeRange::from)),
         percent(bias(one.rows, SizeRange::from), true), percent(mean_error(one.rows, SizeRange::below)),
         percent(bias(one.rows, SizeRange::below), true)});
  }
  return to_string(text) + "\nGeometric means of the error, each table once\n" +
         mean_line(tables, MeasuredTable::Use::test, "test") +
         mean_line(tables, MeasuredTable::Use::fit, "fit") +
         mean_line(tables, MeasuredTable::Use::set_aside, "set aside");
}

}  // namespace stepcast
