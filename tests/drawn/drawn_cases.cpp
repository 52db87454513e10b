#include <fmt/format.h>
#include <sys/time.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <string>

#include "core/cli/command_line.hpp"
#include "core/error.hpp"
#include "forecast/processes/process_pool.hpp"
#include "sim/simgrid/simgrid_flows.hpp"
#include "strategies/registry.hpp"
#include "tests/drawn/case_check.hpp"
#include "tests/drawn/law_checks.hpp"
#include "tests/drawn/yaml_text.hpp"

namespace stepcast::drawn {

/// Counts of all cases, and the largest difference of each law.
class Tally {
 public:
  void take(const CaseResult& result);
  void take(const Finding& finding, std::uint32_t number);  ///< @param number  of the case

  int broken() const { return broken_; }
  void write_csv(const std::filesystem::path& file) const;
  std::string text() const;  ///< the same as a table

 private:
  struct OfLaw {
    int cases = 0, broken = 0;
    double largest = 0, bound = 0;
    std::uint32_t number = 0;  ///< case with the largest difference
  };

  std::map<std::string, OfLaw> laws_;
  std::map<std::string, int> strategies_, platforms_;
  int cases_ = 0, refused_ = 0, other_size_ = 0, broken_ = 0;
};

void Tally::take(const CaseResult& result) {
  refused_ += result.refused();
  other_size_ += result.other_size;
  if (result.strategy.empty()) return;
  ++cases_;
  ++strategies_[result.strategy];
  ++platforms_[result.platform];
  for (const Finding& finding : result.findings) take(finding, result.number);
}

void Tally::take(const Finding& finding, std::uint32_t number) {
  OfLaw& law = laws_[finding.law];
  ++law.cases;
  law.broken += finding.broken() ? 1 : 0;
  broken_ += finding.broken() ? 1 : 0;
  if (finding.difference > law.largest) law.number = number;
  law.largest = std::max(law.largest, finding.difference);
  law.bound = std::max(law.bound, finding.bound);
}

void Tally::write_csv(const std::filesystem::path& file) const {
  std::ofstream out(file);
  out << "kind,name,count,broken,bound,largest_difference,case\n";
  out << fmt::format("all,cases,{},{},,,\nall,refused,{},,,,\nall,other size,{},,,,\n", cases_, broken_,
                     refused_, other_size_);
  for (const auto& [name, law] : laws_)
    out << fmt::format("law,\"{}\",{},{},{},{:.3g},{}\n", name, law.cases, law.broken,
                       std::isfinite(law.bound) ? fmt::format("{:g}", law.bound) : "", law.largest,
                       law.number);
  for (const auto& [name, count] : strategies_) out << fmt::format("strategy,{},{},,,,\n", name, count);
  for (const auto& [name, count] : platforms_) out << fmt::format("platform,{},{},,,,\n", name, count);
}

std::string Tally::text() const {
  std::string text = fmt::format("{} cases, and {} scenarios that were refused and {} of another size\n",
                                 cases_, refused_, other_size_);
  for (const auto& [name, law] : laws_)
    text += fmt::format("{:28} {:7} times, {:4} broken, largest difference {:.3g} (case {}), bound {:g}\n",
                        name, law.cases, law.broken, law.largest, law.number, law.bound);
  return text;
}

namespace {

namespace fs = std::filesystem;

struct Options {
  int count = 500, seed = 1, first = 0, processes = 2;
  std::string only, folder = "drawn-cases";
  bool all = false;  ///< every scenario is written, with all that the laws found
};

/// Processor time after which a case is left [s]: few asynchronous ones have more messages than is known
/// before.
constexpr int kMostSeconds = 100;

void limit_processor_time() {
  itimerval limit{};
  limit.it_value.tv_sec = kMostSeconds;
  setitimer(ITIMER_PROF, &limit, nullptr);  // the signal ends the process
}

fs::path file_of(const Options& options, const char* what, std::size_t number) {
  return fs::path(options.folder) / fmt::format("{}-{}-{}.yaml", what, options.seed, number);
}

DrawnFrom drawn_from(const Options& options) {
  return {static_cast<std::uint64_t>(options.seed), options.only};
}

/// What a broken law says, as lines for a person.
std::string report(const Finding& finding, const fs::path& file) {
  const auto bar = finding.command.find('|');
  std::string text = fmt::format(
      "# {}: {:.9g} s against {:.9g} s, a difference of {:.3g}; at most {:.3g}\n# {}\n", finding.law,
      finding.value, finding.reference, finding.difference, finding.bound, finding.forms);
  for (const std::string& form : {finding.command.substr(0, bar), finding.command.substr(bar + 1)})
    text += fmt::format("# stepcast run {} --results-only --draws 1{}\n", file.string(), form);
  return text;
}

/// Writes the scenario of a case that breaks a law, without the keys that do not matter, and with what the
/// law says before it.
void write_difference(const CaseResult& result, const Finding& broken, const fs::path& file) {
  YamlNode scenario = parse_yaml(result.scenario, "drawn.yaml");
  Finding shown = broken;
  for (const Law& law : laws()) {
    Trial trial(scenario);
    const Findings found = findings_of(law, trial);
    if (std::ranges::none_of(found,
                             [&](const Finding& one) { return one.law == broken.law && one.broken(); }))
      continue;
    scenario = minimized(std::move(scenario), law, broken.law);
    Trial shortest(scenario);
    for (const Finding& one : findings_of(law, shortest)) {
      if (one.law == broken.law && one.broken()) shown = one;
    }
    break;
  }
  std::ofstream(file) << report(shown, file) << yaml_text(scenario);
}

/// Draws and checks a case. While it runs, its scenario lies in a file, which stays there if the process
/// dies.
std::string checked(const Options& options, std::size_t task) {
  limit_processor_time();
  const auto number = options.first + static_cast<std::uint32_t>(task);
  const fs::path running = file_of(options, "running", number);
  fs::remove(file_of(options, "difference", number));  // of an earlier run
  const CaseResult result = check_case(
      drawn_from(options), number, [&](const std::string& scenario) { std::ofstream(running) << scenario; });
  const auto broken = std::ranges::find_if(result.findings, &Finding::broken);
  if (broken != result.findings.end())
    write_difference(result, *broken, file_of(options, "difference", number));
  if (options.all) {
    const fs::path file = file_of(options, "case", number);
    std::ofstream out(file);
    out << result.scenario;
    for (const Finding& one : result.findings) out << report(one, file);
  }
  fs::remove(running);
  return to_text(result);
}

class Checks {
 public:
  explicit Checks(const Options& options) : options_(options) {}

  int run() {
    check_name();
    fs::create_directories(options_.folder);
    const std::size_t count = options_.count;
    results_.resize(count);
    TaskProgress progress(2 * count, "runs");
    run_shared(
        count, [this](std::size_t task) { return checked(options_, task); },
        {options_.processes, simgrid_is_used_up},
        [&](std::size_t task, const TaskResult& result) {
          take(task, result, progress);
          progress.one_done();
        });
    repeat(progress);
    progress.clear();
    tally_.write_csv(fs::path(options_.folder) / "cases.csv");
    std::cout << tally_.text();
    return tally_.broken() > 0 ? 1 : 0;
  }

 private:
  void check_name() const {
    std::vector<std::string> names = shipped_platforms();
    for (const std::string& name : strategy_names()) names.push_back(name);
    if (!options_.only.empty() && std::ranges::count(names, options_.only) == 0)
      throw InputError("--only: expected a strategy or a platform, got \"" + options_.only + "\"");
  }

  void take(std::size_t task, const TaskResult& result, TaskProgress& progress) {
    const auto number = options_.first + task;
    const fs::path file = file_of(options_, "difference", number);
    if (result.end == TaskResult::End::done) {
      results_[task] = read_case(result.text);
    } else {
      const bool stopped = result.text.find(fmt::format("signal {}", SIGPROF)) != std::string::npos;
      results_[task].findings = {{stopped ? fmt::format("laws within {} s", kMostSeconds) : "ends", 0, 0, 1,
                                  stopped ? kNoBound : 0.0, result.text, " |"}};
      results_[task].strategy = "unknown";
      results_[task].number = number;
      std::error_code error;
      fs::rename(file_of(options_, "running", number), file, error);
    }
    tally_.take(results_[task]);
    std::set<std::string> told;
    for (const Finding& finding : results_[task].findings) {
      if (!finding.broken() || !told.insert(finding.law).second) continue;
      progress.clear();
      std::cout << report(finding, file) << std::flush;
    }
  }

  /// Simulates every case once more, in the opposite order, and so in other processes.
  void repeat(TaskProgress& progress) {
    std::vector<const CaseResult*> cases;
    for (const CaseResult& one : results_) {
      if (one.whole > 0) cases.insert(cases.begin(), &one);
    }
    const auto work = [&](std::size_t task) {
      limit_processor_time();
      return fmt::format("{:.17g}",
                         whole_of(drawn_from(options_), cases[task]->number, cases[task]->attempt));
    };
    run_shared(
        cases.size(), work, {options_.processes, simgrid_is_used_up},
        [&](std::size_t task, const TaskResult& result) {
          progress.one_done();
          const double whole = result.end == TaskResult::End::done ? std::stod(result.text) : 0;
          const Finding finding{
              "two processes",         whole, cases[task]->whole, whole == cases[task]->whole ? 0.0 : 1.0, 0,
              "other process | first", " |"};
          tally_.take(finding, cases[task]->number);
          if (!finding.broken()) return;
          progress.clear();
          const fs::path file = file_of(options_, "difference", cases[task]->number);
          std::ofstream(file) << report(finding, file)
                              << drawn_scenario(drawn_from(options_), cases[task]->number,
                                                cases[task]->attempt);
          std::cout << report(finding, file);
        });
  }

  Options options_;
  std::vector<CaseResult> results_;
  Tally tally_;
};

int run(int argc, const char* const* argv) {
  Options options;
  int code = 0;
  CommandLine line("drawn_cases", "", "Draws scenarios and checks laws that each of them keeps.");
  const Command command = line.command();
  command.add_option("--count", options.count, "Number of cases.").range(1, 10'000'000).show_default();
  command.add_option("--seed", options.seed, "Seed of the draws.").range(0, 1'000'000'000).show_default();
  command.add_option("--first", options.first, "Number of the first case.")
      .range(0, 1'000'000'000)
      .show_default();
  command.add_option("-j,--processes", options.processes, "Processes at the same time.")
      .range(1, 1024)
      .show_default();
  command.add_option("--only", options.only, "A strategy or platform that every case has.").type_name("NAME");
  command.add_option("-o,--output", options.folder, "Folder of the differences and of cases.csv.")
      .show_default();
  command.add_flag("--all", options.all, "Write every scenario, with all that was found out about it.");
  command.callback([&] { code = Checks(options).run(); });
  const int ended = line.run(argc, argv);
  return ended != 0 ? ended : code;
}

}  // namespace
}  // namespace stepcast::drawn

int main(int argc, char** argv) {
  return stepcast::drawn::run(argc, argv);
}
