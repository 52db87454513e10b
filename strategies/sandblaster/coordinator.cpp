#include "strategies/sandblaster/coordinator.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

namespace stepcast {

WorkQueue::WorkQueue(const Options& options) : options_(options), replicas_(options.replicas) {}

void WorkQueue::begin_batch() {
  ++batch_;
  given_ = finished_ = copied_ = 0;
  copies_.assign(options_.tasks, 0);
  done_.assign(options_.tasks, false);
}

void WorkQueue::done(int number) {
  Replica& replica = replicas_[number];
  const Order order = replica.order;
  replica.order = {};
  if (order.kind == Order::Kind::read) replica.batch = replica.given_batch;
  if (order.kind == Order::Kind::send) {
    unsent_ -= replica.accrued;
    replica.accrued = 0;
  }
  if (order.kind != Order::Kind::compute) return;
  const std::size_t task = order.task;
  if (replica.given_batch != batch_ || done_[task]) {
    ++wasted_;
    return;
  }
  done_[task] = true;
  ++finished_;
  replica.counted = true;
  ++replica.accrued;
  ++unsent_;
}

/// @returns a task that no replica has, else one that another replica has not finished; -1: none
int WorkQueue::open_task() {
  if (given_ < options_.tasks) return given_++;
  if (!options_.backup_tasks) return -1;
  while (copied_ < options_.tasks && (done_[copied_] || copies_[copied_] > 1)) ++copied_;
  return copied_ < options_.tasks ? copied_ : -1;
}

Order WorkQueue::next(int number) {
  Replica& replica = replicas_[number];
  Order& order = replica.order;
  const bool work_left = given_ < options_.tasks || (options_.backup_tasks && finished_ < options_.tasks);
  if (replica.accrued >= options_.send_every) {
    order = {Order::Kind::send};
  } else if (replica.batch < batch_ && work_left) {
    order = {Order::Kind::read};
  } else if (const int task = open_task(); task >= 0) {
    ++copies_[task];
    order = {.kind = Order::Kind::compute, .task = task};
  } else {
    order = {replica.accrued > 0 ? Order::Kind::send : Order::Kind::wait};
  }
  order.counted = std::exchange(replica.counted, false);
  order.batch = replica.given_batch = batch_;
  return order;
}

namespace {

using Kind = VectorOperation::Kind;

double dot(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// a += factor b
void add(double factor, std::span<const float> b, std::span<float> a) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = a[i] + factor * b[i];
}

void scale(double factor, std::span<float> values) {
  for (float& value : values) value = factor * value;
}

std::vector<float> difference(std::span<const float> a, std::span<const float> b) {
  std::vector<float> result(a.begin(), a.end());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] -= b[i];
  return result;
}

}  // namespace

VectorOperation vector_operation(int command, int most, std::size_t pairs, StepAcceptance acceptance) {
  if (command == 0) return {Kind::slope};
  if (command == lbfgs_operations(most) - 1) return {Kind::move};
  if (acceptance == StepAcceptance::rejected) return {};
  if (command == 1) return {Kind::step_difference};
  if (command == 2) return {Kind::gradient_difference};
  const std::size_t at = command - 3;  // place in the two loops
  if (at < 2 * pairs) return {at % 2 == 0 ? Kind::step_dot : Kind::subtract_change, pairs - 1 - at / 2};
  if (at == 2 * pairs) return {Kind::scale};
  const std::size_t second = at - 2 * pairs - 1;
  if (second < 2 * pairs) return {second % 2 == 0 ? Kind::change_dot : Kind::add_step, second / 2};
  return {second == 2 * pairs ? Kind::new_slope : Kind::none};
}

VectorOperation LbfgsCoordinator::operation(int command) const {
  return vector_operation(command, most_, pairs_.size(), acceptance_);
}

double LbfgsCoordinator::number(int command) const {
  if (command == 1) return static_cast<double>(acceptance_);
  const VectorOperation one = operation(command);
  switch (one.kind) {
    case Kind::subtract_change:
      return -pairs_[one.pair].alpha;
    case Kind::scale:
      return pairs_.empty() ? -1 : -pairs_.back().curvature / change_squared_;
    case Kind::add_step:
      return pairs_[one.pair].beta - pairs_[one.pair].alpha;
    case Kind::move:
      return search_.length;
    default:
      return 0;
  }
}

void LbfgsCoordinator::answered(int command, double sum) {
  const VectorOperation one = operation(command);
  switch (one.kind) {
    case Kind::slope:
      return accept_or_reject(sum);
    case Kind::gradient_difference:
      change_squared_ = sum;
      return;
    case Kind::step_dot:
      pairs_[one.pair].alpha = sum / pairs_[one.pair].curvature;
      return;
    case Kind::change_dot:  // q holds the direction, which is -r of the source
      pairs_[one.pair].beta = -sum / pairs_[one.pair].curvature;
      return;
    case Kind::new_slope:
      search_ = {.slope = sum, .length = pairs_.empty() ? first_length_ : 1};
      return;
    default:
      return;
  }
}

/// The step s is length x direction, so s y = length x (slope at its end - slope at its start).
void LbfgsCoordinator::accept_or_reject(double slope) {
  const double start = search_.slope, length = search_.length;
  if (started_ && !search_.accepts(slope)) {
    acceptance_ = StepAcceptance::rejected;
    return;
  }
  const double curvature = length * (slope - start);
  acceptance_ = started_ && curvature > 0 ? StepAcceptance::accepted : StepAcceptance::accepted_no_pair;
  started_ = true;
  if (acceptance_ == StepAcceptance::accepted_no_pair) return;
  pairs_.push_back({curvature});
  if (pairs_.size() > static_cast<std::size_t>(most_)) pairs_.pop_front();
}

double LbfgsShard::carry_out(Arrays& arrays, double number) {
  if (command_ == 1) acceptance_ = static_cast<StepAcceptance>(static_cast<int>(number));
  const VectorOperation one = vector_operation(command_, most_, history_.size(), acceptance_);
  command_ = (command_ + 1) % lbfgs_operations(most_);
  const auto of = [&](Array array) { return arrays.of(array, elements_); };
  switch (one.kind) {
    case Kind::none:
      return 0;
    case Kind::slope:
      scale(1.0 / tasks_, of(Array::gradients));
      return dot(of(Array::gradients), of(Array::change));
    case Kind::step_difference:
    case Kind::gradient_difference:
      return differences(arrays, one.kind);
    case Kind::scale:
      scale(number, of(Array::update));
      return 0;
    case Kind::new_slope:
      std::ranges::copy(of(Array::update), of(Array::change).begin());
      return dot(of(Array::model), of(Array::change));
    case Kind::move: {
      const std::span<float> point = of(Array::parameters);
      std::ranges::copy(of(Array::center), point.begin());
      add(number, of(Array::change), point);
      return 0;
    }
    default:
      return loop_operation(arrays, one, number);
  }
}

/// The trial point becomes the last point. @returns y y after the second difference
double LbfgsShard::differences(Arrays& arrays, Kind kind) {
  const bool of_step = kind == Kind::step_difference, pair = acceptance_ == StepAcceptance::accepted;
  const std::span<float> now = arrays.of(of_step ? Array::parameters : Array::gradients, elements_);
  const std::span<float> last = arrays.of(of_step ? Array::center : Array::model, elements_);
  double squared = 0;
  if (pair && of_step) {
    history_.push_back({difference(now, last), {}});
    if (std::ssize(history_) > most_) history_.pop_front();
  } else if (pair) {
    history_.back().change = difference(now, last);
    squared = dot(history_.back().change, history_.back().change);
  }
  std::ranges::copy(now, last.begin());
  if (!of_step) std::ranges::copy(now, arrays.of(Array::update, elements_).begin());
  return squared;
}

double LbfgsShard::loop_operation(Arrays& arrays, const VectorOperation& operation, double number) {
  const LbfgsPair& pair = history_[operation.pair];
  const std::span<float> q = arrays.of(Array::update, elements_);
  switch (operation.kind) {
    case Kind::step_dot:
      return dot(pair.step, q);
    case Kind::change_dot:
      return dot(pair.change, q);
    default:
      add(number, operation.kind == Kind::add_step ? pair.step : pair.change, q);
      return 0;
  }
}

}  // namespace stepcast
