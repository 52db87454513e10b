#include "commands/forecast.hpp"

#include <fmt/format.h>

#include <boost/random/sobol.hpp>
#include <cmath>
#include <functional>
#include <optional>

#include "commands/calibrate_draw.hpp"
#include "commands/forecast_jobs.hpp"
#include "commands/pool.hpp"
#include "commands/task_progress.hpp"
#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"

namespace stepcast {
namespace {

std::string calibration_name(std::size_t draw) {
  return fmt::format("calibration | draw {}", draw);
}

/// What a child sent.
Row row_of(const std::string& text) {
  Row row = read_json_lines(text + "\n", "simulation").rows.at(0);
  std::erase_if(row.cells, [](const auto& cell) { return cell.first == "scenario"; });
  return row;
}

/// Finished simulations of an earlier, interrupted run by name.
std::map<std::string, Row> read_journal(const std::filesystem::path& file) {
  std::map<std::string, Row> rows;
  if (file.empty() || !std::filesystem::exists(file)) return rows;
  const std::string text = read_file(file);
  const std::size_t whole = text.rfind('\n') + 1;                      // npos + 1 is 0
  if (whole < text.size()) std::filesystem::resize_file(file, whole);  // a torn line would spoil the next one
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
    std::vector<std::size_t> open;
    for (std::size_t draw = 0; draw < draws; ++draw) {
      const auto found = known_.find(calibration_name(draw));
      if (found != known_.end()) {
        store_calibration(draw, found->second);
        continue;
      }
      open.push_back(draw);
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
    play(tasks, "calibrations", [&](std::size_t task, const std::string& text) {
      const Row row = row_of(text);
      keep(calibration_name(open[task]), row);
      store_calibration(open[task], row);
    });
  }

  void store_calibration(std::size_t draw, const Row& row) {
    for (std::size_t i = 0; i < scenario_.calibrations.size(); ++i) {
      all_.calibrated[draw].push_back(row.number(fmt::format("value_{}", i)).value());
      all_.reached[draw].push_back(row.number(fmt::format("reached_{}", i)).value_or(NAN));
    }
  }

  void play(const std::vector<Task>& tasks, const char* what,
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
    std::vector<Job> open;
    for (const Job& job : jobs) {
      const auto found = known_.find(name_of(scenario_, job));
      found == known_.end() ? open.push_back(job) : take(job, std::move(found->second));
    }
    std::vector<Task> tasks;
    for (const Job& job : open) tasks.push_back([this, job] { return simulated(job); });
    play(tasks, "simulations", [&](std::size_t task, const std::string& text) {
      Row row = row_of(text);
      keep(name_of(scenario_, open[task]), row);
      take(open[task], std::move(row));
    });
  }

  /// A line in the journal.
  void keep(const std::string& name, const Row& row) const {
    if (options_.journal.empty()) return;
    append_line(options_.journal, to_json_line({scenario_.name, {}}, with_first("simulation", name, row)));
  }

  void take(const Job& job, Row row) {
    if (options_.inspect && job.draw == 0 && is_forecast(job)) options_.inspect(job.point, row);
    store(all_, job, std::move(row));
  }

  const Scenario& scenario_;
  Library& library_;
  const ForecastOptions& options_;
  std::map<std::string, Row> known_;  ///< of an earlier run
  Simulations all_;
};

}  // namespace

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
