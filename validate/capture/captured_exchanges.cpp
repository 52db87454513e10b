#include "validate/capture/captured_exchanges.hpp"

#include <algorithm>

#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "strategies/collectives/schedule.hpp"
#include "strategies/model_parallel/group_plan.hpp"

namespace stepcast {
namespace {

double seconds_of(const auto& work) {
  const Instant begin = now();
  work();
  return now().wall - begin.wall;
}

}  // namespace

CapturedExchanges::CapturedExchanges(const Model& model, const ModelPartition& partition,
                                     const RankShard& shard, Transport& transport, InStepTimes& times)
    : model_(model),
      partition_(partition),
      shared_(shard.tensor.get()),
      ways_(shared_ ? partition.ways : device_count(partition.spatial.parts)),
      times_(times) {
  place_ = transport.rank().value % ways_;
  first_ = transport.rank().value - place_;
  if (partition.tokens.any()) tokens_.emplace(*shared_, ways_, transport, times);
  if (shared_ && !shared_->spatial) return;
  for (int device = 0; device < device_count(partition.spatial.parts); ++device)
    halos_.push_back(device_halos(model_, partition.spatial, device));
}

void CapturedExchanges::before_pass(Network& network, std::size_t layer, Pass pass) {
  if (tokens_) tokens_->before_pass(network, layer, pass);
  while (pass != Pass::forward && !errors_due_.empty() && layer < errors_due_.back()) {
    shared_ ? scatter_errors(errors_due_.back()) : reshard(network, false);
    errors_due_.pop_back();
  }
  if (pass != Pass::backward_weights && network.kernel(layer).has_halo(pass))
    exchange_halo(network, layer, pass);
  if (pass != Pass::forward) return;
  const GatheredInput* const input = gathered_input(shared_, layer);
  const std::size_t whole_from = partition_.spatial.whole_from;
  const bool reshards = !shared_ && layer == whole_from && reshards_to_batch(partition_, model_);
  if (input != nullptr && input->is_first) gather(network, layer);
  if (reshards) reshard(network, true);
  if (reshards || (input != nullptr && input->is_first)) errors_due_.push_back(layer);
}

void CapturedExchanges::take_copies(Trace& trace) {
  if (tokens_) tokens_->take_copies(trace);
  for (const auto& [layer, copies] : copies_) {
    if (!copies.forward.empty() && !copies.backward.empty())
      add_host_time(trace, layer, {median_of(copies.forward)}, {median_of(copies.backward)});
  }
  copies_.clear();
}

void CapturedExchanges::exchange_halo(Network& network, std::size_t layer, Pass pass) {
  const auto [known, is_new] = exchanges_.try_emplace({layer, pass});
  if (is_new) known->second = exchanges_of(layer, pass);
  float* const memory = buffer_.data();
  for (const DimensionExchange& one : known->second) {
    const auto pack = [&] { pack_halo(network, layer, pass, one.boxes, memory); };
    const auto unpack = [&] { unpack_halo(network, layer, pass, one.boxes, memory); };
    times_.exchange(one.rounds, memory, one.longest, pack, unpack);
  }
}

void CapturedExchanges::reshard(Network& network, bool forward) {
  if (resharding_ == nullptr) {
    SpatialToBatchResharding copies(network, model_, partition_, place_);
    const std::size_t size = copies.buffer_elements();
    const Schedule schedule = all_to_all({ways_, 1});
    std::vector<std::vector<Round>> phases;
    for (const Phase& phase : schedule.phases) phases.push_back(rounds_of_phase(schedule, phase, size));
    resharding_ = std::make_unique<Resharding>(Resharding{std::move(copies), network.backend().allocate(size),
                                                          std::move(phases),
                                                          static_cast<std::int64_t>(size) / schedule.parts});
  }
  Resharding& all = *resharding_;
  CollectiveBinding hooks;
  all.copies.add_hooks(hooks, forward, all.memory.get());
  double seconds = 0;
  for (std::size_t i = 0; i < all.phases.size(); ++i)
    seconds += times_.exchange(
        all.phases[i], all.memory.get(), all.longest, [&] { hooks.before_phase(i); },
        [&] { hooks.after_phase(i); });
  CopyTimes& copies = copies_[partition_.spatial.whole_from];
  (forward ? copies.forward : copies.backward).push_back(seconds);
}

void CapturedExchanges::gather(Network& network, std::size_t layer) {
  const auto rounds = [this](const Schedule& schedule, std::int64_t elements) {
    std::vector<Round> all;
    for (const Phase& phase : schedule.phases)
      for (Round& round : rounds_of_phase(schedule, phase, elements)) all.push_back(std::move(round));
    return all;
  };
  auto known = gatherings_.find(layer);
  if (known == gatherings_.end()) {
    GatheredMaps maps(network, *shared_->gathered[layer], place_, partition_.micro_batch);
    const std::int64_t elements = maps.buffer().size();
    Gathering made{std::move(maps), rounds(ring_all_gather({ways_, 1}), elements),
                   rounds(ring_reduce_scatter({ways_, 1}), elements)};
    known = gatherings_.emplace(layer, std::move(made)).first;
  }
  Gathering& one = known->second;
  const double pack = seconds_of([&] { one.maps.pack_output(); });
  exchange(one, one.gather);
  copies_[layer].forward.push_back(pack + seconds_of([&] { one.maps.unpack_outputs(); }));
}

void CapturedExchanges::scatter_errors(std::size_t layer) {
  Gathering& one = gatherings_.at(layer);
  const bool sums = shared_->gathered[layer]->is_partial_sum;
  double seconds = seconds_of([&] { sums ? one.maps.pack_errors() : one.maps.keep_own_errors(); });
  if (sums) {
    exchange(one, one.scatter);
    seconds += seconds_of([&] { one.maps.unpack_errors(); });
  }
  copies_[layer].backward.push_back(seconds);
}

void CapturedExchanges::exchange(const Gathering& one, const std::vector<Round>& rounds) {
  const std::span<float> buffer = one.maps.buffer();
  const auto longest = static_cast<std::int64_t>(buffer.size()) / ways_;
  for (const Round& round : rounds)
    times_.exchange(
        {round}, buffer.data(), longest, [] {}, [] {});
}

std::vector<Round> CapturedExchanges::rounds_of_phase(const Schedule& schedule, const Phase& phase,
                                                      std::int64_t elements) const {
  std::vector<Round> rounds = rounds_of({schedule.ranks, schedule.parts, {phase}}, place_, elements);
  for (Round& round : rounds)
    for (Transfer& transfer : round) transfer.peer += first_;
  return rounds;
}

std::vector<CapturedExchanges::DimensionExchange> CapturedExchanges::exchanges_of(std::size_t layer,
                                                                                  Pass pass) {
  const bool errors = pass == Pass::backward_data;
  std::vector<std::vector<HaloMessage>> received;
  for (const auto& device : halos_)
    received.push_back(errors ? device[layer].backward : device[layer].forward);
  const HaloExchange halo = halo_exchange(partition_.spatial.parts, received);
  if (halo.schedule == nullptr) return {};
  const auto elements = partition_.micro_batch * static_cast<std::int64_t>(halo.elements);
  buffer_.resize(std::max<std::size_t>(buffer_.size(), elements));
  Collective collective;
  collective.kind = Collective::Kind::exchange;
  collective.layer = layer;
  collective.buffer.array = errors ? Array::errors : Array::activations;
  collective.buffer.size = Bytes{sizeof(float) * static_cast<double>(elements)};
  collective.schedule = halo.schedule;
  const auto boxes = halo_messages(model_, partition_.spatial, collective,
                                   errors ? HaloRows::errors : HaloRows::input, place_);
  std::vector<DimensionExchange> all;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Phase& phase = halo.schedule->phases[i];
    DimensionExchange& one = all.emplace_back();
    one.boxes = boxes[i];
    one.rounds = rounds_of_phase(*halo.schedule, phase, elements);
    for (const Edge& edge : *phase.edges)
      one.longest = std::max(one.longest, elements / halo.schedule->parts * edge.chunks);
  }
  return all;
}

}  // namespace stepcast
