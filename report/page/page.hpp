#pragma once

#include <string>
#include <vector>

#include "report/plots/breakdown.hpp"
#include "report/plots/results_plots.hpp"
#include "report/plots/scaling.hpp"
#include "report/results/manifest.hpp"
#include "report/results/results.hpp"

namespace stepcast {

/// Where scaling ends and why, in a sentence, from the rows that have results. It is about the series with
/// the highest throughput at its most workers. Scaling ends at the most workers that keep half of the
/// efficiency of the series' first point, or before, where throughput is highest.
/// @param sweep  keys of the sweep
std::string answer_of(const Results& results, const std::vector<std::string>& sweep);

/// An assumption of a scenario, as text.
struct PageAssumption {
  std::string key, range, why;
};

/// The content of report.html.
struct Page {
  Results results = {};  ///< all rows, with those of points that failed
  Results published = {}, sensitivity = {};
  Manifest manifest = {};  ///< its date and command are not shown, so that equal results are equal pages
  std::string description = {}, scenario_text = {};
  std::vector<std::string> settings = {};  ///< `--set`
  std::vector<PageAssumption> assumptions = {};
  std::string change = {};  ///< what to change first, a sentence; may be empty
  std::vector<std::string> advice = {}, doubts = {};
  std::vector<std::string> measured = {};  ///< measurements beside their forecasts, and what to measure next
  std::vector<Row> measured_figures =
      {};  ///< `point`, `column`, `published` (the value) and `measured`: true
};

/// One HTML file without references to others: the answer in two sentences, charts, the table of points, what
/// helps, what is not known, published figures, assumptions, the scenario, inputs and version. Equal pages
/// give equal bytes. All text is escaped. The table has the first 2,000 points.
std::string to_html(const Page& page);

/// The style sheet and the script of the page (page.cpp).
extern const char* const kPageStyle;
extern const char* const kPageScript;

/// Text for HTML and SVG, in elements and in quoted attributes: markup characters are escaped, control
/// characters and invalid UTF-8 replaced.
std::string escaped(const std::string& text);

/// A coordinate of SVG with one decimal, so that equal results are equal bytes.
std::string px(double at);

/// SVG of throughput (both axes logarithmic) or efficiency [%] against workers: a line for each series with
/// its interval as a band, published figures as open diamonds, ideal scaling as a dashed line. Every mark has
/// its numbers as a title. Only the first 30 series are drawn. Empty if no series has two points.
std::string throughput_chart(const ScalingPlot& plot);
std::string efficiency_chart(const ScalingPlot& plot);

/// SVG with a horizontal stacked bar for each of the first 60 points. Empty without bars.
std::string breakdown_chart(const BreakdownPlot& plot);

/// SVG with a horizontal bar for each of the first 60 campaigns: shares of the devices' time, and the
/// makespan. Empty without bars.
std::string campaign_chart(const CampaignPlot& plot);

/// SVG with a horizontal bar for each assumption's share of the variance. Empty without shares.
std::string sensitivity_chart(const SensitivityPlot& plot);

}  // namespace stepcast
