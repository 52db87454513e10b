#include "validate/measure/link_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include "core/yaml.hpp"
#include "report/statistics/statistics.hpp"
#include "strategies/collectives/algorithm_choice.hpp"
#include "validate/measure/link_benchmark.hpp"

namespace stepcast {

namespace {

constexpr double kLeastFactor = 1e-5;  // of the bandwidth; platform files allow 1e-6

/// The times in ascending order of size, one for each size (the median of its times), none below that of a
/// smaller size.
std::vector<MessageTime> cleaned(std::vector<MessageTime> times) {
  std::stable_sort(times.begin(), times.end(), [](const MessageTime& a, const MessageTime& b) {
    return a.size != b.size ? a.size < b.size : a.time < b.time;
  });
  std::vector<MessageTime> clean;
  for (std::size_t i = 0; i < times.size();) {
    std::size_t end = i;
    while (end < times.size() && times[end].size == times[i].size) ++end;
    MessageTime middle = times[i + (end - i - 1) / 2];
    if (!(middle.time.value > 0)) throw std::invalid_argument("message times must be positive");
    if (!clean.empty()) middle.time = std::max(middle.time, clean.back().time);
    clean.push_back(middle);
    i = end;
  }
  if (clean.size() < 2) throw std::invalid_argument("a link table needs message times of at least two sizes");
  return clean;
}

/// Slope of the line through two sizes; if that line would begin below the latency, of the line from the
/// latency to the upper size.
double slope_between(const MessageTime& lower, const MessageTime& upper, double latency) {
  const double slope = (upper.time - lower.time).value / (upper.size - lower.size).value;
  const bool begins_lower = upper.time.value - slope * upper.size.value < latency;
  return begins_lower ? (upper.time.value - latency) / upper.size.value : slope;
}

/// Least seconds per byte that any size reaches beyond the latency. Sizes whose time is mostly latency do not
/// count.
double least_slope(const std::vector<MessageTime>& times, double latency) {
  double least = times.back().time.value / times.back().size.value;
  for (const MessageTime& one : times) {
    const double beyond = one.time.value - latency;
    if (beyond >= latency) least = std::min(least, beyond / one.size.value);
  }
  return least;
}

}  // namespace

LinkTable fitted_link_table(std::vector<MessageTime> times) {
  const std::vector<MessageTime> clean = cleaned(std::move(times));
  const double latency = clean.front().time.value;
  const double least = least_slope(clean, latency);
  LinkTable table{{latency}, {1 / least}, {}};
  for (std::size_t i = 1; i < clean.size(); ++i) {
    const double slope =
        std::clamp(slope_between(clean[i - 1], clean[i], latency), least, least / kLeastFactor);
    const double overhead = clean[i].time.value - latency - slope * clean[i].size.value;
    table.costs.push_back({clean[i].size, {std::max(0.0, overhead)}, least / slope});
  }
  // Beyond the largest size, times grow in proportion to the size, because the slope of the last segment
  // alone would extrapolate its noise.
  const double slope = (clean.back().time.value - latency) / clean.back().size.value;
  table.costs.push_back(
      {{std::numeric_limits<double>::infinity()}, {0}, std::clamp(least / slope, kLeastFactor, 1.0)});
  return table;
}

Seconds message_time(const LinkTable& table, Bytes size) {
  const MessageCost& cost = message_cost(table.costs, size);
  return table.latency + cost.overhead + size / (cost.bandwidth_factor * table.bandwidth);
}

Seconds schedule_time(const Schedule& schedule, const LinkTable& links, Bytes buffer) {
  double seconds = 0;
  for (const Phase& phase : schedule.phases) {
    std::map<int, int> sent;  // chunks that a rank sends in a round share its link
    for (const Edge& edge : *phase.edges) sent[edge.source] += edge.chunks;
    int most = 0, largest = 0;
    for (const auto& [rank, chunks] : sent) most = std::max(most, chunks);
    for (const Edge& edge : *phase.edges) largest = std::max(largest, edge.chunks);
    const double part = buffer.value * phase.unit / schedule.parts;
    const double one = message_time(links, {part * largest}).value;
    const MessageCost& cost = message_cost(links.costs, {part * largest});
    const double more = part * (most - largest) / (cost.bandwidth_factor * links.bandwidth.value);
    seconds += phase.rounds * (one + more);
  }
  return {seconds};
}

namespace {

using What = LinkMeasurement::What;

double seconds_of(const LinkMeasurements& links, What what) {
  const LinkMeasurement* first = first_of(links, what);
  return first == nullptr ? 0 : first->seconds;
}

AllReduceChoice choice_of(const std::string& algorithm) {
  const auto& names = algorithm_names();
  const auto found = std::find(names.begin(), names.end(), algorithm);
  return {.algorithm = static_cast<Algorithm>(found - names.begin())};
}

/// False for the name of a library: `mpi` is a choice of the MPI library among these algorithms.
bool is_own_algorithm(const std::string& name) {
  return name != "mpi" && std::ranges::find(algorithm_names(), name) != algorithm_names().end();
}

std::vector<MessageTime> times_of_ring(const LinkMeasurements& links, int ranks) {
  std::vector<MessageTime> times;
  for (const LinkMeasurement& one : links) {
    if (one.what != What::all_reduce || one.algorithm != "ring") continue;
    times.push_back({{one.bytes / ranks}, {one.seconds / (2 * (ranks - 1))}});
  }
  return times;
}

/// Times of messages in shared memory. An all-reduce inside a training step moves arrays that are in other
/// caches than those of many all-reduces in a row, so its rate holds for all messages up to the whole array,
/// as trees send it.
std::vector<MessageTime> times_in_memory(const LinkMeasurements& links, int ranks) {
  std::vector<MessageTime> times = times_of_ring(links, ranks);
  for (const LinkMeasurement& one : links) {
    if (!one.in_step) continue;
    const double array = one.bytes, part = array / ranks;
    std::erase_if(
        times, [&](const MessageTime& time) { return time.size.value > part && time.size.value <= array; });
    times.push_back({{array}, {one.seconds / (2 * (ranks - 1)) * ranks}});
  }
  return times;
}

std::vector<MessageTime> times_of_shifts(const LinkMeasurements& links) {
  std::map<double, double> replaced;
  for (const LinkMeasurement& one : links) {
    if (one.what == What::shift_replace) replaced[one.bytes] = one.seconds;
  }
  std::vector<MessageTime> times;
  for (const LinkMeasurement& one : links) {
    if (one.what != What::shift_add) continue;
    const auto same = replaced.find(one.bytes);
    if (same != replaced.end()) times.push_back({{same->first}, {(same->second + one.seconds) / 2}});
  }
  return times;
}

}  // namespace

std::vector<MessageTime> message_times(const LinkMeasurements& links, const Cluster& cluster) {
  if (cluster.kind == Cluster::Kind::memory) return times_in_memory(links, cluster.ranks);
  return cluster.racks == 1 ? times_of_ring(links, cluster.ranks) : times_of_shifts(links);
}

double measured_one_way(const LinkMeasurements& links, const Cluster& cluster, const LinkTable& table) {
  constexpr double kLeast = 1 << 16;  // bytes; smaller messages are mostly latency
  if (cluster.kind != Cluster::Kind::memory) return 1;
  std::map<double, double> both_ways;
  for (const MessageTime& one : times_of_ring(links, cluster.ranks))
    both_ways.try_emplace(one.size.value, one.time.value);
  std::vector<double> ratios;
  for (const LinkMeasurement& one : links) {
    if (one.what != What::half_round_trip) continue;
    const auto same = both_ways.find(one.bytes);
    if (same == both_ways.end() || same->first < kLeast) continue;
    const double alone = std::max(one.seconds - table.latency.value, 1e-9);
    ratios.push_back((same->second - table.latency.value) / alone);
  }
  return ratios.empty() ? 1 : std::clamp(median_of(ratios), 1.0, 2.0);
}

std::vector<MessageTime> program_times(const LinkMeasurements& links) {
  std::vector<MessageTime> times;
  for (const LinkMeasurement& one : links) {
    if (one.what == What::program_message) times.push_back({{one.bytes}, {one.seconds}});
  }
  return times;
}

LinkTable measured_link_table(const LinkMeasurements& links, const Cluster& cluster) {
  LinkTable table = fitted_link_table(message_times(links, cluster));
  table.one_way = measured_one_way(links, cluster, table);
  table.program_times = program_times(links);
  return table;
}

std::vector<AllReduceTime> all_reduce_times(const LinkMeasurements& links, const LinkTable& table,
                                            int ranks) {
  std::map<double, AllReduceTime> best;
  for (const LinkMeasurement& row : links) {
    if (row.what != What::all_reduce) continue;
    AllReduceTime& one = best[row.bytes];
    one.bytes = row.bytes;
    if (!is_own_algorithm(row.algorithm)) {
      one.by_library[row.algorithm] = row.seconds;
    } else if (one.measured == 0 || row.seconds < one.measured) {
      one.measured = row.seconds;
      one.algorithm = row.algorithm;
    }
  }
  std::vector<AllReduceTime> times;
  for (auto& [bytes, one] : best) {
    if (one.measured == 0) continue;
    const auto schedule = all_reduce_schedule(choice_of(one.algorithm), {ranks, 1}, {bytes});
    one.predicted = schedule_time(*schedule, table, {bytes}).value;
    times.push_back(one);
  }
  return times;
}

Contention contention_of(const LinkMeasurements& links) {
  Contention sharing;
  for (const LinkMeasurement& one : links) {
    if (one.what == What::memory_alone) sharing.memory_alone = one.bytes / one.seconds;
    if (one.what == What::memory_together) sharing.memory_together = one.bytes / one.seconds;
  }
  sharing.hand_over = seconds_of(links, What::hand_over);
  const double background = seconds_of(links, What::compute_beside);
  if (background > 0) {
    sharing.compute_slowdown = compute_slowdown(seconds_of(links, What::compute_alone),
                                                seconds_of(links, What::all_reduce_alone), background);
  }
  return sharing;
}

namespace {

std::string seconds(Seconds time) {
  return shortest(time.value) + " s";
}

std::string rate(BytesPerSecond rate) {
  return shortest(rate.value) + " B/s";
}

std::string costs_text(const std::vector<MessageCost>& costs) {
  std::string text;
  for (const MessageCost& cost : costs) {
    const std::string limit =
        std::isfinite(cost.up_to.value) ? fmt::format("up_to: {} B, ", shortest(cost.up_to.value)) : "";
    text += fmt::format("    - {{{}overhead: {}, bandwidth_factor: {}}}\n", limit, seconds(cost.overhead),
                        shortest(cost.bandwidth_factor));
  }
  return text;
}

const char* const kFree = "    - {overhead: 0 s, bandwidth_factor: 1}\n";

/// Costs of messages between programs over a link of one message at a time, from their measured times.
/// Without measured times, such a message takes as long as a message that is sent while another is received,
/// because its sender copies it once more.
std::vector<MessageCost> program_costs(const LinkTable& links) {
  std::vector<MessageCost> costs = links.costs;
  if (links.program_times.empty()) {
    for (MessageCost& cost : costs) cost.bandwidth_factor /= links.one_way;
    return costs;
  }
  const LinkTable own = fitted_link_table(links.program_times);
  costs = own.costs;
  for (MessageCost& cost : costs) {
    cost.overhead.value = std::max(0.0, (own.latency + cost.overhead - links.latency).value);
    cost.bandwidth_factor =
        std::min(1.0, cost.bandwidth_factor * own.bandwidth.value / (links.one_way * links.bandwidth.value));
  }
  return costs;
}

/// Links of devices whose two directions share the copy rate of a core. The link after each of them has the
/// rate of a message in one direction.
std::string half_duplex_links(const LinkTable& links) {
  return fmt::format(
      "  device_link: {{bandwidth: {}, latency: {}, source: \"measured both ways at once; half of the "
      "latency "
      "at each end\"}}\n"
      "  device_link_duplex: half\n  devices_per_pcie_switch: 1\n"
      "  pcie_switch_link: {{bandwidth: {}, latency: 0 s, source: \"measured one way\"}}\n",
      rate(2 * links.bandwidth), seconds(links.latency / 2), rate(links.one_way * links.bandwidth));
}

/// The host can run servers: the rank of a server has a core, as the ranks of workers do.
std::string one_machine(const MeasuredPlatform& platform) {
  const LinkTable& links = platform.links;
  const bool half_duplex = links.one_way > 1;
  const BytesPerSecond one_way = links.one_way * links.bandwidth;
  const std::string devices =
      half_duplex
          ? half_duplex_links(links)
          : fmt::format(
                "  device_link: {{bandwidth: {}, latency: {}, source: \"measured; half of the latency at "
                "each end\"}}\n",
                rate(links.bandwidth), seconds(links.latency / 2));
  return fmt::format(
      "nodes: 1\nmax_nodes: 1\n"
      "node:\n  kind: pcie\n  devices: {}\n{}"
      "  memory: {{bandwidth: {}, latency: {}, source: \"as a device\"}}\n"
      "network: {{kind: switch, bandwidth: {}, latency: 0 s, source: \"not used: one node\"}}\n"
      "messages:\n  inside_node:\n{}{}  between_nodes:\n{}",
      platform.cluster.ranks, devices, rate(one_way), seconds(links.latency / 2), rate(links.bandwidth),
      costs_text(links.costs),
      half_duplex || !links.program_times.empty()
          ? "  programs_inside_node:\n" + costs_text(program_costs(links))
          : std::string(),
      kFree);
}

std::string network_text(const MeasuredPlatform& platform) {
  const Cluster& cluster = platform.cluster;
  const std::string ends = fmt::format("bandwidth: {}, latency: {}, source: \"measured\"",
                                       rate(platform.links.bandwidth), seconds(platform.links.latency));
  if (cluster.racks == 1) return fmt::format("network: {{kind: switch, {}}}\n", ends);
  const int nodes = cluster.ranks / 2;
  return fmt::format(
      "network:\n  kind: fat_tree\n  bandwidth: {}\n  latency: {}\n  source: \"measured inside a rack\"\n"
      "  levels: [{{down: {}, up: 1, taper: {}, latency: 0 s, source: \"rates that were set: {} nodes of {} "
      "and an "
      "uplink of {}\"}}]\n",
      rate(platform.links.bandwidth), seconds(platform.links.latency), nodes,
      shortest(nodes * cluster.rate / cluster.uplink), nodes, rate_text(cluster.rate),
      rate_text(cluster.uplink));
}

std::string several_nodes(const MeasuredPlatform& platform) {
  return fmt::format(
      "nodes: {}\nmax_nodes: {}\n"
      "node:\n  kind: single\n"
      "  device_link: {{bandwidth: 1000 GB/s, latency: 0 s, source: \"copies count in messages\"}}\n"
      "  memory: {{bandwidth: 1000 GB/s, latency: 0 s, source: \"not used\"}}\n"
      "{}messages:\n  between_nodes:\n{}  inside_node:\n{}",
      platform.cluster.ranks, platform.cluster.ranks, network_text(platform),
      costs_text(platform.links.costs), kFree);
}

std::string storage_text(const MeasuredPlatform& platform) {
  if (!platform.storage) return {};
  return fmt::format(
      "storage: {{kind: local, bandwidth: {}, latency: {}, source: \"measured, all ranks at once\"}}\n",
      rate(platform.storage->bandwidth), seconds(platform.storage->latency));
}

}  // namespace

std::string platform_text(const MeasuredPlatform& platform) {
  const bool one = !platform.cluster.several_nodes();
  return fmt::format("name: {}\nsource: {}\ndevice: {}\n{}{}", yaml_quoted(platform.name),
                     yaml_quoted(platform.source), platform.device,
                     one ? one_machine(platform) : several_nodes(platform), storage_text(platform));
}

YamlNode placeholder_platform(const Cluster& cluster) {
  const MeasuredPlatform platform{"unmeasured",     "placeholder while points are checked",
                                  cluster,          fitted_link_table({{{1}, {1e-6}}, {{1e6}, {1e-3}}}),
                                  "v100-sxm2-16gb", MeasuredStorage{{1e9}, {1e-4}}};
  return parse_yaml(platform_text(platform), "placeholder platform");
}

}  // namespace stepcast
