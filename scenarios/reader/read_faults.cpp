#include "scenarios/reader/read_faults.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "core/fields.hpp"
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

/// `checkpoint:` as written.
struct CheckpointKeys {
  std::optional<Seconds> interval;  ///< empty: `best`
  std::optional<Bytes> size;
  std::optional<BytesPerSecond> bandwidth;
  bool background = false;
  Seconds snapshot;
};

void check_checkpoint(const YamlMap& map, CheckpointKeys& keys) {
  if (keys.background) {
    map.at("snapshot", "the time to copy the state before it is written");
  } else if (const auto snapshot = map.maybe("snapshot")) {
    snapshot->refuse("only valid with background: true");
  }
}

const Fields<CheckpointKeys>& checkpoint_fields() {
  static const Fields<CheckpointKeys> fields{
      {field("interval", &CheckpointKeys::interval, or_word(duration(1e-3), "best"),
             required("a time such as \"10 min\", or best"),
             "training time between two checkpoints; another checkpoint is written at the end; `best`: a "
             "search finds the interval (not valid with `shrink`)"),
       field("size", &CheckpointKeys::size, bytes(), otherwise("weights and optimizer state of a device"),
             "size of a checkpoint"),
       field("bandwidth", &CheckpointKeys::bandwidth, bandwidth(),
             otherwise("that of one node to the platform's storage"),
             "rate at which a checkpoint is written; required if the platform has no storage"),
       field("background", &CheckpointKeys::background, boolean(),
             "training stops only for `snapshot` and continues while the checkpoint is written; the next "
             "checkpoint waits until the storage is free"),
       field("snapshot", &CheckpointKeys::snapshot, duration(), otherwise("required with `background`"),
             "time to copy the state before it is written")},
      check_checkpoint};
  return fields;
}

/// Bandwidth at which one node writes to the storage.
BytesPerSecond store_bandwidth(const Storage& storage) {
  if (storage.kind == Storage::Kind::local) return storage.bandwidth;
  BytesPerSecond least = std::min(storage.bandwidth, storage.per_node);
  if (storage.into_cluster.value > 0) least = std::min(least, storage.into_cluster);
  return least;
}

void read_checkpoints(const YamlValue& value, const Plan& plan, const Platform& platform,
                      FaultOptions& options) {
  CheckpointKeys keys;
  const YamlMap map = read_mapping(value, checkpoint_fields(), keys);
  Checkpoints& checkpoints = options.faults.checkpoints;
  options.best_interval = !keys.interval;
  checkpoints.interval = keys.interval.value_or(Seconds{});
  const Bytes size = keys.size.value_or(plan.memory.weights + plan.memory.optimizer_state);
  if (platform.storage.kind == Storage::Kind::none)
    map.at("bandwidth", "a bandwidth, because platform " + platform.name + " has no storage");
  checkpoints.write = size / (keys.bandwidth ? *keys.bandwidth : store_bandwidth(platform.storage));
  checkpoints.background = keys.background;
  checkpoints.snapshot = keys.snapshot;
}

void check_slow(const YamlMap& map, SlowPeriods&) {
  if (map.has("lasts") != map.has("every"))
    map.value().refuse("expected both lasts and every, or neither (always slow)");
}

const Fields<SlowPeriods>& slow_fields() {
  static const Fields<SlowPeriods> fields{
      {field("share", &SlowPeriods::share, number(0, 1), required("a number from 0 to 1"),
             "share of the workers that are slow in a slow period"),
       field("factor", &SlowPeriods::factor, number(1, 1e6), required("a number >= 1"),
             "factor on the time of a slow worker's work"),
       field("lasts", &SlowPeriods::lasts, duration(1e-3), otherwise("always slow"),
             "length of a slow period; give both `lasts` and `every`, or neither"),
       field("every", &SlowPeriods::every, duration(1e-3), otherwise("always slow"),
             "mean time from the end of a slow period to the start of the next; the times are exponentially "
             "distributed")},
      check_slow};
  return fields;
}

/// Number of devices that hold a rank. A host with a server rank counts as a device.
int device_count(const Plan& plan) {
  return std::set<int>(plan.endpoints.begin(), plan.endpoints.end()).size();
}

/// An entry of `faults.links` as written.
struct LinkFaultKeys {
  double share = 0;
  std::optional<Seconds> at, mtbf;
  Seconds lasts;
};

const Fields<LinkFaultKeys>& link_fault_fields() {
  static const Fields<LinkFaultKeys> fields{
      field<LinkFaultKeys>({"links", KeyType::text, "this or `node`",
                            "name of a link, with `*` for any text, `?` for any letter and `[...]` for one "
                            "of several letters; all links that match fail together"}),
      field<LinkFaultKeys>(
          {"node", integer(0, 1048575), "this or `links`", "the NICs of this node, both directions"}),
      field("share", &LinkFaultKeys::share, number(0, 0.99),
            "share of the bandwidth that is left; 0: the links are dead"),
      field("at", &LinkFaultKeys::at, duration(), otherwise("this or `mtbf`"),
            "time from the start of the training; the links fail once"),
      field("mtbf", &LinkFaultKeys::mtbf, duration(1), otherwise("this or `at`"),
            "mean time from a repair to the next failure; the times are exponentially distributed"),
      field("lasts", &LinkFaultKeys::lasts, duration(1e-3), required("the time until the links are repaired"),
            "time until the links are repaired")};
  return fields;
}

/// The links that an entry of `faults.links` names: those of its pattern, or the NICs of its node.
std::vector<int> read_failed_links(const YamlMap& map, const YamlValue& item, const Topology& topology,
                                   int nodes) {
  const auto pattern = map.maybe("links"), node = map.maybe("node");
  if (pattern.has_value() == node.has_value())
    item.refuse("expected either links, names of links, or node, whose NICs fail");
  if (pattern) return read_link_names(*pattern, topology);
  const int first = node->integer(0, nodes - 1) * topology.links_per_node();
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
    LinkFaultKeys keys;
    const YamlMap map = read_mapping(item, link_fault_fields(), keys);
    FailedLinks links{read_failed_links(map, item, topology, platform.nodes), keys.share};
    if (keys.at.has_value() == keys.mtbf.has_value())
      item.refuse("expected either at, the time of the only failure, or mtbf");
    LinkFault fault{
        .at = keys.at.value_or(Seconds{}), .mtbf = keys.mtbf.value_or(Seconds{}), .lasts = keys.lasts};
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

/// `faults:` as written.
struct FaultKeys {
  double steps = 0;
  std::optional<Seconds> node_mtbf, device_mtbf;
  Seconds repair, restart;
  std::optional<FailureResponse> answer;  ///< empty: automatic
  Seconds exchange;
  SlowPeriods slow;
  int draws = FaultOptions{}.draws;
};

void check_faults(const YamlMap& map, FaultKeys& keys) {
  if (keys.node_mtbf && keys.device_mtbf)
    map.at("device_mtbf").refuse("expected either node_mtbf or device_mtbf, got both");
  const bool fails = keys.node_mtbf || keys.device_mtbf;
  if (map.has("repair") && !fails) map.at("repair").refuse("only valid with node_mtbf or device_mtbf");
  if (map.has("restart") && !fails && !map.has("links"))
    map.at("restart").refuse("only valid with node_mtbf or device_mtbf");
  if (map.has("exchange") && keys.answer == FailureResponse::restart)
    map.at("exchange").refuse("only valid with answer: shrink");
}

const Fields<FaultKeys>& fault_fields() {
  using Answer = std::optional<FailureResponse>;
  static const Fields<FaultKeys> fields{
      {field("steps", &FaultKeys::steps, integer(1), otherwise("the scenario's epochs"),
             "steps of the training; required without `epoch`"),
       field("node_mtbf", &FaultKeys::node_mtbf, duration(1), otherwise("nodes never fail"),
             "mean time between failures of one node that holds a rank; the times are exponentially "
             "distributed"),
       field("device_mtbf", &FaultKeys::device_mtbf, duration(1),
             "in place of `node_mtbf`: mean time between failures of one device, which works again "
             "afterwards; with `shrink`, only the share of this device is missing"),
       field("repair", &FaultKeys::repair, duration(),
             "time until the node, or a spare node, is available; only valid with an MTBF of nodes or "
             "devices"),
       field("restart", &FaultKeys::restart, duration(),
             "further time until the training continues; only valid with an MTBF or `links`"),
       field("answer", &FaultKeys::answer,
             choice<Answer>({{"restart", FailureResponse::restart},
                             {"shrink", FailureResponse::shrink},
                             {"automatic", std::nullopt}}),
             "what the training does when a node fails"),
       field("exchange", &FaultKeys::exchange, duration(), otherwise("a block for local SGD, else a step"),
             "`shrink`: time between two contributions of a worker; a node that fails loses the part that it "
             "has not contributed; not valid with `answer: restart`"),
       field<FaultKeys>({"checkpoint", KeyType::mapping, "none are written",
                         "when and how checkpoints are written", keys_inside<checkpoint_fields>}),
       field("slow", &FaultKeys::slow, mapping<slow_fields>(), otherwise("none"),
             "periods in which workers are slow"),
       field<FaultKeys>({"links", KeyType::mappings, "none", "links that die or lose bandwidth",
                         keys_inside<link_fault_fields>}),
       field("draws", &FaultKeys::draws, integer(1, 100'000),
             "simulated trainings; the columns are their means")},
      check_faults};
  return fields;
}

}  // namespace

const Keys& faults_keys() {
  return fault_fields().keys();
}

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
  return nodes.size();
}

int nodes_of(const Plan& plan, const Platform& platform) {
  std::set<int> nodes;
  for (const int endpoint : plan.endpoints) nodes.insert(platform.node_of(endpoint));
  return std::max<int>(1, nodes.size());
}

FaultOptions read_faults(const YamlValue& value, const Plan& plan, const Platform& platform,
                         const std::string& strategy) {
  FaultKeys keys;
  const YamlMap map = read_mapping(value, fault_fields(), keys);
  FaultOptions options;
  options.steps = keys.steps;
  options.draws = keys.draws;
  Faults& faults = options.faults;
  faults.nodes = keys.device_mtbf ? device_count(plan) : nodes_of(plan, platform);
  faults.node_mtbf = keys.device_mtbf ? *keys.device_mtbf : keys.node_mtbf.value_or(Seconds{});
  faults.repair = keys.repair;
  faults.restart = keys.restart;
  faults.response = keys.answer.value_or(default_response(plan, strategy));
  faults.exchange = keys.exchange;
  faults.slow = keys.slow;
  if (const auto checkpoint = map.maybe("checkpoint")) read_checkpoints(*checkpoint, plan, platform, options);
  if (options.best_interval && faults.response == FailureResponse::shrink)
    map.at("checkpoint").refuse("interval: best is not available with answer: shrink; give an interval");
  if (const auto links = map.maybe("links")) read_link_faults(*links, plan, platform, options);
  return options;
}

}  // namespace stepcast
