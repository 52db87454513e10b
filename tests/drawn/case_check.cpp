#include "tests/drawn/case_check.hpp"

#include <fmt/format.h>

#include <sstream>

#include "core/error.hpp"
#include "scenarios/reader/sweep.hpp"
#include "tests/drawn/yaml_text.hpp"

namespace stepcast::drawn {
namespace {

constexpr std::uint32_t kMostAttempts = 200;

/// Whether a case has as many messages and passes as its number says. A large one has too many for the small
/// budget of the rules of fidelity.
bool is_of_size(double work, std::uint32_t number) {
  return is_large(number) ? work >= kLargeWork && work <= 2 * kLargeWork
                          : work <= (number % 8 == 7 ? 40e3 : 6e3);
}

/// The path of the key that an error of the reader names: "drawn.yaml:1:49: strategy.group_size: 4 devices
/// ...".
std::string refused_key(const std::string& error) {
  const auto begin = error.find(": ");
  const auto end = begin == std::string::npos ? begin : error.find(": ", begin + 2);
  return end == std::string::npos ? "" : error.substr(begin + 2, end - begin - 2);
}

/// The trial of a scenario. A key that the reader refuses is removed, because it often needs another key that
/// was not drawn. Nothing if the scenario needs it, or with more than kMostRemoved of them.
std::optional<Trial> accepted(YamlNode scenario) {
  constexpr int kMostRemoved = 12;
  for (int removed = 0; removed <= kMostRemoved; ++removed) {
    try {
      return std::optional<Trial>(std::in_place, scenario);
    } catch (const InputError& error) {
      const std::string key = refused_key(error.what());
      if (key.empty() || key.starts_with("platform")) return std::nullopt;
      try {
        assign(scenario, {key, YamlNode()});
      } catch (const InputError&) {
        return std::nullopt;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Findings findings_of(const Law& law, Trial& trial) {
  Findings findings;
  try {
    law.check(trial, findings);
  } catch (const std::exception& error) {
    findings.push_back({"fault", 0, 0, 1, 0, fmt::format("{}: {}", law.name, error.what()), " |"});
  }
  return findings;
}

CaseResult check_case(const DrawnFrom& from, std::uint32_t number,
                      const std::function<void(const std::string&)>& starts) {
  CaseResult result{.number = number};
  for (; result.attempt < kMostAttempts; ++result.attempt) {
    const std::string text = drawn_scenario(from, number, result.attempt);
    starts(text);
    auto trial = accepted(parse_yaml(text, "drawn.yaml"));
    if (!trial) continue;
    if (!is_of_size(trial->work(), number)) {
      ++result.other_size;
      continue;
    }
    result.scenario = yaml_text(trial->scenario());
    starts(result.scenario);
    result.strategy = trial->experiment().strategy;
    result.platform = trial->experiment().platform.name;
    result.workers = trial->experiment().plan.workers;
    for (const Law& law : laws()) {
      if (trial->work() >= kLargeWork && !law.of_large) continue;
      Findings found = findings_of(law, *trial);
      result.findings.insert(result.findings.end(), found.begin(), found.end());
      if (!found.empty() && found.back().law == "fault")
        return result;  // SimGrid's engine is not to be used again
    }
    result.whole = trial->outcome({}).whole;
    return result;
  }
  return result;
}

double whole_of(const DrawnFrom& from, std::uint32_t number, std::uint32_t attempt) {
  auto trial = accepted(parse_yaml(drawn_scenario(from, number, attempt), "drawn.yaml"));
  return trial ? trial->outcome({}).whole : 0;
}

std::string to_text(const CaseResult& result) {
  std::string text =
      fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{:.17g}\n", result.number, result.attempt, result.other_size,
                  result.strategy, result.platform, result.workers, result.whole);
  for (const Finding& one : result.findings)
    text += fmt::format("{}\t{:.17g}\t{:.17g}\t{:.17g}\t{:.17g}\t{}\t{}\n", one.law, one.value, one.reference,
                        one.difference, one.bound, one.forms, one.command);
  return text;
}

CaseResult read_case(const std::string& text) {
  const auto cells_of = [](const std::string& line) {
    std::vector<std::string> cells;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, '\t');) cells.push_back(cell);
    cells.resize(7);
    return cells;
  };
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  const auto head = cells_of(line);
  CaseResult result{.number = static_cast<std::uint32_t>(std::stoul(head[0])),
                    .attempt = static_cast<std::uint32_t>(std::stoul(head[1])),
                    .other_size = std::stoi(head[2]),
                    .strategy = head[3],
                    .platform = head[4],
                    .workers = std::stoi(head[5]),
                    .whole = std::stod(head[6])};
  while (std::getline(lines, line)) {
    const auto cells = cells_of(line);
    result.findings.push_back({cells[0], std::stod(cells[1]), std::stod(cells[2]), std::stod(cells[3]),
                               std::stod(cells[4]), cells[5], cells[6]});
  }
  return result;
}

}  // namespace stepcast::drawn
