#include "sim/collectives/planned_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/fidelity/fidelity_rule.hpp"
#include "sim/patterns/point_to_point_schedules.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

namespace {

std::optional<NcclOperation> operation_of(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::all_reduce:
      return NcclOperation::all_reduce;
    case Collective::Kind::reduce_scatter:
      return NcclOperation::reduce_scatter;
    case Collective::Kind::all_gather:
      return NcclOperation::all_gather;
    case Collective::Kind::broadcast:
      return NcclOperation::broadcast;
    case Collective::Kind::reduce:
      return NcclOperation::reduce;
    case Collective::Kind::all_to_all:
      return NcclOperation::all_to_all;
    case Collective::Kind::exchange:
      break;
  }
  return std::nullopt;
}

/// The endpoints of group `index`; empty if one of them is no device.
std::vector<int> endpoints_of(const Platform& platform, const Plan& plan, const Communicator& communicator,
                              int index) {
  std::vector<int> endpoints;
  for (int i = 0; i < communicator.size; ++i) {
    const RankId rank = communicator.ranks[static_cast<std::size_t>(index * communicator.size + i)];
    const int endpoint = plan.endpoints[rank];
    if (endpoint >= platform.devices()) return {};
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

/// Groups with a rank in this node.
int groups_in(const Platform& platform, const Plan& plan, const Communicator& communicator, int node) {
  int count = 0;
  for (int group = 0; group < communicator.groups(); ++group) {
    const auto begin = communicator.ranks.begin() + static_cast<std::ptrdiff_t>(group) * communicator.size;
    count += std::any_of(begin, begin + communicator.size,
                         [&](RankId rank) { return platform.node_of(plan.endpoints[rank]) == node; });
  }
  return count;
}

/// The first group, which stands for all groups of the communicator.
std::optional<NcclRanks> group_of(const Platform& platform, const Plan& plan,
                                  const Communicator& communicator) {
  std::map<int, std::vector<int>> devices;  // by node
  for (const int endpoint : endpoints_of(platform, plan, communicator, 0))
    devices[platform.node_of(endpoint)].push_back(endpoint % platform.devices_per_node);
  if (devices.empty()) return std::nullopt;
  const auto& [node, first] = *devices.begin();
  for (const auto& one : devices) {
    const std::set<int> distinct(one.second.begin(), one.second.end());
    if (one.second.size() != first.size() || distinct.size() != first.size()) return std::nullopt;
  }
  return NcclRanks{static_cast<int>(devices.size()), first, groups_in(platform, plan, communicator, node)};
}

}  // namespace

std::optional<NcclTime> nccl_time_of(const Simulation& simulation, const Collective& collective,
                                     const AllReduceChoice& asked) {
  const Platform& platform = *simulation.platform;
  const Plan& plan = *simulation.plan;
  const auto operation = operation_of(collective.kind);
  if (platform.software.nccl == 0 || !operation) return std::nullopt;
  Software software = platform.software;
  if (operation == NcclOperation::all_reduce) {
    if (asked.algorithm != Algorithm::automatic && asked.algorithm != Algorithm::ring) return std::nullopt;
    if (asked.algorithm == Algorithm::ring) software.trees = software.nvls = false;
  }
  const Communicator& communicator = communicator_of(plan, collective);
  const auto group = group_of(platform, plan, communicator);
  if (!group) return std::nullopt;
  Bytes size = collective.buffer.size;
  if (operation == NcclOperation::all_to_all) size.value /= communicator.size;  // nccl-tests: one rank's data
  NcclChannels channels = nccl_channels(platform, *group);
  for (BytesPerSecond* rate :
       {&channels.rings, &channels.port, &channels.network, &channels.nic, &channels.host_copy})
    *rate = simulation.bandwidths.common_factor() * *rate;
  channels.latency_factor = simulation.latency_factor;
  return nccl_time(software, channels, *operation, size);
}

Algorithm schedule_algorithm(const NcclTime& time) {
  const bool tree = time.algorithm == NcclAlgorithm::tree || time.algorithm == NcclAlgorithm::nvls_tree;
  return tree ? Algorithm::double_tree : Algorithm::ring;
}

namespace {

std::string schedule_key(const Collective& collective, const AllReduceChoice& choice, const Group& group) {
  const int segments =
      choice.algorithm == Algorithm::double_tree ? tree_pieces(choice, collective.buffer.size) : 0;
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", static_cast<int>(collective.kind),
                     static_cast<int>(choice.algorithm), choice.channels, static_cast<int>(choice.local),
                     static_cast<int>(choice.network), segments, group.ranks, group.ranks_per_node,
                     choice.local == LocalPart::flat ? collective.root : 0,
                     static_cast<const void*>(collective.schedule.get()));
}

}  // namespace

PlannedCollectives::PlannedCollectives(const Simulation& simulation, const Topology& topology,
                                       ComputeBudget budget)
    : simulation_(simulation),
      placement_{simulation.platform, &topology, simulation.plan->endpoints, simulation.latency_factor},
      planner_(std::make_unique<SimNetwork>(simulation.bandwidths, Fidelity::coupled)) {
  const Plan& plan = *simulation.plan;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) choose(i);
  choose_simulation(budget);
}

void PlannedCollectives::choose_simulation(ComputeBudget budget) {
  const Plan& plan = *simulation_.plan;
  joint_.clear();
  folding_ = {};
  const CollectiveLoad all = traffic();
  folding_ = chosen_folding(all, budget, [&] {
    if (!symmetric_) symmetric_ = workers_symmetric(all, single_messages(plan, placement_));
    return *symmetric_;
  });
  const auto folded = folded_ranks(plan);
  for (const Communicator& communicator : plan.communicators) {
    const bool any = std::ranges::any_of(communicator.ranks, [&](RankId rank) { return folded[rank]; });
    joint_.push_back(any && folding_.folds);
  }
  fidelity_ = choose_fidelity(traffic(), budget);
  network_ = std::make_unique<SimNetwork>(simulation_.bandwidths, fidelity_.fidelity, fidelity_.link_sharing);
  if (plan.channels.empty() && !plan.asynchronous && !plan.assigns_work_by_message)
    network_->use_patterns_only(
        std::ranges::all_of(plan.communicators, [](const Communicator& one) { return one.in_flight == 1; }));
  add_patterns();
  if (plan.load_data) add_loads();
  if (!plan.asynchronous && folding_.folds) add_channels();
}

bool PlannedCollectives::may_be_inaccurate() const {
  if (simulation_.fidelity != Fidelity::automatic) return false;
  const bool rough_folding = folding_.accuracy == Accuracy::rough && simulation_.fold == Folding::automatic;
  return fidelity_.accuracy == Accuracy::rough || rough_folding;
}

Placement PlannedCollectives::ranks_of(const Communicator& communicator, int first_group, int groups) const {
  const auto first = communicator.ranks.begin() + first_group * communicator.size;
  return placement_of(placement_, {first, first + groups * communicator.size});
}

/// The schedule and the duration of a choice, with all groups active at the same time.
PlannedCollectives::Chosen PlannedCollectives::candidate(const Collective& collective,
                                                         const AllReduceChoice& choice) {
  const Communicator& communicator = communicator_of(*simulation_.plan, collective);
  const Group group{communicator.size, communicator.ranks_per_node};
  const AllReduceChoice actual_choice = resolved_choice(choice, group.ranks, collective.buffer.size);
  auto& schedule = schedules_[schedule_key(collective, actual_choice, group)];
  if (schedule == nullptr) schedule = schedule_of(collective, actual_choice, group);
  const auto [in_planner, is_new] = planned_[schedule.get()].try_emplace(collective.communicator);
  if (is_new) {
    in_planner->second = planner_->add(replicated(schedule, communicator.groups()),
                                       ranks_of(communicator, 0, communicator.groups()));
  }
  const double seconds = planner_->uncontended(in_planner->second, collective.buffer.size);
  return {choice, schedule, in_planner->second, seconds, false, {}};
}

void PlannedCollectives::choose(std::size_t index) {
  const Collective& collective = simulation_.plan->collectives[index];
  const Communicator& communicator = communicator_of(*simulation_.plan, collective);
  chosen_.emplace_back();
  if (communicator.size == 1 || collective.buffer.size.value == 0) return;
  const AllReduceChoice& asked = communicator.all_reduce;
  const bool automatic = has_automatic_algorithm(*simulation_.plan, collective);
  const Group group{communicator.size, communicator.ranks_per_node};
  if (const auto known = nccl_time_of(simulation_, collective, asked)) {
    AllReduceChoice choice = asked;
    if (automatic) choice.algorithm = schedule_algorithm(*known);
    chosen_.back() = candidate(collective, choice);
    chosen_.back().seconds = known->time.value;
    chosen_.back().known = true;
    return;
  }
  double least = INFINITY;
  for (const AllReduceChoice& choice :
       automatic ? candidates(asked, group) : std::vector<AllReduceChoice>{asked}) {
    Chosen one = candidate(collective, choice);
    if (one.seconds >= least) continue;
    least = one.seconds;
    chosen_.back() = std::move(one);
  }
}

CollectiveLoad PlannedCollectives::traffic() const {
  const Plan& plan = *simulation_.plan;
  CollectiveLoad traffic{simulation_, {}, folding_.folds};
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const Chosen& one = chosen_[i];
    if (one.schedule == nullptr) continue;
    const Buffer& buffer = plan.collectives[i].buffer;
    const CommunicatorId communicator = plan.collectives[i].communicator;
    traffic.collectives.push_back({one.schedule.get(), &planner_->pattern(one.planned), buffer.size,
                                   communicator, CollectiveId(i), one.seconds,
                                   planner_->latency(one.planned, buffer.size)});
    const bool alone = plan.communicators[communicator.index()].groups() == 1;
    traffic.joint = traffic.joint && (alone || joint_.empty() || joint(communicator));
  }
  return traffic;
}

void PlannedCollectives::add_patterns() {
  const Plan& plan = *simulation_.plan;
  std::map<std::pair<const Schedule*, CommunicatorId>, std::vector<PatternId>> added;
  std::size_t next_known = 0;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    Chosen& chosen = chosen_[i];
    if (chosen.schedule == nullptr) continue;
    const CommunicatorId id = plan.collectives[i].communicator;
    const Communicator& communicator = plan.communicators[id.index()];
    auto& patterns = added[{chosen.schedule.get(), id}];
    if (patterns.empty() && joint(id)) {
      patterns.push_back(network_->add(planner_->pattern(planned_[chosen.schedule.get()][id])));
    }
    for (int group = 0; group < communicator.groups() && !joint(id); ++group) {
      if (static_cast<int>(patterns.size()) == communicator.groups()) break;
      patterns.push_back(network_->add(chosen.schedule, ranks_of(communicator, group, 1)));
    }
    chosen.patterns = patterns;
    for (const PatternId pattern : patterns) {
      if (chosen.known)
        network_->set_modelled_seconds(pattern, plan.collectives[i].buffer.size, chosen.seconds);
    }
    if (fidelity_.seconds.empty()) continue;
    const double sampled = fidelity_.seconds[next_known++];
    if (!chosen.known)
      network_->set_known_seconds(patterns.front(), plan.collectives[i].buffer.size, sampled);
  }
}

void PlannedCollectives::add_loads() {
  loads_.clear();
  for (std::size_t i = 0; i < simulation_.plan->roles.size(); ++i) {
    const Role& role = simulation_.plan->roles[i];
    if (!role.training) continue;
    const int programs = folding_.folds ? 1 : role.members;
    for (int member = 0; member < programs; ++member) {
      SingleMessages loads = loads_of(role, member, role.members / programs, placement_);
      loads_[{RoleId(i), member}] = network_->add(std::move(loads.schedule), std::move(loads.placement));
    }
  }
}

void PlannedCollectives::add_channels() {
  channels_.clear();
  Placement placement = placement_;
  if (!placement.platform->local_program_costs.empty()) {
    auto of_programs = std::make_unique<Platform>(*placement.platform);
    of_programs->local_message_costs = of_programs->local_program_costs;
    of_programs_ = std::move(of_programs);
    placement.platform = of_programs_.get();
  }
  for (const auto& channel : simulation_.plan->channels) {
    SingleMessages messages = channel_messages(*simulation_.plan, placement, channel);
    channels_[channel] = network_->add(std::move(messages.schedule), std::move(messages.placement));
  }
}

PatternId PlannedCollectives::pattern(CollectiveId collective, int group) const {
  const auto& patterns = chosen_[collective.index()].patterns;
  return patterns.empty() ? PatternId() : patterns[static_cast<std::size_t>(group)];
}

PatternId PlannedCollectives::load_pattern(RoleId role, int member) const {
  const auto found = loads_.find({role, member});
  return found == loads_.end() ? PatternId() : found->second;
}

PatternId PlannedCollectives::channel_pattern(RoleId from, RoleId to) const {
  const auto found = channels_.find({from, to});
  return found == channels_.end() ? PatternId() : found->second;
}

std::string PlannedCollectives::algorithm_names() const {
  std::set<std::string> names;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (chosen_[i].schedule == nullptr ||
        simulation_.plan->collectives[i].kind != Collective::Kind::all_reduce)
      continue;
    names.insert(stepcast::algorithm_names()[static_cast<std::size_t>(chosen_[i].choice.algorithm)]);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string PlannedCollectives::algorithm(CollectiveId collective) const {
  const Chosen& one = chosen_[collective.index()];
  const bool all_reduce =
      simulation_.plan->collectives[collective.index()].kind == Collective::Kind::all_reduce;
  if (one.schedule == nullptr || !all_reduce) return "";
  return stepcast::algorithm_names()[static_cast<std::size_t>(one.choice.algorithm)];
}

AllReduceChoices PlannedCollectives::automatic_choices() const {
  const Plan& plan = *simulation_.plan;
  AllReduceChoices choices;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (has_automatic_algorithm(plan, plan.collectives[i])) choices[CollectiveId(i)] = chosen_[i].choice;
  }
  return choices;
}

}  // namespace stepcast
