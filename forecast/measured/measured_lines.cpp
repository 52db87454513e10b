#include "forecast/measured/measured_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/text.hpp"
#include "forecast/discrepancy.hpp"
#include "forecast/measured/measured_memory.hpp"
#include "report/statistics/statistics.hpp"

namespace stepcast {
namespace {

enum class RangeEnd { low, high };

/// What an assumption at an end of its range may mean, by a part of its key.
struct Doubt {
  const char* key;
  RangeEnd end;
  const char* question;
};

constexpr const char* kSlowNetwork =
    "the network is slower than its NICs: is GPUDirect on, and are all NICs in use?";
constexpr const char* kSlowLinks =
    "links inside a server are slow: do messages between devices pass through host memory?";
constexpr const char* kLateMessages =
    "messages between servers start late: does RDMA work, or are these sockets?";

constexpr std::array<Doubt, 15> kDoubts{{
    {"network.bandwidth", RangeEnd::low, kSlowNetwork},
    {"factors.between_servers_bandwidth", RangeEnd::low, kSlowNetwork},
    {"factors.between_servers_bandwidth", RangeEnd::high, "the network is as fast as its NICs allow"},
    {"factors.inside_server_bandwidth", RangeEnd::high, "links inside a server reach what they can"},
    {"link.bandwidth", RangeEnd::low, kSlowLinks},
    {"factors.inside_server_bandwidth", RangeEnd::low, kSlowLinks},
    {"messages.between_nodes", RangeEnd::high, kLateMessages},
    {"network.latency", RangeEnd::high, kLateMessages},
    {"factors.message_overhead", RangeEnd::high, kLateMessages},
    {"messages.inside_node", RangeEnd::high,
     "messages inside a server start late: does peer-to-peer access work?"},
    {"compute_slowdown", RangeEnd::high,
     "communication takes more of the computation beside it than assumed"},
    {"factors.layer_times", RangeEnd::high,
     "layers are slower than estimated: are the kernels those that the scenario names?"},
    {"noise.sigma", RangeEnd::high, "steps vary more than assumed: does something else run on the devices?"},
    {"noise.device_spread", RangeEnd::high, "some devices are slow: do their clocks or temperatures differ?"},
    {"host", RangeEnd::high, "the host is slow: does Python or the data loader share its cores?"},
}};

std::string question_about(const std::string& key, RangeEnd end) {
  for (const Doubt& doubt : kDoubts) {
    if (doubt.end == end && key.find(doubt.key) != std::string::npos) return doubt.question;
  }
  return "the range may be too narrow";
}

std::string value_text(const Assumption& one, double u) {
  const std::string text = assumed_value(one, u).value.text;
  const auto number = parse_number(text.substr(0, text.size() - one.unit.size()));
  return one.choices.empty() && number ? fmt::format("{:.3g}{}", *number, one.unit) : text;
}

void add_ends(std::vector<std::string>& lines, const Scenario& scenario, const Simulations& all) {
  constexpr double kQuarter = 0.25, kMost = 0.75;
  const double draws = all.inputs.size();
  for (std::size_t i = 0; i < scenario.assumptions.size(); ++i) {
    const Assumption& one = scenario.assumptions[i];
    std::vector<double> inputs;
    for (const auto& draw : all.inputs) inputs.push_back(draw[i]);
    const double low = std::ranges::count_if(inputs, [](double u) { return u < kQuarter; });
    const double high = std::ranges::count_if(inputs, [](double u) { return u >= 1 - kQuarter; });
    if (std::max(low, high) < kMost * draws) continue;
    const RangeEnd end = low > high ? RangeEnd::low : RangeEnd::high;
    lines.push_back(fmt::format("measured: {} is about {} here, at an end of its range ({}): {}", one.key,
                                value_text(one, median_of(inputs)), range_text(one),
                                question_about(one.key, end)));
  }
}

std::string line_of(const Measurement& one, const std::string& point, const Simulations& all,
                    std::size_t number) {
  const std::vector<double> simulated = over_draws(all, number, one.column);
  const auto forecast = forecast_interval(predictive_values(all, number, one.column));
  const auto [least, most] = std::ranges::minmax(simulated);
  const bool says_nothing =
      relation_to_step(one.column) == StepRelation::none && least == most && all.inputs.size() > 1;
  return fmt::format(
      "measured: {} = {:.4g} at {}; simulated {:.4g}, forecast with the measurements {:.4g} [{:.4g} .. "
      "{:.4g}]{}",
      one.column, one.value, point, median_of(simulated), median_of(central_values(all, number, one.column)),
      forecast.low, forecast.high,
      says_nothing ? "; it is equal in all draws, so nothing is learned from it" : "");
}

}  // namespace

std::vector<std::string> measured_lines(const Scenario& scenario, const Simulations& all) {
  std::vector<std::string> lines;
  for (const Measurement& one : scenario.measurements) {
    const std::size_t point = matching_point(scenario, one.point).value();
    if (all.failed.contains(point) || one.column == kMemoryColumn) continue;
    lines.push_back(line_of(one, scenario.points[point].name, all, point));
  }
  const auto memory = measured_memory_lines(scenario, all);
  lines.insert(lines.end(), memory.begin(), memory.end());
  if (all.effective_draws > 0) {
    lines.push_back(fmt::format("measured: the draws of the assumptions count as {:.0f} of {}{}",
                                all.effective_draws, all.inputs.size(),
                                all.second_round ? ", after a second round around those that agree" : ""));
    add_ends(lines, scenario, all);
  }
  return lines;
}

}  // namespace stepcast
