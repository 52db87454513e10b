#include "sim/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/traffic.hpp"

namespace stepcast {
namespace {

std::string schedule_key(const Collective& collective, const AllReduceChoice& choice, const Group& group) {
  const int pieces =
      choice.algorithm == Algorithm::double_tree ? tree_pieces(choice, collective.buffer.size) : 0;
  return fmt::format("{} {} {} {} {} {} {} {} {}", static_cast<int>(collective.kind),
                     static_cast<int>(choice.algorithm), choice.channels, static_cast<int>(choice.local),
                     static_cast<int>(choice.network), pieces, group.ranks, group.ranks_per_node,
                     static_cast<const void*>(collective.schedule.get()));
}

}  // namespace

Collectives::Collectives(const Simulation& simulation, const Topology& topology, Patience patience)
    : simulation_(simulation),
      placement_{simulation.platform, &topology, simulation.plan->endpoints, simulation.latency_factor},
      planner_(std::make_unique<SimNetwork>(simulation.bandwidths, Form::coupled)) {
  const Plan& plan = *simulation.plan;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) choose(i);
  folding_ = chosen_folding(traffic(), patience, [&] { return single_messages(plan, placement_); });
  const auto folded = folded_ranks(plan);
  for (const Communicator& communicator : plan.communicators) {
    const bool any = std::ranges::any_of(communicator.ranks,
                                         [&](int rank) { return folded[static_cast<std::size_t>(rank)]; });
    joint_.push_back(any && folding_.folds);
  }
  form_ = chosen_form(traffic(), patience);
  network_ = std::make_unique<SimNetwork>(simulation.bandwidths, form_.form, form_.sharing);
  add_patterns();
  if (plan.load_data) add_loads();
  if (!plan.asynchronous && folding_.folds) add_channels();
}

bool Collectives::may_be_off() const {
  if (simulation_.form != Form::automatic) return false;
  return form_.roughly || (folding_.roughly && simulation_.fold == Folding::automatic);
}

Placement Collectives::ranks_of(const Communicator& communicator, int first_group, int groups) const {
  const auto first = communicator.ranks.begin() + first_group * communicator.size;
  return placement_of(placement_, {first, first + groups * communicator.size});
}

/// The cost of a choice, with all groups at work at once.
Collectives::Chosen Collectives::candidate(const Collective& collective, const AllReduceChoice& choice) {
  const Communicator& communicator =
      simulation_.plan->communicators[static_cast<std::size_t>(collective.communicator)];
  const Group group{communicator.size, communicator.ranks_per_node};
  const AllReduceChoice played = played_choice(choice, group.ranks, collective.buffer.size);
  auto& schedule = schedules_[schedule_key(collective, played, group)];
  if (schedule == nullptr) schedule = schedule_of(collective, played, group);
  const auto [known, is_new] = planned_[schedule.get()].try_emplace(collective.communicator, 0);
  if (is_new) {
    known->second = planner_->add(replicated(schedule, communicator.groups()),
                                  ranks_of(communicator, 0, communicator.groups()));
  }
  const double seconds = planner_->uncontended(known->second, collective.buffer.size);
  return {choice, schedule, known->second, seconds, {}};
}

void Collectives::choose(std::size_t index) {
  const Collective& collective = simulation_.plan->collectives[index];
  const Communicator& communicator =
      simulation_.plan->communicators[static_cast<std::size_t>(collective.communicator)];
  chosen_.emplace_back();
  if (communicator.size == 1 || collective.buffer.size.value == 0) return;
  const AllReduceChoice& asked = communicator.all_reduce;
  const bool automatic =
      collective.kind == Collective::Kind::all_reduce && asked.algorithm == Algorithm::automatic;
  const Group group{communicator.size, communicator.ranks_per_node};
  double least = INFINITY;
  for (const AllReduceChoice& choice :
       automatic ? candidates(asked, group) : std::vector<AllReduceChoice>{asked}) {
    Chosen one = candidate(collective, choice);
    if (one.seconds >= least) continue;
    least = one.seconds;
    chosen_.back() = std::move(one);
  }
}

Traffic Collectives::traffic() const {
  const Plan& plan = *simulation_.plan;
  Traffic traffic{simulation_, {}, folding_.folds};
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const Chosen& one = chosen_[i];
    if (one.schedule == nullptr) continue;
    const Buffer& buffer = plan.collectives[i].buffer;
    const int communicator = plan.collectives[i].communicator;
    traffic.collectives.push_back({one.schedule.get(), &planner_->pattern(one.planned), buffer.size,
                                   communicator, i, one.seconds,
                                   planner_->latency(one.planned, buffer.size)});
    const bool alone = plan.communicators[static_cast<std::size_t>(communicator)].groups() == 1;
    traffic.joint = traffic.joint && (alone || joint_.empty() || joint(communicator));
  }
  return traffic;
}

void Collectives::add_patterns() {
  const Plan& plan = *simulation_.plan;
  std::map<std::pair<const Schedule*, int>, std::vector<int>> added;  // by schedule and communicator
  std::size_t known = 0;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    Chosen& chosen = chosen_[i];
    if (chosen.schedule == nullptr) continue;
    const int number = plan.collectives[i].communicator;
    const Communicator& communicator = plan.communicators[static_cast<std::size_t>(number)];
    auto& patterns = added[{chosen.schedule.get(), number}];
    if (patterns.empty() && joint(number)) {
      patterns.push_back(network_->add(planner_->pattern(planned_[chosen.schedule.get()][number])));
    }
    for (int group = 0; group < communicator.groups() && !joint(number); ++group) {
      if (static_cast<int>(patterns.size()) == communicator.groups()) break;
      patterns.push_back(network_->add(chosen.schedule, ranks_of(communicator, group, 1)));
    }
    chosen.patterns = patterns;
    if (!form_.seconds.empty())
      network_->know(patterns.front(), plan.collectives[i].buffer.size, form_.seconds[known++]);
  }
}

void Collectives::add_loads() {
  for (std::size_t i = 0; i < simulation_.plan->roles.size(); ++i) {
    const Role& role = simulation_.plan->roles[i];
    if (!role.training) continue;
    const int programs = folding_.folds ? 1 : role.members;
    for (int member = 0; member < programs; ++member) {
      SingleMessages loads = loads_of(role, member, role.members / programs, placement_);
      loads_[{static_cast<int>(i), member}] =
          network_->add(std::move(loads.schedule), std::move(loads.placement));
    }
  }
}

void Collectives::add_channels() {
  for (const auto& channel : simulation_.plan->channels) {
    SingleMessages messages = channel_messages(*simulation_.plan, placement_, channel);
    channels_[channel] = network_->add(std::move(messages.schedule), std::move(messages.placement));
  }
}

int Collectives::pattern(int collective, int group) const {
  const auto& patterns = chosen_[static_cast<std::size_t>(collective)].patterns;
  return patterns.empty() ? -1 : patterns[static_cast<std::size_t>(group)];
}

int Collectives::load_pattern(int role, int member) const {
  const auto found = loads_.find({role, member});
  return found == loads_.end() ? -1 : found->second;
}

int Collectives::channel_pattern(int from, int to) const {
  const auto found = channels_.find({from, to});
  return found == channels_.end() ? -1 : found->second;
}

std::string Collectives::algorithm_names() const {
  std::set<std::string> names;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (chosen_[i].schedule == nullptr ||
        simulation_.plan->collectives[i].kind != Collective::Kind::all_reduce)
      continue;
    names.insert(stepcast::algorithm_names()[static_cast<std::size_t>(chosen_[i].choice.algorithm)]);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace stepcast
