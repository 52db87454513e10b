#include "strategies/server_figures.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stepcast {
namespace {

const std::vector<double>& list(const Records& records, const char* name) {
  static const std::vector<double> none;
  const auto found = records.find(name);
  return found == records.end() ? none : found->second;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void add_utilization(const Records& records, const std::string& who, Figures& figures) {
  const double busy = sum(list(records, (who + "_busy").c_str()));
  const double idle = sum(list(records, (who + "_idle").c_str()));
  if (busy + idle > 0) figures.emplace_back(who + "_utilization", busy / (busy + idle));
}

/// Of updates that are not the first of their worker; of all, where there are no others.
const std::vector<double>& later_updates(const Records& records) {
  const auto& later = list(records, "staleness");
  return later.empty() ? list(records, "first_staleness") : later;
}

void add_staleness(std::vector<double> staleness, Figures& figures) {
  if (staleness.empty()) return;
  const auto count = static_cast<double>(staleness.size());
  const auto p95 = staleness.begin() + static_cast<std::ptrdiff_t>(std::ceil(0.95 * count)) - 1;
  std::nth_element(staleness.begin(), p95, staleness.end());
  figures.emplace_back("staleness_mean", sum(staleness) / count);  // whole numbers: the order is no matter
  figures.emplace_back("staleness_p95", *p95);
  figures.emplace_back("staleness_max", *std::max_element(p95, staleness.end()));
}

void add_knee(double own_seconds, double updates, const Records& records, Figures& figures) {
  if (own_seconds <= 0 || updates <= 0) return;
  const double master = sum(list(records, "server_busy")) / updates;
  figures.emplace_back("master_seconds", master);
  if (master > 0) figures.emplace_back("knee_workers", 1 + own_seconds / master);
}

}  // namespace

Figures server_figures(const ServerCounts& counts, const Records& records, double seconds) {
  Figures figures;
  add_staleness(later_updates(records), figures);
  add_utilization(records, "server", figures);
  add_utilization(records, "sub_master", figures);
  figures.emplace_back("updates_per_second", counts.updates_a_step / seconds);
  add_knee(counts.own_seconds, static_cast<double>(list(records, "applied").size()), records, figures);
  const auto& dropped = list(records, "dropped");
  if (counts.mode == ServerRules::Mode::synchronous) {
    const std::size_t taken = list(records, "staleness").size() + list(records, "first_staleness").size();
    const double all = static_cast<double>(dropped.size() + taken);
    figures.emplace_back("dropped_share", all > 0 ? static_cast<double>(dropped.size()) / all : 0);
  }
  const auto& lead = list(records, "lead");
  if (!lead.empty()) figures.emplace_back("staleness_lead", *std::max_element(lead.begin(), lead.end()));
  return figures;
}

}  // namespace stepcast
