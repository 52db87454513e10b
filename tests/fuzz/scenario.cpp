// A scenario file up to its simulation: reader, sweep, every kind of plan. Lines `#set KEY=VALUE` are texts
// of
// --set, lines `#over KEY=VALUES` those of a search.
#include "scenarios/reader/scenario.hpp"

#include <string>

#include "commands/search_space/search_space.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "tests/fuzz/input.hpp"

using namespace stepcast;

namespace {

std::vector<std::string> lines_after(std::string_view mark, std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = text.find(mark); at != std::string_view::npos; at = text.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size(), end = std::min(text.find('\n', begin), text.size());
    if (at == 0 || text[at - 1] == '\n') lines.emplace_back(text.substr(begin, end - begin));
  }
  return lines;
}

void build(const Scenario& scenario, const Point& point, Library& library) {
  refuses_or_reads([&] { build_experiment(scenario.document, middle_values(scenario, point), library); });
}

void search(const Scenario& scenario, const std::string& over, Library& library) {
  const auto keys = read_search_keys(over, scenario);
  Values values;
  for (const SearchKey& key : keys) values.push_back(value_at(key.parameter, 0.5));
  Point chosen = scenario.points.back();
  const std::vector<Assignment> found = search_values(keys, values);
  chosen.values.insert(chosen.values.end(), found.begin(), found.end());
  build(scenario, chosen, library);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Library library;  // of the repository's own files
  const std::string text(reinterpret_cast<const char*>(data), size);
  refuses_or_reads([&] {
    std::vector<Assignment> settings;
    for (const std::string& line : lines_after("#set ", text)) settings.push_back(parse_assignment(line));
    const MemoryFile file(text);
    const Scenario scenario = read_scenario(file.name(), settings);
    build(scenario, scenario.points.front(), library);
    build(scenario, scenario.points.back(), library);
    for (const std::string& line : lines_after("#over ", text)) search(scenario, line, library);
  });
  return 0;
}
