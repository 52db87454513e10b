#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "commands/validate/freeze_forecast.hpp"
#include "report/statistics/statistics.hpp"
#include "validate/compare/point_comparison.hpp"

namespace stepcast {

/// Draws two plots. scatter.svg: predicted against measured step times. breakdown.svg: two bars per point,
/// the forecast and the real run, each divided into compute, exposed communication and waiting, which shows
/// the cause of an error. Prints gnuplot's error messages.
void plot_validation(const std::vector<PointComparison>& comparisons, const std::string& name,
                     const std::filesystem::path& folder);

/// Draws scatter.svg for any column.
void plot_comparison(const std::vector<PointComparison>& comparisons, const std::string& column,
                     const std::filesystem::path& folder);

/// Writes the forecast before its points are run, with the hashes of its files and of `all_reduce_file`, and
/// prints its hash.
void freeze(const RealForecast& predicted, const std::filesystem::path& folder);

/// Compares the forecast with the samples that the ranks wrote into `folder`. Writes samples.csv and
/// measured.csv.
/// @param statistic  makes one step time of a point's runs
std::vector<PointComparison> compare_runs(const Results& predicted, const std::string& cluster, int ranks,
                                          StepStatistic statistic, const std::filesystem::path& folder);

/// The folder of one of several forecasts, which are counted from 1.
std::filesystem::path forecast_folder(const std::filesystem::path& folder, std::size_t forecast);

/// Keeps the frozen files of a forecast, and the files that it was made from, in the folder of the forecast.
/// @param measured  names of files in `folder`
void keep_forecast(const std::vector<std::string>& measured, std::size_t forecast,
                   const std::filesystem::path& folder);

/// Joins the forecasts of a validation: predicted.csv gets the mean forecast of each point, and
/// predicted.sha256 the hashes of all frozen files.
/// @param forecasts  all of them: a row for each point, in the same order
/// @return the mean forecast; its texts, such as the algorithm, are those of the first one
RealForecast join_forecasts(const std::vector<RealForecast>& forecasts, const std::filesystem::path& folder);

/// One line for each forecast: its errors against the runs that followed it.
std::vector<std::string> forecast_lines(const std::vector<RealForecast>& forecasts, StepStatistic statistic,
                                        const std::filesystem::path& folder);

/// Compares the forecast with the samples in `folder`: tables, plots, loss and accuracy, and the time to the
/// target loss.
void report_validation(const RealForecast& forecast, const std::string& cluster, int ranks,
                       StepStatistic statistic, const std::filesystem::path& folder);

/// Text such as "12 runs measured so far: FOLDER/samples.jsonl", for a validation that did not finish.
std::string measured_so_far(const std::filesystem::path& folder);

}  // namespace stepcast
