#include "models/pytorch_profile/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "models/cost/pass_cost.hpp"

namespace stepcast {

std::int64_t recorded_elements(const Shape& shape) {
  double product = 1;
  for (const std::int64_t size : shape) product *= size < 0 ? 1e30 : size;
  return product > 1e15 ? -1 : static_cast<std::int64_t>(product);
}

const char* to_string(NonLayerWork work) {
  switch (work) {
    case NonLayerWork::optimizer:
      return "optimizer";
    case NonLayerWork::zero_grad:
      return "zero_grad";
    case NonLayerWork::accumulation:
      return "gradients added to .grad";
    case NonLayerWork::input:
      return "copies and fills of inputs";
    case NonLayerWork::communication:
      return "NCCL";
    case NonLayerWork::buckets:
      return "buckets of DDP";
    case NonLayerWork::sharding:
      return "copies of FSDP";
    case NonLayerWork::recomputed:
      return "activations computed again";
    case NonLayerWork::other:
      return "other operators";
    case NonLayerWork::unknown:
      break;
  }
  return "not attributed";
}

std::string Attribution::left_out_text() const {
  constexpr std::size_t kMost = 5;
  std::vector<std::pair<double, std::string>> largest;
  std::map<std::string, double> left_out;
  for (const ProfileStep& step : steps) {
    for (const auto& [name, seconds] : step.left_out) left_out[name] += seconds;
  }
  for (const auto& [name, seconds] : left_out) {
    if (seconds > 0) largest.emplace_back(seconds, name);
  }
  std::sort(largest.rbegin(), largest.rend());
  std::string text;
  double rest = 0, all = 0;
  for (std::size_t i = 0; i < largest.size(); ++i) {
    all += largest[i].first;
    if (i >= kMost) {
      rest += largest[i].first;
      continue;
    }
    text += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", largest[i].second.substr(0, 60),
                        100 * largest[i].first / gpu_seconds);
  }
  if (rest > 0) text += fmt::format(", {} others {:.1f} %", largest.size() - kMost, 100 * rest / gpu_seconds);
  return text.empty() ? "nothing" : fmt::format("{:.1f} % ({})", 100 * all / gpu_seconds, text);
}

namespace {

bool is_norm(const Layer& layer) {
  return layer.kind == LayerKind::batch_norm || layer.kind == LayerKind::layer_norm;
}

/// The layer that several others read, and whose gradient is the sum that follows a reader's backward pass.
std::size_t summed_layer(const Model& model, const std::vector<int>& readers, std::size_t reader) {
  for (const int input : model.layers[reader].inputs) {
    if (input >= 0 && readers[input] > 1) return input;
  }
  return reader;
}

/// Times of one step by layer and pass.
struct LayerSeconds {
  double forward = 0, backward_data = 0, backward_weights = 0, update = 0;
};

class StepTimes {
 public:
  StepTimes(const Model& model, const LayerMatch& match)
      : model_(model), match_(match), data_(backward_data_needed(model)), readers_(consumers(model)) {
    for (const Layer& layer : model.layers) parameters_ += trainable(layer);
  }

  std::vector<LayerSeconds> of(const ProfileStep& step) const {
    std::vector<LayerSeconds> all(model_.layers.size());
    std::vector<double> sums(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) add_layer(step, i, all[i], sums);
    for (std::size_t i = 0; i < all.size(); ++i)
      (only_weights(i) ? all[i].backward_weights : all[i].backward_data) += sums[i];
    const auto optimizer = step.non_layer_seconds.find(NonLayerWork::optimizer);
    if (optimizer == step.non_layer_seconds.end() || parameters_ <= 0) return all;
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i].update = optimizer->second * trainable(model_.layers[i]) / parameters_;
    return all;
  }

 private:
  bool only_weights(std::size_t layer) const {
    return !data_[layer] && trainable(model_.layers[layer]) > 0 && !is_norm(model_.layers[layer]);
  }
  void add_layer(const ProfileStep& step, std::size_t layer, LayerSeconds& to,
                 std::vector<double>& sums) const {
    for (const int index : match_[layer]) {
      const OperatorTimes& times = step.operators[index].times;
      to.forward += times.forward;
      const bool weights = only_weights(layer);
      const bool data = trainable(model_.layers[layer]) <= 0 || is_norm(model_.layers[layer]);
      const double both = times.backward_data + times.backward_weights;
      to.backward_data += data ? both : weights ? 0 : times.backward_data;
      to.backward_weights += data ? 0 : weights ? both : times.backward_weights;
      sums[summed_layer(model_, readers_, layer)] += times.gradient_sum;
    }
  }

  const Model& model_;
  const LayerMatch& match_;
  const std::vector<bool> data_;
  const std::vector<int> readers_;
  double parameters_ = 0;
};

/// The middle one of some times; 0 without any.
double median_of(std::vector<double> seconds) {
  const auto middle = seconds.begin() + (seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return seconds.empty() ? 0 : *middle;
}

/// The host's times of each layer and pass: medians of the steps x `scale`.
void add_host(const std::vector<ProfileStep>& steps, const Model& model, const LayerMatch& match,
              double scale, Trace& trace) {
  double parameters = 0;
  for (const Layer& layer : model.layers) parameters += trainable(layer);
  const auto middle = [&](const auto& of_step) {
    std::vector<double> all;
    for (const ProfileStep& step : steps) all.push_back(of_step(step));
    return scale * median_of(std::move(all));
  };
  const auto of_layer = [&](std::size_t layer, double OperatorTimes::*pass) {
    return middle([&](const ProfileStep& step) {
      double sum = 0;
      for (const int index : match[layer]) sum += step.operators[index].times.*pass;
      return sum;
    });
  };
  const double update = middle([](const ProfileStep& step) { return step.host_update; });
  for (std::size_t i = 0; i < match.size(); ++i) {
    const double share = parameters > 0 ? trainable(model.layers[i]) / parameters : 0;
    trace.layers[i].host = {of_layer(i, &OperatorTimes::host_forward),
                            of_layer(i, &OperatorTimes::host_backward), update * share};
  }
}

void append_samples(const std::vector<LayerSeconds>& step, Trace& trace) {
  for (std::size_t i = 0; i < step.size(); ++i) {
    LayerTrace& to = trace.layers[i];
    to.forward.seconds.push_back(step[i].forward);
    to.backward_data.seconds.push_back(step[i].backward_data);
    to.backward_weights.seconds.push_back(step[i].backward_weights);
    to.update.seconds.push_back(step[i].update);
  }
}

/// A pass without any time is no pass.
void drop_empty(PassSamples& pass) {
  const bool empty =
      std::all_of(pass.seconds.begin(), pass.seconds.end(), [](double value) { return value <= 0; });
  if (empty) pass.seconds.clear();
}

/// A sentence if the slowest step took far longer than the fastest one, as on a disturbed machine.
std::string spread_of_steps(const Attribution& all) {
  constexpr double kLargest = 1.5;
  double fastest = 1e300, slowest = 0;
  for (const ProfileStep& step : all.steps) {
    double seconds = 0;
    for (const NetworkOperator& one : step.operators)
      seconds += one.times.forward + one.times.backward_data + one.times.backward_weights;
    fastest = std::min(fastest, seconds);
    slowest = std::max(slowest, seconds);
  }
  if (!(slowest > kLargest * fastest)) return "";
  return fmt::format("the profile is disturbed: the layers of a step take from {:.4g} to {:.4g} ms",
                     1e3 * fastest, 1e3 * slowest);
}

std::vector<std::string> flags_of(const Attribution& all, double halved_share) {
  std::vector<std::string> flags;
  if (all.halved_seconds > 0) {
    flags.push_back(
        fmt::format("backward passes of convolutions with {:.0f} % of the step's time are split in halves: "
                    "no kernel's name tells data from weights",
                    100 * halved_share));
  }
  const auto updated = [](const ProfileStep& step) {
    const auto found = step.non_layer_seconds.find(NonLayerWork::optimizer);
    return found != step.non_layer_seconds.end() && found->second > 0;
  };
  if (std::any_of(all.steps.begin(), all.steps.end(), updated))
    flags.push_back(
        all.foreach_optimizer
            ? "the optimizer ran for all layers at once: its time is divided among them in "
              "proportion to their parameters"
            : "the optimizer's time is divided among the layers in proportion to their parameters");
  const auto spent = [&](NonLayerWork work) {
    double sum = 0;
    for (const ProfileStep& step : all.steps) {
      const auto found = step.non_layer_seconds.find(work);
      if (found != step.non_layer_seconds.end()) sum += found->second;
    }
    return 1e3 * sum / all.steps.size();
  };
  if (const double again = spent(NonLayerWork::recomputed); again > 0)
    flags.push_back(fmt::format(
        "the backward pass computes activations again ({:.4g} ms a step, left out): set `recompute: true` "
        "in the scenario's strategy",
        again));
  if (const double copies = spent(NonLayerWork::sharding); copies > 0)
    flags.push_back(fmt::format(
        "the job shards its parameters (FSDP; {:.4g} ms of copies a step, left out): the scenario's strategy "
        "says it, such as `kind: zero`",
        copies));
  if (const std::string spread = spread_of_steps(all); !spread.empty()) flags.push_back(spread);
  if (!all.collectives.empty()) {
    std::string kinds;
    for (const auto& [kind, count] : all.collectives)
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", count, kind);
    flags.push_back(fmt::format(
        "collectives of the profile ({}) are left out: the scenario's strategy says them", kinds));
  }
  return flags;
}

std::vector<std::string> notes_of(const Profile& profile, const Attribution& all) {
  std::vector<std::string> notes;
  const double steps = all.steps.size();
  std::map<NonLayerWork, double> non_layer_seconds;
  double wall = 0;
  for (const ProfileStep& step : all.steps) {
    wall += step.wall;
    for (const auto& [work, seconds] : step.non_layer_seconds) non_layer_seconds[work] += seconds;
  }
  notes.push_back(fmt::format(
      "{:.2f} % of {:.4g} ms of {} time a step attributed; the host took {:.4g} ms a profiled step",
      100 * all.attributed(), 1e3 * all.gpu_seconds / steps, profile.cpu_only ? "operators'" : "GPU",
      1e3 * wall / steps));
  for (const auto& [work, seconds] : non_layer_seconds) {
    if (work != NonLayerWork::optimizer && seconds > 0)
      notes.push_back(
          fmt::format("in no layer: {}, {:.4g} ms a step", to_string(work), 1e3 * seconds / steps));
  }
  notes.push_back("left out of the layers: " + all.left_out_text());
  if (!all.dropped.empty()) notes.push_back(all.dropped);
  if (all.micro_batches > 1)
    notes.push_back(
        fmt::format("a step of the profile sums the gradients of {} micro-batches; a step of the trace "
                    "is one of them and the whole update",
                    all.micro_batches));
  return notes;
}

}  // namespace

ProfiledHost profiled_host(const Attribution& attribution) {
  ProfiledHost host;
  for (const ProfileStep& step : attribution.steps) {
    host.wall += step.wall;
    host.issuing += step.host_update / attribution.micro_batches;
    for (const NetworkOperator& one : step.operators)
      host.issuing += one.times.host_forward + one.times.host_backward;
  }
  const double steps = 1.0 * attribution.steps.size() / attribution.micro_batches;
  return {host.wall / steps, host.issuing / steps};
}

Trace profile_trace(const Profile& profile, const Attribution& attribution, const MatchedModel& network,
                    std::int64_t batch, double ordinary_step) {
  const auto& [model, match] = network;
  Trace trace;
  trace.kind = Trace::Kind::captured;
  trace.model = model.name;
  trace.batch = batch;
  trace.precision = attribution.precision;
  trace.device = profile.cpu_only ? "cpu" : profile.device.empty() ? "GPU of a profile" : profile.device;
  trace.library = profile.software.empty() ? "PyTorch" : "PyTorch, " + profile.software;
  trace.source = fmt::format("stepcast import: {} steps of {}", attribution.steps.size(),
                             std::filesystem::path(profile.file).filename().string());
  trace.flags = flags_of(attribution, attribution.halved_seconds / attribution.gpu_seconds);
  trace.notes = notes_of(profile, attribution);
  for (const Layer& layer : model.layers)
    trace.layers.push_back(
        {.name = layer.name, .forward = {}, .backward_data = {}, .backward_weights = {}, .update = {}});
  const StepTimes times(model, match);
  for (const ProfileStep& step : attribution.steps) append_samples(times.of(step), trace);
  if (const double wall = profiled_host(attribution).wall; ordinary_step > 0 && wall > 0) {
    add_host(attribution.steps, model, match, ordinary_step / wall, trace);
    trace.notes.push_back(fmt::format(
        "`host`: the host's times under the profiler, where a step took {:.4g} ms, scaled to a step "
        "of {:.4g} ms without it",
        1e3 * wall, 1e3 * ordinary_step));
  }
  for (LayerTrace& layer : trace.layers) {
    for (PassSamples* pass : {&layer.forward, &layer.backward_data, &layer.backward_weights, &layer.update})
      drop_empty(*pass);
  }
  return trace;
}

}  // namespace stepcast
