#include "forecast/advice/changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/text.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

constexpr const char* kOlder = "parameters are older when gradients meet them";
constexpr const char* kRarer = "workers exchange half as often, so their parameters differ more";
constexpr const char* kRounded = "gradients are rounded";

/// A change of one key. `to` is a value, or "x2", "x4" or "/4" of the value that is there.
struct KeyChange {
  const char* key;
  const char* to;
  StepPart part;
  double weight;
  const char* alters = "";
  const char* why = "";
  bool asynchronous = false;  ///< only of asynchronous workers, in place of the row for all
};

constexpr std::array kKeyChanges{
    KeyChange{"strategy.overlap", "true", StepPart::communication, 0.9, kOlder, "", true},
    KeyChange{"strategy.overlap", "true", StepPart::communication, 0.9},
    KeyChange{"strategy.halo_overlap", "true", StepPart::communication, 0.7},
    KeyChange{"placement", "packed", StepPart::communication, 0.7},
    KeyChange{"strategy.shard_within", "node", StepPart::communication, 0.65},
    KeyChange{"strategy.micro_batches", "x2", StepPart::communication, 0.6},
    KeyChange{"strategy.schedule", "1f1b", StepPart::communication, 0.3},
    KeyChange{"strategy.period", "x2", StepPart::communication, 0.5, kRarer},
    KeyChange{"strategy.mini_batches", "x2", StepPart::communication, 0.5, kRarer},
    KeyChange{"strategy.n_push", "x2", StepPart::communication, 0.4, kOlder},
    KeyChange{"strategy.n_fetch", "x2", StepPart::communication, 0.4, kOlder},
    KeyChange{"strategy.mode", "asynchronous", StepPart::communication, 0.6, kOlder},
    KeyChange{"strategy.staleness_bound", "x2", StepPart::communication, 0.4, kOlder},
    KeyChange{"strategy.shards", "x2", StepPart::communication, 0.55},
    KeyChange{"strategy.backup_tasks", "true", StepPart::communication, 0.5},
    KeyChange{"strategy.all_reduce", "automatic", StepPart::communication, 0.55},
    KeyChange{"strategy.bucket", "x4", StepPart::communication, 0.5},
    KeyChange{"strategy.bucket", "/4", StepPart::communication, 0.35},
    KeyChange{"batch_per_worker", "x2", StepPart::communication, 0.5},
    KeyChange{"global_batch", "x2", StepPart::communication, 0.5},
    KeyChange{"strategy.stage", "1", StepPart::communication, 0.45},
    KeyChange{"strategy.zero", "0", StepPart::communication, 0.3},
    KeyChange{"strategy.shard", "optimizer", StepPart::communication, 0.45},
    KeyChange{"strategy.reshard_after_forward", "false", StepPart::communication, 0.4},
    KeyChange{"strategy.sequence_parallel", "true", StepPart::communication, 0.4},
    KeyChange{"strategy.fp32_gradients", "false", StepPart::communication, 0.4, kRounded},
    KeyChange{"strategy.compression", "fp16", StepPart::communication, 0.45, kRounded},
    KeyChange{"strategy.compression", "one_bit", StepPart::communication, 0.4, kRounded},
    KeyChange{"strategy.channels", "x2", StepPart::communication, 0.4},
    KeyChange{"strategy.accumulation", "x2", StepPart::communication, 0.3},
    KeyChange{"strategy.bucket_copies", "none", StepPart::communication, 0.4},
    KeyChange{"strategy.synchronized_batch_norm", "false", StepPart::communication, 0.5,
              "batch norm sees the samples of one worker"},
    KeyChange{"strategy.recompute", "false", StepPart::computation, 0.25},
    KeyChange{"kernels.attention", "flash", StepPart::computation, 0.3},
    KeyChange{"kernels.layout", "nhwc", StepPart::computation, 0.3},
    KeyChange{"kernels.update", "fused", StepPart::computation, 0.1},
    KeyChange{"kernels.elementwise", "fused", StepPart::computation, 0.2, "", "torch.compile"},
    KeyChange{"strategy.host_operation", "0 s", StepPart::host, 0.8, "", "CUDA graphs"},
    KeyChange{"data.prefetch", "2", StepPart::loading, 0.9},
};

Assignment set_to(const std::string& path, const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  node.place.file = std::make_shared<const std::string>("advice");
  return {path, std::move(node)};
}

/// The share of a step that a change of this part can save.
double saved_share(const Row& row, StepPart part) {
  const auto share = [&](const char* column) {
    return row.number(column).value_or(0) / row.number("step_seconds").value_or(1);
  };
  switch (part) {
    case StepPart::communication:  // in a pipeline and with servers, workers wait for messages
      return 1 - share("compute_seconds") - share("host_seconds") - share("data_loading_seconds");
    case StepPart::computation:
      return share("compute_seconds");
    case StepPart::host:
      return share("host_seconds");
    case StepPart::loading:
      return share("data_loading_seconds");
  }
  return 0;
}

/// "25 MiB" times a factor; empty for a text that is no number with a unit, and for half of one sample.
std::string scaled(const std::string& text, double factor) {
  const auto space = text.find(' ');
  const auto number = parse_number(text.substr(0, space));
  if (!number || *number <= 0) return "";
  const std::string unit = space == std::string::npos ? "" : text.substr(space);
  const double value = *number * factor;
  if (unit.empty() && value != std::floor(value)) return "";
  return fmt::format("{:g}{}", value, unit);
}

double factor_of(const std::string& to) {
  if (to == "x2") return 2;
  if (to == "x4") return 4;
  if (to == "/4") return 0.25;
  return 0;
}

/// Reads a document and a strategy, and collects changes.
class Changes {
 public:
  Changes(const YamlNode& document, const Experiment& experiment, const std::vector<std::string>& taken)
      : document_(document), experiment_(experiment), taken_(taken) {}

  void add(const KeyChange& one) {
    if (one.asynchronous ? !experiment_.plan.asynchronous : is_special(one)) return;
    if (!has_key(one.key)) return;
    const std::string from = value_of(one.key), to = new_value(from, one.to);
    if (to.empty() || to == from) return;
    add({{set_to(one.key, to)}, from, one.why, one.alters, one.part, one.weight});
  }

  /// Half precision on tensor cores, of a network that is computed in single precision.
  void add_half_precision() {
    const auto& has = experiment_.device.precisions;
    const std::string now = value_of("kernels.precision");
    if (!is_derived() || now == "bf16" || now == "f16" || has.empty()) return;
    const bool bf16 = has.contains(KernelChoice::Precision::bf16);
    if (!bf16 && !has.contains(KernelChoice::Precision::f16)) return;
    add({{set_to("kernels.precision", bf16 ? "bf16" : "f16"), set_to("strategy.precision", "mixed")},
         now,
         "",
         "products have 2 bytes a number",
         StepPart::computation,
         0.6});
  }

  void add_hardware() {
    add_successor();
    add_next_nic();
    add_nics();
  }

  std::vector<Change> all;

 private:
  /// The device that its maker sold next, for the same kind of server.
  void add_successor() {
    const Device& device = experiment_.device;
    if (!is_derived() || device.successor.empty()) return;
    Change change{.values = {set_to("platform.device", device.successor)}, .from = device.name};
    change.part = StepPart::computation;
    change.weight = 0.5;
    change.bought = true;
    add(std::move(change));
  }

  /// NICs of the next rate of Ethernet (IEEE 802.3) or InfiniBand, at 12 GB/s for 100 Gbit/s, as NCCL counts
  /// (NET_BW, src/graph/topo.h).
  void add_next_nic() {
    static constexpr std::array kGigabits{1, 10, 25, 50, 100, 200, 400, 800};
    static constexpr double kBytes = 0.12e9;  // of a Gbit/s, per second
    const NetworkShape& network = experiment_.platform.network;
    double factor = 1;
    if (const YamlNode* given = find_path(document_, "factors.between_servers_bandwidth"))
      factor = parse_number(given->text).value_or(1);
    const double now = network.nic.bandwidth.value / factor;
    const auto next = std::ranges::find_if(kGigabits, [&](int rate) { return rate * kBytes > 1.1 * now; });
    if (!uses_network() || next == kGigabits.end()) return;
    Change change{.values = {set_to("platform.network.bandwidth", fmt::format("{:g} GB/s", *next * 0.12))},
                  .from = fmt::format("{:.3g} GB/s", now / 1e9)};
    change.why = fmt::format("NICs of {} Gbit/s", *next);
    change.weight = 0.5;
    change.bought = true;
    add(std::move(change));
  }

  void add_nics() {
    const Platform& platform = experiment_.platform;
    if (!uses_network() || 2 * platform.network.nics > platform.devices_per_node) return;
    Change change{.values = {set_to("platform.network.nics", std::to_string(2 * platform.network.nics))},
                  .from = std::to_string(platform.network.nics)};
    change.why = "NICs of a node";
    change.weight = 0.4;
    change.bought = true;
    add(std::move(change));
  }

  void add(Change change) {
    const auto taken = [&](const Assignment& one) {
      return std::ranges::any_of(
          taken_, [&](const std::string& key) { return key == one.path || one.path.starts_with(key + "."); });
    };
    if (std::ranges::none_of(change.values, taken)) all.push_back(std::move(change));
  }

  bool uses_network() const { return nodes_in_use(experiment_) > 1; }

  bool is_derived() const { return experiment_.plan.trace_kind.starts_with("derived"); }

  /// True if another row changes the same key of asynchronous workers, as these are.
  bool is_special(const KeyChange& one) const {
    return std::ranges::any_of(kKeyChanges, [&](const KeyChange& other) {
      return std::string_view(other.key) == one.key && other.asynchronous && experiment_.plan.asynchronous;
    });
  }

  const Key* strategy_key(const std::string& path) const {
    return find_key(find_strategy(experiment_.strategy)->keys, path.substr(std::string("strategy.").size()));
  }

  bool has_key(const std::string& path) const {
    if (path.starts_with("strategy.")) return strategy_key(path) != nullptr;
    if (path == "placement") return true;
    if (path == "global_batch") return find_path(document_, path) != nullptr;
    if (path == "batch_per_worker") return find_path(document_, "global_batch") == nullptr;
    if (path.starts_with("kernels.")) return is_derived();
    return find_path(document_, path.substr(0, path.find('.'))) != nullptr;
  }

  std::string value_of(const std::string& path) const {
    if (path == "batch_per_worker") return std::to_string(experiment_.plan.batch_per_worker);
    if (const YamlNode* given = find_path(document_, path)) return given->text;
    if (path == "placement") return "packed";
    const Key* key = path.starts_with("strategy.") ? strategy_key(path) : nullptr;
    if (key == nullptr || key->default_value == "required") return "";
    return std::string(key->default_value);
  }

  static std::string new_value(const std::string& from, const std::string& to) {
    const double factor = factor_of(to);
    if (factor == 0) return to;
    if (factor == 4 && (from == "tensor" || from == "model")) return "25 MiB";
    return scaled(from, factor);
  }

  const YamlNode& document_;
  const Experiment& experiment_;
  const std::vector<std::string>& taken_;
};

}  // namespace

std::string to_string(const Change& change) {
  std::string text = fmt::format("{}: {}", change.values.front().path, change.values.front().value.text);
  if (!change.from.empty()) text += " in place of " + change.from;
  for (std::size_t i = 1; i < change.values.size(); ++i)
    text += fmt::format(", {}: {}", change.values[i].path, change.values[i].value.text);
  return change.why.empty() ? text : text + " (" + change.why + ")";
}

std::vector<Change> possible_changes(const YamlNode& document, const Experiment& experiment, const Row& row,
                                     const std::vector<std::string>& taken, double least) {
  Changes changes(document, experiment, taken);
  for (const KeyChange& one : kKeyChanges) changes.add(one);
  changes.add_half_precision();
  changes.add_hardware();
  const auto saved = [&](const Change& one) { return saved_share(row, one.part); };
  std::erase_if(changes.all, [&](const Change& one) { return saved(one) < least; });
  std::ranges::stable_sort(changes.all, [&](const Change& a, const Change& b) {
    return a.weight * saved(a) > b.weight * saved(b);
  });
  return std::move(changes.all);
}

}  // namespace stepcast
