#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.hpp"
#include "models/pytorch_profile/operators.hpp"

namespace stepcast {
namespace {

using Pass = OperatorRole::Pass;

/// Where a collective ran, as far as it matters for what it is.
enum class Where { gradients, outside, forward, backward };

/// The collective of an operator, a range or a kernel, such as "all_reduce"; empty if it is none.
std::string collective_kind(const std::string& name) {
  struct Word {
    std::string_view text;
    const char* kind;
  };
  // Longer words first: "reduce" is a part of several.
  constexpr std::array<Word, 11> kWords{{{"allreduce", "all_reduce"},
                                         {"crossdevicereduce", "all_reduce"},
                                         {"allgather", "all_gather"},
                                         {"reducescatter", "reduce_scatter"},
                                         {"alltoall", "all_to_all"},
                                         {"broadcast", "broadcast"},
                                         {"sendrecv", "send or receive"},
                                         {"send", "send or receive"},
                                         {"recv", "send or receive"},
                                         {"coalesced", "group of operations"},
                                         {"reduce", "reduce"}}};
  const bool known = name.starts_with("c10d::") || name.starts_with("_c10d_functional::") ||
                     name.starts_with("nccl:") || name.starts_with("gloo:") ||
                     name.starts_with("symm_mem::") || is_nccl(name);
  if (!known) return "";
  if (name.find("deep_ep::") != std::string::npos) return "all_to_all";  // its dispatch and combine
  const std::string word = operator_word(is_nccl(name) ? name.substr(0, name.find_first_of("(<")) : name);
  for (const Word& one : kWords) {
    if (word.find(one.text) != std::string::npos) return one.kind;
  }
  return "";
}

/// Collectives of a profile and where they ran.
class Collectives {
 public:
  Collectives(const Profile& profile, const std::vector<StepRange>& ranges, const OperatorRoles& roles);

  void count(std::map<std::string, int>& outside);
  [[noreturn]] void refuse() const;
  bool others() const { return !inside_.empty(); }

 private:
  const std::string& name(int index) const { return profile_.name(at(index)); }
  const ProfileOperator& at(int index) const { return profile_.operators[index]; }
  bool is_outermost(int index) const;
  Where where(int index, const std::string& kind) const;
  Where where_at(double time, const std::string& kind) const;
  void add(const std::string& kind, Where where, std::map<std::string, int>& outside);

  const Profile& profile_;
  const std::vector<StepRange>& ranges_;
  const OperatorRoles& roles_;
  std::vector<std::pair<double, Pass>> layers_;  ///< starts of layers' passes, in order of time
  std::map<std::string, int> inside_;            ///< such as "all_reduce in the forward pass"
};

Collectives::Collectives(const Profile& profile, const std::vector<StepRange>& ranges,
                         const OperatorRoles& roles)
    : profile_(profile), ranges_(ranges), roles_(roles) {
  for (std::size_t i = 0; i < roles.of.size(); ++i) {
    if (roles.of[i].network_operator >= 0) layers_.emplace_back(profile.operators[i].start, roles.of[i].pass);
  }
  std::sort(layers_.begin(), layers_.end());
}

bool Collectives::is_outermost(int index) const {
  for (int above = at(index).parent; above >= 0; above = at(above).parent) {
    if (!collective_kind(name(above)).empty()) return false;
  }
  return true;
}

/// Hooks of data parallelism run in "AccumulateGrad", or as parts of DDP. Synchronized batch norm exchanges
/// its sums.
Where Collectives::where(int index, const std::string& kind) const {
  for (int above = at(index).parent; above >= 0; above = at(above).parent) {
    const std::string& around = name(above);
    if (around.find("SyncBatchNorm") != std::string::npos || around.starts_with("Optimizer.") ||
        is_sharding(around))
      return Where::outside;
    const bool hook =
        around.find("AccumulateGrad") != std::string::npos || around.starts_with("torch.distributed.ddp");
    if (hook && kind == "all_reduce") return Where::gradients;
    const OperatorRole& role = roles_.of[above];
    if (role.network_operator >= 0) return role.pass == Pass::forward ? Where::forward : Where::backward;
  }
  return where_at(at(index).start, kind);
}

/// Between operators of one pass a collective belongs to that pass; in the backward pass, an all-reduce sums
/// gradients.
Where Collectives::where_at(double time, const std::string& kind) const {
  const int step = step_at(ranges_, time);
  const auto next = std::lower_bound(layers_.begin(), layers_.end(), std::pair(time, Pass::forward));
  if (next == layers_.end() || next == layers_.begin()) return Where::outside;
  const auto before = std::prev(next);
  if (step_at(ranges_, before->first) != step || step_at(ranges_, next->first) != step) return Where::outside;
  const bool after_forward = before->second == Pass::forward, to_forward = next->second == Pass::forward;
  if (after_forward != to_forward) return Where::outside;
  if (after_forward) return Where::forward;
  return kind == "all_reduce" ? Where::gradients : Where::backward;
}

/// An all-to-all is none of data parallelism wherever it runs: tables or experts are divided.
void Collectives::add(const std::string& kind, Where where, std::map<std::string, int>& outside) {
  const bool outer = where == Where::gradients || where == Where::outside;
  if (outer && kind == "all_to_all")
    ++inside_[kind + " outside the passes"];
  else if (outer)
    ++outside[kind];
  else
    ++inside_[fmt::format("{} in the {} pass", kind, where == Where::forward ? "forward" : "backward")];
}

void Collectives::count(std::map<std::string, int>& outside) {
  for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
    const int index = i;
    if (step_at(ranges_, at(index).start) < 0) continue;
    const std::string kind = collective_kind(name(index));
    if (!kind.empty() && is_outermost(index)) add(kind, where(index, kind), outside);
  }
  for (const ProfileKernel& kernel : profile_.kernels) {  // those that no operator names
    if (step_at(ranges_, kernel.launched) < 0 || !is_nccl(profile_.name(kernel))) continue;
    bool named = false;
    for (int above = kernel.host_operator; above >= 0 && !named; above = at(above).parent)
      named = !collective_kind(name(above)).empty();
    const std::string kind = collective_kind(profile_.name(kernel));
    if (named || kind.empty()) continue;
    const int host = kernel.host_operator;
    const bool in_layer = host >= 0 && roles_.of[host].network_operator >= 0;
    add(kind, in_layer ? where(host, kind) : where_at(kernel.launched, kind), outside);
  }
}

void Collectives::refuse() const {
  std::string counts;
  for (const auto& [what, number] : inside_)
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", number, what);
  const std::string groups =
      profile_.groups.empty() ? "" : fmt::format("; its groups: {}", fmt::join(profile_.groups, ", "));
  throw InputError(
      fmt::format("{}: runs collectives that are no sums of gradients ({} in {} steps{}): a trace has times "
                  "of layers only; "
                  "profile one rank without tensor, expert, pipeline or sharded parallelism, and say it in "
                  "the scenario's strategy",
                  profile_.file, counts, ranges_.size(), groups));
}

}  // namespace

bool is_nccl(const std::string& kernel) {
  // Kernels of PyTorch's symmetric memory, vLLM's all-reduce, DeepEP and NVSHMEM do what NCCL's do.
  constexpr std::array<std::string_view, 8> kParts{
      "ncclKernel", "ncclDevKernel",       "one_shot_all_reduce", "two_shot_all_reduce",
      "multimem_",  "cross_device_reduce", "deep_ep::",           "nvshmem"};
  return kernel.starts_with("nccl") || std::ranges::any_of(kParts, [&](std::string_view part) {
           return kernel.find(part) != std::string::npos;
         });
}

bool is_sharding(const std::string& name) {
  return name.starts_with("FSDP::") || name.starts_with("fsdp::") ||
         (name.starts_with("FullyShardedDataParallel.") && name != "FullyShardedDataParallel.forward");
}

void check_collectives(const Profile& profile, const std::vector<StepRange>& ranges,
                       const OperatorRoles& roles, std::map<std::string, int>& outside) {
  Collectives collectives(profile, ranges, roles);
  collectives.count(outside);
  if (collectives.others()) collectives.refuse();
}

}  // namespace stepcast
