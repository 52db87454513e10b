#include "sim/network.hpp"

#include <algorithm>
#include <set>

#include "sim/play.hpp"
#include "sim/shortest.hpp"

namespace stepcast {

int SimNetwork::add(std::shared_ptr<const Schedule> schedule, Placement placement) {
  Pattern pattern{std::move(schedule), std::move(placement), {}};
  pattern.phases = usage_of(*pattern.schedule, pattern.placement, bandwidths_);
  find_slowest(pattern.phases, bandwidths_);
  std::set<const void*> known;
  for (const Phase& phase : pattern.schedule->phases) {
    if (known.insert(phase.edges.get()).second) routes_ += static_cast<std::int64_t>(phase.edges->size());
  }
  return add(std::move(pattern));
}

int SimNetwork::add(Pattern pattern) {
  patterns_.push_back(std::move(pattern));
  return static_cast<int>(patterns_.size()) - 1;
}

double SimNetwork::uncontended(int index, Bytes buffer) const {
  return uncontended_seconds(pattern(index).phases, pattern(index).placement, buffer);
}

double SimNetwork::latency(int index, Bytes buffer) const {
  double seconds = 0;
  for (const PhaseUsage& phase : pattern(index).phases) {
    double longest = 0;
    for (const EdgeKind kind : kEdgeKinds) {
      if (phase.of(kind).any)
        longest = std::max(longest, phase_cost(phase, kind, pattern(index).placement, buffer).latency);
    }
    seconds += longest;
  }
  return seconds;
}

void SimNetwork::start() {
  if (form_ == Form::coupled) return merge();
  const bool own = sharing_ == Sharing::own;
  engine_ = std::make_unique<Engine>(own ? std::vector<BytesPerSecond>{} : bandwidths_.all());
  const auto bandwidth = [this](int link) { return bandwidths_[link]; };
  if (own) {
    links_.emplace(*engine_, bandwidths_.size(), bandwidth);
    links_->limit_work(most_work_);
  }
  if (patterns_.empty()) return;
  const Placement& any = patterns_.front().placement;
  paths_.emplace(*any.platform, *any.topology);
}

void SimNetwork::merge() {
  std::vector<const std::vector<LinkWeight>*> uses;
  first_phase_.clear();
  for (const Pattern& pattern : patterns_) {
    first_phase_.push_back(uses.size());
    for (const PhaseUsage& phase : pattern.phases) {
      for (const EdgesUsage& edges : phase.edges) uses.push_back(&edges.links);
    }
  }
  LinkClasses merged;
  if (!shortest_) merged = merge_links(uses, [this](int link) { return bandwidths_[link]; });
  class_links_ = std::move(merged.patterns);
  engine_ = std::make_unique<Engine>(merged.bandwidths);
}

std::vector<int> SimNetwork::edge_links(const Pattern& pattern, const Edge& edge) const {
  std::vector<int> links;
  pattern.placement.topology->route(pattern.placement.endpoints[static_cast<std::size_t>(edge.source)],
                                    pattern.placement.endpoints[static_cast<std::size_t>(edge.target)],
                                    links);
  return links;
}

const std::vector<int>& SimNetwork::phase_links(int pattern, std::size_t phase, EdgeKind kind) const {
  return class_links_[first_phase_[static_cast<std::size_t>(pattern)] + 2 * phase +
                      static_cast<std::size_t>(kind)];
}

void SimNetwork::start_flow(std::span<const int> links, Bytes size, Engine::Callback&& done) {
  if (links_) return links_->start_flow(links, size, std::move(done));
  engine_->start_flow({links.begin(), links.end()}, size, std::move(done));
}

std::optional<double> SimNetwork::known_seconds(int number, Bytes buffer) {
  if (shortest_) {
    const auto [least, is_new] = least_.try_emplace({number, buffer.value}, 0);
    if (is_new) least->second = shortest_seconds(pattern(number), buffer, bandwidths_);
    return least->second;
  }
  const auto found = known_.find({number, buffer.value});
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void SimNetwork::play(int pattern, Bytes buffer, int segments, Engine::Callback done) {
  if (const auto known = known_seconds(pattern, buffer))
    return engine_->at(engine_->now() + *known, std::move(done));
  if (form_ == Form::message) {
    const Pattern& played = patterns_[static_cast<std::size_t>(pattern)];
    play_messages({*engine_, *paths_, links_ ? &*links_ : nullptr},
                  {*played.schedule, played.placement, buffer}, std::move(done));
  } else {
    play_phases(*this, {pattern, buffer, segments}, std::move(done));
  }
}

}  // namespace stepcast
