#include "forecast/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/random/sobol.hpp>
#include <cmath>
#include <functional>
#include <optional>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "forecast/fit_calibration.hpp"
#include "forecast/process_pool.hpp"
#include "report/results/results_text.hpp"

namespace stepcast {
namespace {

constexpr std::array kDoubled{Doubled::compute, Doubled::bandwidth, Doubled::latency};
constexpr std::array kLeftOut{Without::jitter, Without::noise};

/// The journal's text for a simulation's difference to its point.
std::string variant(const Job& job) {
  if (job.doubled == Doubled::latency) return "half the latency";
  if (job.doubled != Doubled::none) return std::string("twice the ") + to_string(job.doubled);
  if (job.without == Without::nothing) return "as it is";
  return job.without == Without::jitter ? "without jitter" : "without noise";
}

}  // namespace

std::string name_of(const Scenario& scenario, const Job& job) {
  return fmt::format("{} | draw {} | {}", scenario.points[job.point].name, job.draw, variant(job));
}

std::vector<Job> jobs_of(const Scenario& scenario, const ForecastOptions& options, std::size_t draws) {
  std::vector<Job> jobs;
  for (std::size_t draw = 0; draw < draws; ++draw) {
    for (const std::size_t point : options.points) jobs.push_back({point, draw});
  }
  for (const std::size_t point : options.points) {
    if (!options.what_if) break;
    for (const Doubled resource : kDoubled) jobs.push_back({point, 0, resource});
    for (const Without what : kLeftOut) {
      if (may_change(scenario, what)) jobs.push_back({point, 0, Doubled::none, what});
    }
  }
  return jobs;
}

bool is_forecast(const Job& job) {
  return job.doubled == Doubled::none && job.without == Without::nothing;
}

void store(Simulations& all, const Job& job, Row row) {
  if (is_forecast(job)) {
    all.rows[job.draw][job.point] = std::move(row);
  } else if (job.without == Without::nothing) {
    all.doubled[job.point][job.doubled] = std::move(row);
  } else if (row.number("step_seconds")) {
    all.without[job.point][job.without] = std::move(row);
  }
}

int extra_simulations(const Scenario& scenario) {
  const auto changes = [&](Without what) { return may_change(scenario, what); };
  return static_cast<int>(kDoubled.size()) + static_cast<int>(std::ranges::count_if(kLeftOut, changes));
}

namespace {

std::string calibration_name(std::size_t draw) {
  return fmt::format("calibration | draw {}", draw);
}

/// The row in the text that a child process sent.
Row row_of(const std::string& text) {
  Row row = read_json_lines(text + "\n", "simulation").rows.at(0);
  std::erase_if(row.cells, [](const auto& cell) { return cell.first == "scenario"; });
  return row;
}

/// The finished simulations of an interrupted run, by name.
std::map<std::string, Row> read_journal(const std::filesystem::path& file) {
  std::map<std::string, Row> rows;
  if (file.empty() || !std::filesystem::exists(file)) return rows;
  const std::string text = read_file(file);
  const std::size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0
  // The last line may be incomplete; the next line would be appended to it.
  if (whole < text.size()) std::filesystem::resize_file(file, whole);
  for (Row& row : read_json_lines(text.substr(0, whole), file.string()).rows) {
    const std::string name = row.text("simulation");
    std::erase_if(row.cells,
                  [](const auto& cell) { return cell.first == "simulation" || cell.first == "scenario"; });
    rows[name] = std::move(row);
  }
  return rows;
}

class Forecaster {
 public:
  Forecaster(const Scenario& scenario, Library& library, const ForecastOptions& options)
      : scenario_(scenario), library_(library), options_(options) {}

  Simulations run() {
    const std::size_t draws = scenario_.assumptions.empty() ? 1 : static_cast<std::size_t>(options_.draws);
    for (std::size_t draw = 0; draw < draws; ++draw) {
      all_.inputs.push_back(low_discrepancy(draw, scenario_.assumptions.size()));
    }
    all_.rows.assign(draws, std::vector<Row>(scenario_.points.size()));
    all_.doubled.resize(scenario_.points.size());
    all_.without.resize(scenario_.points.size());
    known_ = read_journal(options_.journal);
    calibrate(draws);
    simulate_all(jobs_of(scenario_, options_, draws));
    return std::move(all_);
  }

 private:
  void calibrate(std::size_t draws) {
    all_.calibrated.assign(draws, {});
    all_.reached.assign(draws, {});
    if (scenario_.calibrations.empty()) return;
    std::vector<Task> tasks;
    std::vector<std::size_t> missing;
    for (std::size_t draw = 0; draw < draws; ++draw) {
      const auto found = known_.find(calibration_name(draw));
      if (found != known_.end()) {
        store_calibration(draw, found->second);
        continue;
      }
      missing.push_back(draw);
      tasks.push_back([this, draw] {
        const Calibrated found_now = calibrated_draw(scenario_, all_.inputs[draw], library_);
        Row row;
        for (std::size_t i = 0; i < found_now.values.size(); ++i) {
          row.set(fmt::format("value_{}", i), found_now.values[i]);
          row.set(fmt::format("reached_{}", i), found_now.reached[i]);
        }
        return to_json_line({}, row);
      });
    }
    run_with_progress(tasks, "calibrations", [&](std::size_t task, const std::string& text) {
      const Row row = row_of(text);
      add_to_journal(calibration_name(missing[task]), row);
      store_calibration(missing[task], row);
    });
  }

  void store_calibration(std::size_t draw, const Row& row) {
    for (std::size_t i = 0; i < scenario_.calibrations.size(); ++i) {
      all_.calibrated[draw].push_back(row.number(fmt::format("value_{}", i)).value());
      all_.reached[draw].push_back(row.number(fmt::format("reached_{}", i)).value_or(NAN));
    }
  }

  void run_with_progress(const std::vector<Task>& tasks, const char* what,
                         const std::function<void(std::size_t, const std::string&)>& done) {
    std::optional<TaskProgress> progress;
    if (options_.progress) progress.emplace(tasks.size(), what);
    run_tasks(tasks, options_.processes, [&](std::size_t task, const std::string& text) {
      done(task, text);
      if (progress) progress->one_done();
    });
  }

  std::string simulated(const Job& job) {
    const auto values = values_of(scenario_, scenario_.points[job.point].values, all_.inputs[job.draw],
                                  all_.calibrated[job.draw]);
    Experiment experiment = build_experiment(scenario_.document, values, library_);
    const bool same = job.without != Without::nothing && !leave_out(job.without, experiment.noise);
    return to_json_line({}, same ? Row{} : simulate_point(experiment, job.doubled));
  }

  void simulate_all(const std::vector<Job>& jobs) {
    std::vector<Job> missing;
    for (const Job& job : jobs) {
      const auto found = known_.find(name_of(scenario_, job));
      found == known_.end() ? missing.push_back(job) : inspect_and_store(job, std::move(found->second));
    }
    std::vector<Task> tasks;
    for (const Job& job : missing) tasks.push_back([this, job] { return simulated(job); });
    run_with_progress(tasks, "simulations", [&](std::size_t task, const std::string& text) {
      Row row = row_of(text);
      add_to_journal(name_of(scenario_, missing[task]), row);
      inspect_and_store(missing[task], std::move(row));
    });
  }

  void add_to_journal(const std::string& name, const Row& row) const {
    if (options_.journal.empty()) return;
    append_line(options_.journal, to_json_line({scenario_.name, {}}, with_first("simulation", name, row)));
  }

  void inspect_and_store(const Job& job, Row row) {
    if (options_.inspect && job.draw == 0 && is_forecast(job)) options_.inspect(job.point, row);
    store(all_, job, std::move(row));
  }

  const Scenario& scenario_;
  Library& library_;
  const ForecastOptions& options_;
  std::map<std::string, Row> known_;  ///< rows of an earlier run, by name
  Simulations all_;
};

}  // namespace

std::vector<double> over_draws(const Simulations& all, std::size_t point, const std::string& column) {
  std::vector<double> values;
  for (const auto& rows : all.rows) {
    if (const auto value = rows[point].number(column)) values.push_back(*value);
  }
  return values;
}

std::vector<double> low_discrepancy(std::size_t draw, std::size_t dimensions) {
  if (dimensions == 0) return {};
  boost::random::sobol points(dimensions);  // its first point is the middle
  points.discard(draw * dimensions);
  std::vector<double> values(dimensions);
  for (double& value : values) value = std::ldexp(static_cast<double>(points()), -64);
  return values;
}

Simulations forecast(const Scenario& scenario, Library& library, const ForecastOptions& options) {
  return Forecaster(scenario, library, options).run();
}

}  // namespace stepcast
