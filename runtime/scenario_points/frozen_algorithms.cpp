#include "runtime/scenario_points/frozen_algorithms.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "report/results/results.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

const AllReduceChoice& asked_choice(const Plan& plan, const Collective& collective) {
  return communicator_of(plan, collective).all_reduce;
}

/// The index of a row's word among `names`. @throws InputError naming `where`
std::size_t index_of(const Row& row, const char* column, const std::vector<std::string>& names,
                     const std::string& where) {
  const std::string word = row.text(column);
  const auto found = std::find(names.begin(), names.end(), word);
  if (found != names.end()) return found - names.begin();
  throw InputError(
      fmt::format("{}: {}: expected one of {}, got \"{}\"", where, column, fmt::join(names, ", "), word));
}

/// @param asked  how the scenario asks for the all-reduce: channels and pieces of the chosen algorithm
AllReduceChoice choice_of(const Row& row, AllReduceChoice asked, const std::string& where) {
  asked.algorithm = static_cast<Algorithm>(index_of(row, "algorithm", algorithm_names(), where));
  if (asked.algorithm == Algorithm::automatic)
    throw InputError(where + ": algorithm: expected the algorithm that was chosen, got \"automatic\"");
  if (asked.algorithm != Algorithm::hierarchical) return asked;
  asked.local = static_cast<LocalPart>(index_of(row, "inside_node", local_part_names(), where));
  asked.network = static_cast<NetworkPart>(index_of(row, "between_nodes", network_part_names(), where));
  return asked;
}

}  // namespace

std::filesystem::path all_reduce_file(const std::filesystem::path& folder) {
  return folder / "predicted-all-reduces.csv";
}

std::vector<Row> all_reduce_rows(const std::string& point, const Plan& plan,
                                 const AllReduceChoices& choices) {
  std::vector<Row> rows;
  for (const auto& [collective, choice] : choices) {
    Row& row = rows.emplace_back();
    row.set("point", point);
    row.set("collective", std::int64_t{collective.value});
    row.set("bytes", plan.collectives.at(collective.index()).buffer.size.value);
    row.set("algorithm", algorithm_names().at(ordinal(choice.algorithm)));
    if (choice.algorithm != Algorithm::hierarchical) continue;
    row.set("inside_node", local_part_names().at(ordinal(choice.local)));
    row.set("between_nodes", network_part_names().at(ordinal(choice.network)));
  }
  return rows;
}

AllReduceChoices choices_without_forecast(const Plan& plan) {
  AllReduceChoices choices;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& one = plan.collectives[i];
    if (!has_automatic_algorithm(plan, one)) continue;
    const Communicator& communicator = communicator_of(plan, one);
    const Group group{communicator.size, communicator.ranks_per_node};
    choices[CollectiveId(i)] = candidates(communicator.all_reduce, group).front();
  }
  return choices;
}

AllReduceChoices read_all_reduces(const std::filesystem::path& file, const std::string& point,
                                  const Plan& plan) {
  std::vector<CollectiveId> wanted;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    if (has_automatic_algorithm(plan, plan.collectives[i])) wanted.emplace_back(i);
  }
  if (wanted.empty()) return {};
  Results frozen;
  if (std::filesystem::exists(file)) frozen = read_csv(read_file(file), file.string());
  AllReduceChoices choices;
  for (const CollectiveId id : wanted) {
    const auto row = std::ranges::find_if(frozen.rows, [&](const Row& one) {
      return one.text("point") == point && one.number("collective").value_or(-1) == id.value;
    });
    if (row == frozen.rows.end()) {
      throw InputError(
          fmt::format("{}: expected the algorithm of all-reduce {} of point {}, which the forecast chooses "
                      "because of all_reduce: automatic, got none; run the validation again",
                      file.string(), id.value, point));
    }
    choices[id] = choice_of(*row, asked_choice(plan, plan.collectives[id.index()]),
                            fmt::format("{}: all-reduce {} of point {}", file.string(), id.value, point));
  }
  return choices;
}

}  // namespace stepcast
