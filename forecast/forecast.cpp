#include "forecast/forecast.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/random/sobol.hpp>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "forecast/fit_calibration.hpp"
#include "forecast/posterior.hpp"
#include "forecast/processes/process_pool.hpp"
#include "report/results/results.hpp"
#include "sim/simgrid/simgrid_flows.hpp"

namespace stepcast {
namespace {

constexpr std::array kLeftOut{Without::jitter, Without::noise};

/// The journal's text for a simulation's difference to its point.
std::string variant(const Job& job) {
  if (job.without == Without::nothing) return "as it is";
  return job.without == Without::jitter ? "without jitter" : "without noise";
}

}  // namespace

std::string name_of(const Scenario& scenario, const Job& job) {
  return fmt::format("{} | draw {} | {}", scenario.points[job.point].name, job.draw, variant(job));
}

std::vector<Job> jobs_of(const Scenario& scenario, const ForecastOptions& options,
                         const std::vector<std::size_t>& draws) {
  const std::size_t first = draws.front();
  std::vector<Job> jobs;
  for (const std::size_t point : options.points) {
    if (!options.failed.contains(point)) jobs.push_back({point, first});
  }
  for (const std::size_t point : options.points) {
    if (!options.what_if || options.failed.contains(point)) continue;
    for (const Without what : kLeftOut) {
      if (may_change(scenario, what)) jobs.push_back({point, first, what});
    }
  }
  // Most sweeps name the largest point last. It comes first here, so that no process idles for long at the
  // end.
  const std::set<std::size_t> others(draws.begin(), draws.end());
  for (const std::size_t draw : others) {
    if (draw == first) continue;
    for (auto point = options.points.rbegin(); point != options.points.rend(); ++point) {
      if (!options.failed.contains(*point)) jobs.push_back({*point, draw});
    }
  }
  return jobs;
}

bool is_forecast(const Job& job) {
  return job.without == Without::nothing;
}

void store(Simulations& all, const Job& job, Row row) {
  if (is_forecast(job)) {
    all.rows[job.draw][job.point] = std::move(row);
  } else if (row.number("step_seconds")) {
    all.without[job.point][job.without] = std::move(row);
  }
}

int extra_simulations(const Scenario& scenario) {
  const auto changes = [&](Without what) { return may_change(scenario, what); };
  return std::ranges::count_if(kLeftOut, changes);
}

namespace {

std::string calibration_name(std::size_t draw) {
  return fmt::format("calibration | draw {}", draw);
}

/// The rows in the text that a child process sent.
std::vector<Row> rows_of(const std::string& text) {
  std::vector<Row> rows = read_json_lines(text, "simulation").rows;
  for (Row& row : rows) std::erase_if(row.cells, [](const auto& cell) { return cell.first == "scenario"; });
  return rows;
}

/// Why a point fails: the reason of the first of its simulations that failed, in the order of jobs_of.
std::string reason_of(const Job& job, std::size_t reference, const std::string& text) {
  return job.draw != reference ? fmt::format("draw {} of the assumptions: {}", job.draw, text) : text;
}

/// A list of points for a message: at most five names.
std::string names_of(const Scenario& scenario, const std::set<std::size_t>& points) {
  std::string names;
  std::size_t count = 0;
  for (const std::size_t point : points) {
    if (++count > 5) return names + fmt::format("; and {} more", points.size() - 5);
    names += (count == 1 ? "" : "; ") + scenario.points[point].name;
  }
  return names;
}

class Forecaster {
 public:
  Forecaster(const Scenario& scenario, Library* library, const ForecastOptions& options, Journal known)
      : scenario_(scenario),
        library_(library),
        options_(options),
        known_(std::move(known)),
        journal_(options.journal) {}

  Simulations run() {
    const std::size_t draws = draw_count(scenario_, options_.draws);
    all_.without.resize(scenario_.points.size());
    for (std::size_t draw = 0; draw < draws; ++draw)
      all_.inputs.push_back(low_discrepancy(draw, scenario_.assumptions.size()));
    calibrate_new_draws();
    std::vector<std::size_t> chosen(draws);
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    const bool learns = !scenario_.measurements.empty() || options_.log_likelihood;
    if (learns && draws > 1) chosen = learned(draws);
    first_draw_ = chosen.front();
    simulate_jobs(jobs_of(scenario_, options_, chosen));
    if (learns) keep(chosen);
    journal_.flush();
    drop_failed_points();
    return std::move(all_);
  }

 private:
  /// The draws that the measurements leave. The first of them is their mean.
  std::vector<std::size_t> learned(std::size_t draws) {
    Library own;  // for the experiments of measured points where nothing may be simulated
    Library& library = library_ != nullptr ? *library_ : own;
    simulate_measured();
    const double misfit = all_.misfit.emplace(misfit_of(scenario_, all_.rows.front()));
    const ErrorModel model = error_model(scenario_, all_.rows.front(), library, options_.discrepancy, misfit);
    std::vector<std::vector<double>> cubes;
    for (std::size_t draw = draws; draw < 2 * draws; ++draw)
      cubes.push_back(low_discrepancy(draw, scenario_.assumptions.size()));
    return learned_draws(scenario_, model, cubes, all_,
                         {.simulate = [this] { simulate_measured(); },
                          .others = [&](std::size_t draw) { return log_likelihood(draw, library); }});
  }

  double log_likelihood(std::size_t draw, Library& library) const {
    if (!options_.log_likelihood) return 0;
    const std::vector<Assignment>& first = scenario_.points[options_.points.front()].values;
    const auto values = values_of(scenario_, first, all_.inputs[draw], all_.calibrated[draw]);
    return options_.log_likelihood(build_experiment(scenario_.document, values, library));
  }

  /// Simulates the measured points in the draws that are new.
  void simulate_measured() {
    calibrate_new_draws();
    const std::set<std::size_t> points = measured_points(scenario_);
    std::vector<Job> jobs;
    for (const std::size_t point : fed_in_points(scenario_)) jobs.push_back({point, 0});  // for error_model
    for (std::size_t draw = simulated_draws_; draw < all_.inputs.size(); ++draw) {
      for (const std::size_t point : points) jobs.push_back({point, draw});
    }
    simulated_draws_ = all_.inputs.size();
    simulate_jobs(std::move(jobs));
    for (const std::size_t point : points) {
      const auto failed = all_.failed.find(point);
      if (failed == all_.failed.end()) continue;
      throw InputError(fmt::format("measured: {} fails: {}", scenario_.points[point].name, failed->second));
    }
  }

  /// Simulates the jobs whose rows are not known yet.
  void simulate_jobs(std::vector<Job> jobs) {
    std::erase_if(jobs, [this](const Job& job) {
      return is_forecast(job) && !all_.rows[job.draw][job.point].cells.empty();
    });
    jobs_ = std::move(jobs);
    failed_jobs_.clear();
    simulate_all();
  }

  /// Puts these draws in the place of all.
  void keep(const std::vector<std::size_t>& chosen) {
    const auto only = [&](auto& list) {
      std::decay_t<decltype(list)> kept;
      for (const std::size_t draw : chosen) kept.push_back(list[draw]);
      list = std::move(kept);
    };
    only(all_.inputs);
    only(all_.calibrated);
    only(all_.reached);
    only(all_.rows);
  }

  void calibrate_new_draws() {
    const std::size_t first = all_.rows.size(), draws = all_.inputs.size();
    all_.rows.resize(draws, std::vector<Row>(scenario_.points.size()));
    all_.calibrated.resize(draws);
    all_.reached.resize(draws);
    if (scenario_.calibrations.empty()) return;
    std::vector<std::size_t> missing;
    for (std::size_t draw = first; draw < draws; ++draw) {
      const auto found = known_.find(calibration_name(draw));
      if (found != known_.end()) store_calibration(draw, found->second);
      if (found != known_.end()) continue;
      if (library_ == nullptr) throw InputError(fmt::format("no shard has the calibration of draw {}", draw));
      missing.push_back(draw);
    }
    calibrate(missing);
  }

  void calibrate(const std::vector<std::size_t>& draws) {
    const auto progress = progress_of(draws.size(), "calibrations");
    const auto work = [&](std::size_t i) {
      return to_json_line({}, to_row(calibrated_draw(scenario_, all_.inputs[draws[i]],
                                                     in_this_process(scenario_, *library_))));
    };
    std::map<std::size_t, TaskResult> failures;
    run_shared(draws.size(), work, {options_.processes, simgrid_is_used_up},
               [&](std::size_t i, const TaskResult& result) {
                 if (progress) progress->one_done();
                 if (result.end != TaskResult::End::done) return void(failures.emplace(i, result));
                 const Row row = rows_of(result.text + "\n").at(0);
                 journal_.add(scenario_.name, calibration_name(draws[i]), row);
                 store_calibration(draws[i], row);
               });
    if (!failures.empty()) throw_failure(failures.begin()->second);
  }

  void store_calibration(std::size_t draw, const Row& row) {
    Calibrated found = calibrated_of(row, scenario_.calibrations.size());
    all_.calibrated[draw] = std::move(found.values);
    all_.reached[draw] = std::move(found.reached);
  }

  std::unique_ptr<TaskProgress> progress_of(std::size_t tasks, const char* what) const {
    return options_.progress ? std::make_unique<TaskProgress>(tasks, what) : nullptr;
  }

  /// Builds the experiment of a job, or takes that of the last job of this process if only noise differs.
  const Experiment& experiment_of(const Job& job) {
    if (!built_ || built_point_ != std::pair(job.point, job.draw)) {
      const auto values = values_of(scenario_, scenario_.points[job.point].values, all_.inputs[job.draw],
                                    all_.calibrated[job.draw]);
      built_.reset();
      built_ = build_experiment(scenario_.document, values, *library_);
      built_point_ = {job.point, job.draw};
    }
    return *built_;
  }

  std::string simulated(const Job& job) {
    const Experiment& as_it_is = experiment_of(job);
    if (job.without == Without::nothing) return to_json_line({}, simulate_point(as_it_is));
    Experiment experiment = as_it_is;
    const bool same = !leave_out(job.without, experiment.noise);
    return to_json_line({}, same ? Row{} : simulate_point(experiment));
  }

  void simulate_all() {
    std::vector<std::size_t> missing;
    for (std::size_t job = 0; job < jobs_.size(); ++job) {
      const auto found = known_.find(name_of(scenario_, jobs_[job]));
      if (found == known_.end()) {
        missing.push_back(job);
        continue;
      }
      note_result(job, std::move(found->second));
      known_.erase(found);
    }
    if (library_ == nullptr) return refuse_missing(missing);
    const auto progress = progress_of(missing.size(), "simulations");
    const auto groups = groups_of(missing);
    const auto work = [&](std::size_t group) {
      std::string lines;
      for (const std::size_t job : groups[group]) lines += simulated(jobs_[job]) + "\n";
      return lines;
    };
    const SharedProcesses processes{options_.processes, simgrid_is_used_up};
    run_shared(groups.size(), work, processes, [&](std::size_t group, const TaskResult& result) {
      if (result.end == TaskResult::End::done) {
        const auto rows = rows_of(result.text);
        for (std::size_t i = 0; i < groups[group].size(); ++i) keep_result(groups[group][i], rows.at(i));
      } else {
        note_first_failure(groups[group].front(), result);
        for (const std::size_t job : groups[group]) keep_result(job, failed_row(result.text));
      }
      for (std::size_t i = 0; progress && i < groups[group].size(); ++i) progress->one_done();
    });
  }

  /// Jobs that one process does in a row. In a sweep of many points they are those that differ in noise only,
  /// so that their experiment is built once; otherwise each job is alone.
  std::vector<std::vector<std::size_t>> groups_of(const std::vector<std::size_t>& missing) const {
    constexpr std::size_t kManyJobs = 100;  // for each process
    const bool many = missing.size() >= kManyJobs * options_.processes;
    std::vector<std::vector<std::size_t>> groups;
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> known;  // by point and draw
    for (const std::size_t job : missing) {
      const auto [group, is_new] = known.emplace(std::pair(jobs_[job].point, jobs_[job].draw), groups.size());
      if (is_new || !many) groups.emplace_back();
      groups[many ? group->second : groups.size() - 1].push_back(job);
    }
    return groups;
  }

  void note_first_failure(std::size_t job, const TaskResult& result) {
    if (first_failure_ && job > first_failed_job_) return;
    first_failure_ = result;
    first_failed_job_ = job;
  }

  void keep_result(std::size_t job, Row row) {
    journal_.add(scenario_.name, name_of(scenario_, jobs_[job]), row);
    note_result(job, std::move(row));
  }

  void refuse_missing(const std::vector<std::size_t>& missing) const {
    if (missing.empty()) return;
    std::set<std::size_t> points;
    for (const std::size_t job : missing) points.insert(jobs_[job].point);
    throw InputError(fmt::format("{} of {} points have no results in these shards: {}", points.size(),
                                 scenario_.points.size(), names_of(scenario_, points)));
  }

  void note_result(std::size_t number, Row row) {
    const Job& job = jobs_[number];
    const std::string failure = failure_of(row);
    if (!failure.empty()) {
      const auto [known, is_new] = failed_jobs_.emplace(job.point, number);
      if (!is_new && known->second < number) return;
      known->second = number;
      all_.failed[job.point] = reason_of(job, first_draw_, failure);
      return;
    }
    if (options_.inspect && job.draw == first_draw_ && is_forecast(job)) options_.inspect(job.point, row);
    store(all_, job, std::move(row));
  }

  /// Removes what is known of failed points, which then differ in nothing but the reason.
  void drop_failed_points() {
    for (const auto& [point, reason] : options_.failed) all_.failed[point] = reason;
    if (!options_.part && all_.failed.size() == options_.points.size()) {
      if (first_failure_) throw_failure(*first_failure_);
      throw InputError(all_.failed.begin()->second);
    }
    for (const auto& [point, reason] : all_.failed) {
      for (auto& rows : all_.rows) rows[point] = {};
      all_.without[point].clear();
    }
  }

  const Scenario& scenario_;
  Library* library_;  ///< null: nothing may be simulated
  const ForecastOptions& options_;
  Journal known_;  ///< rows of an earlier run or of shards
  JournalWriter journal_;
  std::vector<Job> jobs_;
  std::size_t simulated_draws_ = 0;                 ///< draws that are simulated at the measured points
  std::size_t first_draw_ = 0;                      ///< the draw of jobs without noise
  std::map<std::size_t, std::size_t> failed_jobs_;  ///< by point: its first failed job
  std::optional<TaskResult> first_failure_;
  std::size_t first_failed_job_ = 0;
  std::optional<Experiment> built_;  ///< in a child process: the experiment of its last job
  std::pair<std::size_t, std::size_t> built_point_;
  Simulations all_;
};

}  // namespace

int draw_count(const Scenario& scenario, int asked) {
  constexpr int kFewest = 16, kMost = 32, kEachAssumption = 4;
  if (scenario.assumptions.empty()) return 1;
  if (asked > 0) return asked;
  return std::clamp<int>(kEachAssumption * scenario.assumptions.size(), kFewest, kMost);
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
  return Forecaster(scenario, &library, options, read_journal(options.journal)).run();
}

Simulations collected(const Scenario& scenario, Journal journal, const ForecastOptions& options) {
  return Forecaster(scenario, nullptr, options, std::move(journal)).run();
}

}  // namespace stepcast
