#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "models/pytorch_profile/operators.hpp"
#include "models/pytorch_profile/profile.hpp"

namespace stepcast {
namespace {

constexpr double kLeastAttributed = 0.98;

[[noreturn]] void refuse(const Profile& profile, const std::string& why) {
  throw InputError(fmt::format("{}: {}", profile.file, why));
}

bool in_any_step(const std::vector<StepRange>& steps, double time) {
  return step_at(steps, time) >= 0;
}

/// A graph that is one operator with a gradient is a layer; the passes of another one cannot be told apart.
void refuse_graphs(const Profile& profile, const std::vector<StepRange>& steps, const OperatorRoles& roles) {
  for (const ProfileKernel& kernel : profile.kernels) {
    if (!kernel.in_graph || !in_any_step(steps, kernel.launched)) continue;
    const int host = kernel.host_operator;
    if (host < 0 || roles.of[host].network_operator < 0)
      refuse(profile,
             "its kernels ran in a CUDA graph that is no operator with a gradient, which hides the passes; "
             "profile without CUDA graphs, or with torch.cuda.make_graphed_callables");
  }
}

void refuse_several_gpus(const Profile& profile, const std::vector<StepRange>& steps) {
  std::set<int> devices;
  for (const ProfileKernel& kernel : profile.kernels) {
    if (kernel.kind == ProfileKernel::Kind::kernel && in_any_step(steps, kernel.launched))
      devices.insert(kernel.device);
  }
  if (devices.size() > 1) {
    refuse(profile, fmt::format("has kernels of {} GPUs ({} and {}); profile one rank that uses one GPU",
                                devices.size(), *devices.begin(), *std::next(devices.begin())));
  }
}

/// Adds up the kernels of one step after another.
class Accumulator {
 public:
  Accumulator(const Profile& profile, const OperatorRoles& roles, std::vector<ProfileStep>& steps)
      : profile_(profile), roles_(roles), steps_(steps) {}

  void add(const ProfileKernel& kernel, int step);
  /// Divides what a node's convolution took between its two gradients.
  void finish();
  double halved() const { return halved_; }

 private:
  struct NodeTime {
    double data = 0, weights = 0, unknown = 0;
  };
  void leave_out(const ProfileKernel& kernel, NonLayerWork work, ProfileStep& step);
  void add_backward(const ProfileKernel& kernel, const OperatorRole& role, int step);

  const Profile& profile_;
  const OperatorRoles& roles_;
  std::vector<ProfileStep>& steps_;
  std::map<std::pair<int, int>, NodeTime> convolutions_;  ///< by step and operator
  double halved_ = 0;
};

/// Time of no layer. All but the optimizer's is also counted by operator.
void Accumulator::leave_out(const ProfileKernel& kernel, NonLayerWork work, ProfileStep& step) {
  step.non_layer_seconds[work] += kernel.seconds;
  if (work == NonLayerWork::optimizer) return;
  const int index = kernel.host_operator;
  step.left_out[index < 0 ? profile_.name(kernel) : profile_.name(profile_.operators[index])] +=
      kernel.seconds;
}

bool is_from_host(const std::string& copy) {
  return copy.find("HtoD") != std::string::npos ||
         copy.find("HostToDevice") != std::string::npos;  // CUDA, ROCm
}

void Accumulator::add(const ProfileKernel& kernel, int step) {
  ProfileStep& to = steps_[step];
  if (is_nccl(profile_.name(kernel))) return leave_out(kernel, NonLayerWork::communication, to);
  if (kernel.host_operator < 0) {
    leave_out(kernel, NonLayerWork::unknown, to);
    return;
  }
  const OperatorRole& role = roles_.of[kernel.host_operator];
  if (role.outside) return;
  const bool input = (role.work == NonLayerWork::other || role.work == NonLayerWork::unknown) &&
                     kernel.kind == ProfileKernel::Kind::copy && is_from_host(profile_.name(kernel));
  if (input || role.network_operator < 0)
    return leave_out(kernel, input ? NonLayerWork::input : role.work, to);
  if (role.step >= 0) step = role.step;
  NetworkOperator& layer = steps_[step].operators[role.network_operator];
  layer.region = layer.region || kernel.in_graph;
  OperatorTimes& times = layer.times;
  if (role.pass == OperatorRole::Pass::forward) times.forward += kernel.seconds;
  if (role.pass == OperatorRole::Pass::gradient_sum) times.gradient_sum += kernel.seconds;
  if (role.pass == OperatorRole::Pass::backward_data) times.backward_data += kernel.seconds;
  if (role.pass == OperatorRole::Pass::backward_weights) times.backward_weights += kernel.seconds;
  if (role.pass == OperatorRole::Pass::backward_both) add_backward(kernel, role, step);
}

void Accumulator::add_backward(const ProfileKernel& kernel, const OperatorRole& role, int step) {
  NodeTime& time = convolutions_[{step, role.network_operator}];
  switch (convolution_pass(profile_.name(kernel))) {
    case ConvolutionPass::data:
      time.data += kernel.seconds;
      return;
    case ConvolutionPass::weights:
      time.weights += kernel.seconds;
      return;
    case ConvolutionPass::unknown:
      time.unknown += kernel.seconds;
  }
}

void Accumulator::finish() {
  for (const auto& [place, time] : convolutions_) {
    OperatorTimes& times = steps_[place.first].operators[place.second].times;
    times.backward_data += time.data + time.unknown / 2;
    times.backward_weights += time.weights + time.unknown / 2;
    times.halved += time.unknown;
    halved_ += time.unknown;
  }
}

/// The precision in which most of the time of products ran, as their kernels' names tell.
std::string main_precision(const Profile& profile, const std::vector<StepRange>& steps) {
  std::map<std::string, double> seconds;
  for (const ProfileKernel& kernel : profile.kernels) {
    if (kernel.kind != ProfileKernel::Kind::kernel || !in_any_step(steps, kernel.launched)) continue;
    const std::string precision = kernel_precision(profile.name(kernel));
    const std::string& name = profile.name(kernel);
    const bool product = name.find("gemm") != std::string::npos || name.find("cudnn") != std::string::npos ||
                         name.find("cutlass") != std::string::npos ||
                         name.find("Cijk_") != std::string::npos || name.find("conv") != std::string::npos ||
                         name.find("nvjet") != std::string::npos;
    const bool norm = name.find("bn_") != std::string::npos || name.find("nchwToNhwc") != std::string::npos;
    if (!precision.empty() && product && !norm) seconds[precision] += kernel.seconds;
  }
  const auto most = std::max_element(seconds.begin(), seconds.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == seconds.end() ? "f32" : most->first;
}

/// Steps without a backward pass, such as the first of a profile that began in one, are left out.
void drop_incomplete(const Profile& profile, Attribution& all) {
  const auto empty = [](const ProfileStep& step) { return step.operators.empty(); };
  const std::size_t before = all.steps.size();
  std::erase_if(all.steps, empty);
  if (all.steps.empty())
    refuse(profile, "has no backward pass: it is a profile of inference, not of training steps");
  if (all.steps.size() < before)
    all.dropped = fmt::format("{} of {} steps had no backward pass and were left out",
                              before - all.steps.size(), before);
}

double total(const ProfileStep& step) {
  double sum = 0;
  for (const auto& [work, seconds] : step.non_layer_seconds) sum += seconds;
  for (const NetworkOperator& one : step.operators)
    sum += one.times.forward + one.times.backward_data + one.times.backward_weights + one.times.gradient_sum;
  return sum;
}

bool same_operators(const ProfileStep& one, const ProfileStep& other) {
  const auto same = [](const NetworkOperator& a, const NetworkOperator& b) { return a.kind == b.kind; };
  return std::equal(one.operators.begin(), one.operators.end(), other.operators.begin(),
                    other.operators.end(), same);
}

/// The forward and backward passes of one step as a step each, if they ran the same operators. The optimizer
/// ran once, and each has its time.
std::vector<ProfileStep> micro_batches(const ProfileStep& step) {
  const int rounds = step.operators.back().round + 1;
  std::vector<ProfileStep> parts(rounds, step);
  for (ProfileStep& part : parts) {
    part.operators.clear();
    part.wall /= rounds;
    for (auto& [work, seconds] : part.non_layer_seconds)
      seconds /= work == NonLayerWork::optimizer ? 1 : rounds;
    for (auto& [name, seconds] : part.left_out) seconds /= rounds;
  }
  for (const NetworkOperator& one : step.operators) parts[one.round].operators.push_back(one);
  const auto differs = [&](const ProfileStep& part) { return !same_operators(parts.front(), part); };
  if (std::any_of(parts.begin(), parts.end(), differs)) return {step};
  return parts;
}

void split_micro_batches(Attribution& all) {
  std::vector<ProfileStep> parts;
  for (const ProfileStep& step : all.steps) {
    const std::vector<ProfileStep> own = micro_batches(step);
    all.micro_batches = std::max<int>(all.micro_batches, own.size());
    parts.insert(parts.end(), own.begin(), own.end());
  }
  all.steps = std::move(parts);
}

[[noreturn]] void refuse_difference(const Profile& profile, const ProfileStep& first,
                                    const ProfileStep& step) {
  const std::size_t both = std::min(step.operators.size(), first.operators.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (step.operators[i].kind == first.operators[i].kind) continue;
    refuse(profile,
           fmt::format("{} and {} differ: operator {} of the forward pass is {} in one and {} in the other",
                       first.name, step.name, i + 1, first.operators[i].name, step.operators[i].name));
  }
  refuse(profile, fmt::format("{} and {} differ: {} and {} operators of the forward pass", first.name,
                              step.name, first.operators.size(), step.operators.size()));
}

/// Keeps the steps that ran the same operators as most others, if they are more than half.
void keep_equal_steps(const Profile& profile, Attribution& all) {
  const std::vector<ProfileStep>& steps = all.steps;
  const auto alike = [&](const ProfileStep& one) {
    return std::count_if(steps.begin(), steps.end(),
                         [&](const ProfileStep& other) { return same_operators(one, other); });
  };
  const auto most = std::find_if(steps.begin(), steps.end(),
                                 [&](const ProfileStep& one) { return 2 * alike(one) > std::ssize(steps); });
  if (most == steps.end()) {
    const auto other = std::find_if(steps.begin(), steps.end(), [&](const ProfileStep& one) {
      return !same_operators(steps.front(), one);
    });
    refuse_difference(profile, steps.front(), *other);
  }
  const std::size_t before = steps.size();
  const ProfileStep kept = *most;
  std::erase_if(all.steps, [&](const ProfileStep& one) { return !same_operators(kept, one); });
  if (all.steps.size() < before)
    all.dropped += fmt::format("{}{} of {} steps ran other operators and were left out",
                               all.dropped.empty() ? "" : "; ", before - all.steps.size(), before);
}

}  // namespace

Attribution attribute(const Profile& profile) {
  const std::vector<StepRange> ranges = step_ranges(profile);
  if (ranges.empty())
    refuse(profile,
           "has no steps: call step() of the profiler after every training step (ProfilerStep#...), or "
           "profile an "
           "optimizer (Optimizer.step#...)");
  refuse_several_gpus(profile, ranges);
  Attribution result;
  const OperatorRoles roles = operator_roles(profile, ranges, result.steps);
  check_collectives(profile, ranges, roles, result.collectives);
  refuse_graphs(profile, ranges, roles);
  Accumulator sums(profile, roles, result.steps);
  for (const ProfileKernel& kernel : profile.kernels) {
    const int step = step_at(ranges, kernel.launched);
    if (step >= 0) sums.add(kernel, step);
  }
  sums.finish();
  if (!profile.cpu_only) add_host_times(profile, ranges, roles, result.steps);
  drop_incomplete(profile, result);
  split_micro_batches(result);
  keep_equal_steps(profile, result);
  for (const ProfileStep& step : result.steps) {
    result.gpu_seconds += total(step);
    const auto unknown = step.non_layer_seconds.find(NonLayerWork::unknown);
    if (unknown != step.non_layer_seconds.end()) result.unknown_seconds += unknown->second;
  }
  result.halved_seconds = sums.halved();
  result.foreach_optimizer = roles.foreach_optimizer;
  result.precision = main_precision(profile, ranges);
  if (result.gpu_seconds <= 0) refuse(profile, "has no time in its steps");
  if (result.attributed() < kLeastAttributed) {
    refuse(profile, fmt::format("only {:.1f} % of the time in its steps could be attributed, at least {:.0f} "
                                "% are needed; left out: {}",
                                100 * result.attributed(), 100 * kLeastAttributed, result.left_out_text()));
  }
  return result;
}

}  // namespace stepcast
