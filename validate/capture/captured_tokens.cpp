#include "validate/capture/captured_tokens.hpp"

#include <span>

#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

CapturedTokens::CapturedTokens(const SharedPart& part, int ways, Transport& transport, InStepTimes& times)
    : part_(part), ways_(ways), rank_(transport.rank().value), times_(times) {}

std::optional<CapturedTokens::Carried> CapturedTokens::carried(TokenExchange::Form form, Pass pass,
                                                               bool after) {
  using Form = TokenExchange::Form;
  using How = Carried::How;
  if (pass != Pass::forward && pass != Pass::backward_data) return std::nullopt;
  const bool forward = pass == Pass::forward;
  if (form == Form::heads) return Carried{How::to_all, pass};
  if (form == Form::scattered) {
    if (forward == after) return Carried{forward ? How::scatter : How::gather, pass};
    return std::nullopt;
  }
  if (!after) return Carried{How::gather, form == Form::gathered ? Pass::forward : pass};
  if (forward) return std::nullopt;
  return Carried{How::scatter, pass};
}

void CapturedTokens::before_pass(Network& network, std::size_t layer, Pass pass) {
  if (due_) exchange(network, *due_);
  due_.reset();
  const std::optional<TokenExchange>& one = part_.exchanged[layer];
  if (!one) return;
  // A layer whose input needs no error signals gets its own before the pass of its weights.
  const bool only_weights = pass == Pass::backward_weights && !network.has(layer, Pass::backward_data) &&
                            one->form == TokenExchange::Form::scattered;
  if (only_weights) pass = Pass::backward_data;
  if (carried(one->form, pass, false)) exchange(network, {layer, pass, false});
  if (carried(one->form, pass, true)) due_ = Place{layer, pass, true};
}

void CapturedTokens::before_update(Network& network) {
  if (due_) exchange(network, *due_);
  due_.reset();
  if (part_.summed.empty()) return;
  if (!sums_) sums_.emplace(network, part_);
  sums_->pack();
  times_.all_reduce(sums_->buffer());
  sums_->unpack();
}

void CapturedTokens::exchange(Network& network, const Place& place) {
  const TokenExchange& one = *part_.exchanged[place.layer];
  const Carried carries = *carried(one.form, place.pass, place.after);
  TokenTransfer& transfer = *network.kernel(place.layer).token_transfer();
  const auto seconds_of = [](const auto& work) {
    const Instant begin = now();
    work();
    return now().wall - begin.wall;
  };
  std::span<float> buffer;
  double seconds = seconds_of([&] { buffer = transfer.pack(carries.values); });
  const std::int64_t elements = buffer.size();
  const bool to_all = carries.how == Carried::How::to_all;
  const std::int64_t ranks = one.tokens.size();
  const std::int64_t longest = elements / (to_all ? ranks * ranks : ranks);
  for (const Round& round : rounds_of_exchange(one, carries.how, elements))
    times_.exchange(
        {round}, buffer.data(), longest, [] {}, [] {});
  seconds += seconds_of([&] { transfer.unpack(carries.values); });
  copies_[place].push_back(seconds);
}

std::vector<Round> CapturedTokens::rounds_of_exchange(const TokenExchange& exchange, Carried::How how,
                                                      std::int64_t elements) const {
  const Group group{static_cast<int>(exchange.tokens.size()), 1};
  const Schedule schedule = how == Carried::How::gather    ? ring_all_gather(group)
                            : how == Carried::How::scatter ? ring_reduce_scatter(group)
                                                           : all_to_all(group);
  // Ranks count the tensor axis first, then the context axis.
  const bool context =
      exchange.form == TokenExchange::Form::heads || exchange.form == TokenExchange::Form::keys;
  const int stride = context ? ways_ : 1, first = rank_ - exchange.place * stride;
  std::vector<Round> rounds = rounds_of(schedule, exchange.place, elements);
  for (Round& round : rounds)
    for (Transfer& transfer : round) transfer.peer = first + transfer.peer * stride;
  return rounds;
}

void CapturedTokens::take_copies(Trace& trace) {
  for (const auto& [place, seconds] : copies_) {
    const Seconds copy{median_of(seconds)};
    const bool forward = place.pass == Pass::forward;
    add_host_time(trace, place.layer, forward ? copy : Seconds{}, forward ? Seconds{} : copy);
  }
  copies_.clear();
}

}  // namespace stepcast
