#include "sim/all_reduces.hpp"

#include <cmath>

namespace stepcast {
namespace {

constexpr double kMostMessages = 30'000;  // a step
constexpr double kSmallLatencyShare = 0.05;
constexpr int kSegments = 8;

/// Every worker reads its micro-batch from storage, which is the rank after the last worker.
std::shared_ptr<const Schedule> load_schedule(int workers) {
  std::vector<Edge> edges;
  edges.reserve(static_cast<std::size_t>(workers));
  for (int worker = 0; worker < workers; ++worker) edges.push_back({workers, worker, 0, 1, 0, 0});
  Phase phase;
  phase.edges = std::make_shared<const std::vector<Edge>>(std::move(edges));
  phase.arrival = Arrival::replace;
  return std::make_shared<const Schedule>(Schedule{workers + 1, 1, {phase}});
}

}  // namespace

AllReduces::AllReduces(const Simulation& simulation, const Topology& topology)
    : simulation_(simulation),
      placement_{simulation.platform, &topology, simulation.devices, simulation.latency_factor},
      group_{static_cast<int>(simulation.devices.size()), simulation.ranks_per_node},
      network_(std::make_unique<SimNetwork>(simulation.bandwidths, Form::coupled)) {
  if (group_.ranks > 1) {
    for (const double buffer : buffers()) choose(buffer);
  }
  network_ = with_chosen(resolve_form());
  if (simulation.load_data) add_load();
}

std::set<double> AllReduces::buffers() const {
  std::set<double> sizes;
  for (const Bucket& bucket : simulation_.workload->buckets) sizes.insert(bucket.gradient.value);
  for (const Bytes& statistics : simulation_.workload->statistics) sizes.insert(statistics.value);
  sizes.erase(0);
  return sizes;
}

int AllReduces::candidate_pattern(const AllReduceChoice& choice, std::size_t index, Bytes buffer) {
  const int pieces = choice.algorithm == Algorithm::double_tree ? tree_pieces(choice, buffer) : 0;
  const auto [found, is_new] = known_.try_emplace({static_cast<int>(index), pieces}, 0);
  if (is_new) found->second = network_->add(all_reduce_schedule(choice, group_, buffer), placement_);
  return found->second;
}

void AllReduces::choose(double buffer) {
  const AllReduceChoice& asked = simulation_.communication.all_reduce;
  const bool automatic = asked.algorithm == Algorithm::automatic;
  const auto choices = automatic ? candidates(asked, group_) : std::vector<AllReduceChoice>{asked};
  double least = INFINITY;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const int pattern = candidate_pattern(choices[i], i, {buffer});
    const double seconds = network_->uncontended(pattern, {buffer});
    if (seconds < least) {
      least = seconds;
      chosen_[buffer] = {choices[i], network_->pattern(pattern).schedule, pattern};
    }
  }
}

/// Whether the cheap form is known to be within 1 % of every message for all collectives of the run.
bool AllReduces::cheap_form_is_close(bool several) const {
  for (const auto& [buffer, chosen] : chosen_) {
    for (const Phase& phase : chosen.schedule->phases) {
      if (phase.rounds != phase.active) return false;  // a pipeline fills and drains unlike its steady state
    }
    const double share =
        network_->latency(chosen.pattern, {buffer}) / network_->uncontended(chosen.pattern, {buffer});
    if (several && share >= kSmallLatencyShare) return false;
  }
  return true;
}

double AllReduces::messages_a_step() const {
  double messages = 0;
  for (const Bucket& bucket : simulation_.workload->buckets) {
    const auto found = chosen_.find(bucket.gradient.value);
    if (found != chosen_.end()) messages += message_count(*found->second.schedule);
  }
  return messages;
}

Form AllReduces::resolve_form() {
  const bool several = simulation_.communication.streams > 1 && simulation_.communication.in_flight > 1;
  segments_ = several ? kSegments : 1;
  form_name_ = form_names()[static_cast<std::size_t>(simulation_.form)];
  if (simulation_.form != Form::automatic) return simulation_.form;
  form_name_ = "coupled";
  if (cheap_form_is_close(several)) return Form::coupled;
  const bool affordable = messages_a_step() <= kMostMessages;
  form_name_ = affordable ? "message" : "coupled, roughly";
  return affordable ? Form::message : Form::coupled;
}

std::unique_ptr<SimNetwork> AllReduces::with_chosen(Form form) {
  auto network = std::make_unique<SimNetwork>(simulation_.bandwidths, form);
  std::map<const Schedule*, int> added;
  for (auto& [buffer, chosen] : chosen_) {
    const auto [found, is_new] = added.try_emplace(chosen.schedule.get(), 0);
    if (is_new) found->second = network->add(network_->pattern(chosen.pattern));
    chosen.pattern = found->second;
  }
  return network;
}

void AllReduces::add_load() {
  Placement placement = placement_;
  placement.endpoints.push_back(simulation_.platform->storage_endpoint());
  load_pattern_ = network_->add(load_schedule(group_.ranks), std::move(placement));
}

int AllReduces::pattern(Bytes buffer) const {
  const auto found = chosen_.find(buffer.value);
  return found == chosen_.end() ? -1 : found->second.pattern;
}

std::string AllReduces::algorithm_names() const {
  std::set<std::string> names;
  for (const auto& [buffer, chosen] : chosen_) {
    names.insert(stepcast::algorithm_names()[static_cast<std::size_t>(chosen.choice.algorithm)]);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace stepcast
