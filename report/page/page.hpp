#pragma once

#include <string>
#include <vector>

#include "report/page/answer.hpp"
#include "report/results/manifest.hpp"
#include "report/results/results.hpp"

namespace stepcast {

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
};

/// One HTML file without references to others: the answer in two sentences, charts, the table of points,
/// published figures, assumptions, the scenario, inputs and version. Equal pages give equal bytes. All text
/// is escaped. The table has the first 2,000 points.
std::string to_html(const Page& page);

/// The style sheet and the script of the page (page_style.cpp).
extern const char* const kPageStyle;
extern const char* const kPageScript;

}  // namespace stepcast
