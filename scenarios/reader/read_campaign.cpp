#include "scenarios/reader/read_campaign.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "core/text.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "strategies/registry.hpp"

namespace stepcast {

std::vector<int> read_link_names(const YamlValue& pattern, const Topology& topology) {
  constexpr int kMostCompared = 20'000;  // names that are looked through for the nearest one
  std::vector<int> links;
  std::vector<std::string> names;
  for (int link = 0; link < topology.link_count(); ++link) {
    std::string name = topology.link_name(link);
    if (fnmatch(pattern.text().c_str(), name.c_str(), 0) == 0) links.push_back(link);
    if (link < kMostCompared) names.push_back(std::move(name));
  }
  if (!links.empty()) return links;
  const std::string nearest = nearest_word(pattern.text(), names);
  pattern.expected(fmt::format("names of links, such as \"{}\" (* stands for anything)",
                               nearest.empty() ? names.front() : nearest));
}

namespace {

/// Bandwidth at which one node writes to the storage.
BytesPerSecond store_bandwidth(const Storage& storage) {
  if (storage.kind == Storage::Kind::local) return storage.bandwidth;
  BytesPerSecond least = std::min(storage.bandwidth, storage.per_node);
  if (storage.into_cluster.value > 0) least = std::min(least, storage.into_cluster);
  return least;
}

void read_checkpoints(const YamlValue& value, const Plan& plan, const Platform& platform,
                      FaultOptions& options) {
  const YamlMap map = read_map(value, checkpoint_keys());
  Checkpoints& checkpoints = options.faults.checkpoints;
  const YamlValue interval = map.at("interval", "a time such as \"10 min\", or best");
  options.best_interval = interval.node().text == "best";
  if (!options.best_interval) checkpoints.interval = interval.seconds(1e-3);
  Bytes size = plan.memory.weights + plan.memory.optimizer_state;
  if (const auto given = map.maybe("size")) size = given->bytes();
  if (const auto bandwidth = map.maybe("bandwidth")) {
    checkpoints.write = size / bandwidth->bytes_per_second();
  } else if (platform.storage.kind != Storage::Kind::none) {
    checkpoints.write = size / store_bandwidth(platform.storage);
  } else {
    map.at("bandwidth", "a bandwidth, because platform " + platform.name + " has no storage");
  }
  if (const auto background = map.maybe("background")) checkpoints.background = background->boolean();
  if (checkpoints.background) {
    checkpoints.snapshot = map.at("snapshot", "the time to copy the state before it is written").seconds();
  } else if (const auto snapshot = map.maybe("snapshot")) {
    snapshot->refuse("only valid with background: true");
  }
}

void read_slow(const YamlValue& value, SlowPeriods& slow) {
  const YamlMap map = read_map(value, slow_keys());
  slow.share = map.at("share", "a number from 0 to 1").number(0, 1);
  slow.factor = map.at("factor", "a number >= 1").number(1, 1e6);
  if (map.has("lasts") != map.has("every"))
    value.refuse("expected both lasts and every, or neither (always slow)");
  if (const auto lasts = map.maybe("lasts")) slow.lasts = lasts->seconds(1e-3);
  if (const auto every = map.maybe("every")) slow.every = every->seconds(1e-3);
}

/// Number of devices that hold a rank. A host with a server rank counts as a device.
int device_count(const Plan& plan) {
  return static_cast<int>(std::set<int>(plan.endpoints.begin(), plan.endpoints.end()).size());
}

void read_failures(const YamlMap& map, const Plan& plan, const Platform& platform, Faults& faults) {
  const auto of_node = map.maybe("node_mtbf"), of_device = map.maybe("device_mtbf");
  if (of_node && of_device) of_device->refuse("expected either node_mtbf or device_mtbf, got both");
  const auto& mtbf = of_device ? of_device : of_node;
  faults.nodes = of_device ? device_count(plan) : nodes_of(plan, platform);
  if (mtbf) faults.node_mtbf = mtbf->seconds(1);
  for (const auto& [key, field] : {std::pair{"repair", &Faults::repair}, {"restart", &Faults::restart}}) {
    const auto given = map.maybe(key);
    const bool links = key == std::string_view("restart") && map.has("links");
    if (given && !mtbf && !links) given->refuse("only valid with node_mtbf or device_mtbf");
    if (given) faults.*field = given->seconds();
  }
}

/// The links that an entry of `faults.links` names: those of its pattern, or the NICs of its node.
std::vector<int> read_failed_links(const YamlMap& map, const YamlValue& item, const Topology& topology,
                                   int nodes) {
  const auto pattern = map.maybe("links"), node = map.maybe("node");
  if (pattern.has_value() == node.has_value())
    item.refuse("expected either links, names of links, or node, whose NICs fail");
  if (pattern) return read_link_names(*pattern, topology);
  const int first = static_cast<int>(node->integer(0, nodes - 1)) * topology.links_per_node();
  std::vector<int> links;
  for (int link = first; link < first + topology.links_per_node(); ++link) {
    if (topology.link_kind(link) == "NIC") links.push_back(link);
  }
  return links;
}

void read_link_faults(const YamlValue& value, const Plan& plan, const Platform& platform,
                      FaultOptions& options) {
  const Topology topology(platform);
  for (const YamlValue& item : value.list()) {
    const YamlMap map = read_map(item, link_faults_keys());
    FailedLinks links{read_failed_links(map, item, topology, platform.nodes)};
    LinkFault fault;
    if (const auto share = map.maybe("share")) links.share = share->number(0, 0.99);
    const auto at = map.maybe("at"), mtbf = map.maybe("mtbf");
    if (at.has_value() == mtbf.has_value())
      item.refuse("expected either at, the time of the only failure, or mtbf");
    if (at) fault.at = at->seconds();
    if (mtbf) fault.mtbf = mtbf->seconds(1);
    fault.lasts = map.at("lasts", "the time until the links are repaired").seconds(1e-3);
    if (links.share == 0) {
      Platform damaged = platform;
      damaged.dead_links = links.ids;
      const int nodes = cut_off_nodes(plan, damaged);
      // Where devices fail one by one, those of a node that is cut off are missing together.
      fault.cut_off = nodes * (options.faults.nodes / nodes_of(plan, platform));
    }
    options.faults.links.push_back(fault);
    options.links.push_back(std::move(links));
  }
}

}  // namespace

FailureResponse default_response(const Plan& plan, const std::string& strategy) {
  const Strategy* known = find_strategy(strategy);
  const bool continues = plan.asynchronous || (known != nullptr && known->continues_without_failed);
  return continues ? FailureResponse::shrink : FailureResponse::restart;
}

int cut_off_nodes(const Plan& plan, const Platform& platform) {
  const Topology topology(platform);
  const auto joined = [&](int a, int b) { return topology.connected(a, b) && topology.connected(b, a); };
  const std::set<int> all(plan.endpoints.begin(), plan.endpoints.end());
  const auto apart_from = [&](int one) {
    std::vector<int> apart;
    for (const int other : all) {
      const bool reads = !plan.load_data || joined(platform.storage_endpoint(), other);
      if (!reads || !joined(one, other)) apart.push_back(other);
    }
    return apart;
  };
  std::vector<int> apart = apart_from(*all.begin());
  if (2 * apart.size() > all.size()) apart = apart_from(apart.back());
  std::set<int> nodes;
  for (const int endpoint : apart) nodes.insert(platform.node_of(endpoint));
  return static_cast<int>(nodes.size());
}

int nodes_of(const Plan& plan, const Platform& platform) {
  std::set<int> nodes;
  for (const int endpoint : plan.endpoints) nodes.insert(platform.node_of(endpoint));
  return std::max(1, static_cast<int>(nodes.size()));
}

FaultOptions read_faults(const YamlValue& value, const Plan& plan, const Platform& platform,
                         const std::string& strategy) {
  const YamlMap map = read_map(value, faults_keys());
  FaultOptions options;
  Faults& faults = options.faults;
  faults.response = default_response(plan, strategy);
  read_failures(map, plan, platform, faults);
  if (const auto answer = map.maybe("answer")) {
    const std::size_t which = answer->one_of({"restart", "shrink", "automatic"});
    if (which < 2) faults.response = which == 0 ? FailureResponse::restart : FailureResponse::shrink;
  }
  if (const auto exchange = map.maybe("exchange")) {
    faults.exchange = exchange->seconds();
    const auto answer = map.maybe("answer");
    if (answer && answer->text() == "restart") exchange->refuse("only valid with answer: shrink");
  }
  if (const auto checkpoint = map.maybe("checkpoint")) read_checkpoints(*checkpoint, plan, platform, options);
  if (options.best_interval && faults.response == FailureResponse::shrink) {
    map.at("checkpoint").refuse("interval: best is not available with answer: shrink; give an interval");
  }
  if (const auto slow = map.maybe("slow")) read_slow(*slow, faults.slow);
  if (const auto links = map.maybe("links")) read_link_faults(*links, plan, platform, options);
  if (const auto steps = map.maybe("steps")) options.steps = static_cast<double>(steps->integer(1));
  if (const auto draws = map.maybe("draws")) options.draws = static_cast<int>(draws->integer(1, 100'000));
  return options;
}

namespace {

// Time of a proposal by campaigns/bayesian.hpp over six parameters, measured by campaigns_proposal_cost on
// one core of an Intel Xeon at 2.5 GHz (docs/reference/campaigns.md).
constexpr Seconds kBayesianBase{18e-3};
constexpr Seconds kBayesianCubic{12e-9};

int count(const YamlMap& map, const char* key, int otherwise) {
  const auto value = map.maybe(key);
  return value ? static_cast<int>(value->integer(1, 1'000'000)) : otherwise;
}

double number(const YamlMap& map, const char* key, double high, double otherwise) {
  const auto value = map.maybe(key);
  return value ? value->number(0, high) : otherwise;
}

void read_optimizer(const YamlValue& value, CampaignOptions& options) {
  Campaign& campaign = options.campaign;
  const YamlMap map = read_map(value, campaign_optimizer_keys());
  const auto by = map.maybe("by");
  if (by) options.method = static_cast<SearchMethod>(by->one_of(search_method_names()));
  if (options.method != SearchMethod::bayesian)
    campaign.cost = {};  // breeding, drawing and boxes take no time
  if (options.method == SearchMethod::evolution) {
    campaign.generation =
        static_cast<int>(map.at("generation", "points of a generation").integer(1, 1'000'000));
  } else if (const auto generation = map.maybe("generation")) {
    campaign.generation = static_cast<int>(generation->integer(0, 1'000'000));
  }
  campaign.optimizers = count(map, "count", 1);
  if (const auto history = map.maybe("history")) {
    campaign.shared_history = history->one_of({"shared", "own"}) == 0;
    if (!campaign.shared_history && campaign.optimizers > 1 && options.method == SearchMethod::direct)
      history->refuse("not valid with by: direct, whose optimizers would all propose the same points");
  }
}

/// Time that a Gaussian process takes to propose a point. Default: the measured time of this project's own
/// search.
ProposalCost read_proposal(const YamlMap& map) {
  ProposalCost cost{kBayesianBase, kBayesianCubic};
  if (const auto given = map.maybe("proposal")) {
    const YamlMap keys = read_map(*given, proposal_keys());
    if (const auto base = keys.maybe("base")) cost.base = base->seconds();
    if (const auto cubic = keys.maybe("cubic")) cost.cubic = cubic->seconds();
  }
  return cost;
}

}  // namespace

CampaignOptions read_campaign(const YamlValue& value, const Plan& plan, const Platform& platform) {
  const YamlMap map = read_map(value, campaign_keys());
  CampaignOptions options;
  Campaign& campaign = options.campaign;
  campaign.points = static_cast<int>(map.at("points", "an integer >= 1").integer(1, 1'000'000));
  campaign.groups = count(map, "groups", 1);
  campaign.folds = count(map, "folds", 1);
  campaign.folds_at_once = count(map, "folds_at_once", 1);
  if (campaign.folds_at_once > campaign.folds)
    map.at("folds_at_once")
        .refuse(fmt::format("expected at most {} folds, got {}", campaign.folds, campaign.folds_at_once));
  campaign.training_devices = plan.devices;
  campaign.point_spread = number(map, "point_spread", 10, 0);
  campaign.fold_spread = number(map, "fold_spread", 10, 0);
  if (const auto early = map.maybe("early_stopping")) {
    const YamlMap keys = read_map(*early, early_stopping_keys());
    campaign.stopped_share = keys.at("share", "a number from 0 to 1").number(0, 1);
    campaign.stopped_after = keys.at("after", "a number from 0 to 1").number(0, 1);
  }
  campaign.cost = read_proposal(map);
  if (const auto optimizer = map.maybe("optimizer")) {
    read_optimizer(*optimizer, options);
    if (!campaign.shared_history && campaign.optimizers > campaign.groups)
      optimizer->refuse(fmt::format(
          "history: own needs at most one optimizer for each group; got {} optimizers and {} groups",
          campaign.optimizers, campaign.groups));
  }
  if (const auto steps = map.maybe("steps")) options.steps = static_cast<double>(steps->integer(1));
  options.draws = count(map, "draws", options.draws);
  if (const auto over = map.maybe("over")) options.over = over->text();
  const std::vector<std::string> objectives{"loss", "accuracy"};
  const auto objective = map.maybe("objective");
  options.objective = objectives[objective ? objective->one_of(objectives) : 0];
  const std::int64_t needed = campaign_devices(campaign);
  if (needed > platform.devices()) {
    value.refuse(fmt::format("needs {} devices, but platform {} has {}; set platform.nodes (at most {})",
                             needed, platform.name, platform.devices(), platform.max_nodes));
  }
  return options;
}

}  // namespace stepcast
