#include "strategies/sandblaster/coordinator.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <stdexcept>
#include <vector>

#include "arithmetic/lbfgs_reference.hpp"

using namespace stepcast;
using test::dot;
using test::lbfgs_direction;
using test::remember;

namespace {

Order::Kind kind(const Order& order) {
  return order.kind;
}

}  // namespace

TEST_CASE("a replica reads, computes, sends, and waits when nothing is left", "[plan]") {
  WorkQueue board({1, 2, 2, false});
  board.begin_batch();
  for (const Order::Kind expected : {Order::Kind::read, Order::Kind::compute, Order::Kind::compute,
                                     Order::Kind::send, Order::Kind::wait}) {
    CHECK_FALSE((expected != Order::Kind::wait && board.batch_done()));
    CHECK(kind(board.next(0)) == expected);
    board.done(0);
  }
  CHECK(board.batch_done());
}

TEST_CASE("an unfinished portion is copied once, and the first result counts", "[plan]") {
  WorkQueue board({2, 1, 1, true});
  board.begin_batch();
  for (const int replica : {0, 1}) {
    CHECK(kind(board.next(replica)) == Order::Kind::read);
    board.done(replica);
  }
  CHECK(board.next(0).task == 0);
  CHECK(board.next(1).task == 0);
  board.done(1);
  CHECK(kind(board.next(1)) == Order::Kind::send);
  board.done(1);
  CHECK(board.batch_done());
  board.begin_batch();
  board.done(0);  // the copy that came second, after its batch
  CHECK(board.wasted() == 1);
  CHECK_FALSE(board.batch_done());
  CHECK(kind(board.next(0)) == Order::Kind::read);
}

TEST_CASE("without backup tasks the batch waits for who has them", "[plan]") {
  WorkQueue board({2, 1, 1, false});
  board.begin_batch();
  CHECK(kind(board.next(0)) == Order::Kind::read);
  board.done(0);
  CHECK(board.next(0).task == 0);
  CHECK(kind(board.next(1)) == Order::Kind::wait);
}

TEST_CASE("the next order says whether the last result counts", "[plan]") {
  WorkQueue board({2, 2, 2, true});
  board.begin_batch();
  for (const int replica : {0, 1}) {
    CHECK(kind(board.next(replica)) == Order::Kind::read);
    board.done(replica);
    CHECK(board.next(replica).task == replica);
  }
  board.done(0);
  const Order copy = board.next(0);  // of task 1, which replica 1 is slow with
  CHECK(copy.counted);
  CHECK(copy.task == 1);
  board.done(1);
  CHECK(board.next(1).counted);
  board.done(0);
  CHECK_FALSE(board.next(0).counted);  // replica 1 was first
}

// L-BFGS over shards against L-BFGS in one piece.

namespace {

using Vector = std::vector<float>;

/// Arrays of one server.
class ServerArrays : public Arrays {
 public:
  explicit ServerArrays(const Vector& start) {
    for (const Array array : {Array::parameters, Array::center, Array::model}) arrays_[array] = start;
    for (const Array array : {Array::gradients, Array::update, Array::change})
      arrays_[array].resize(start.size());
  }

  std::span<float> of(Array array) override { return arrays_.at(array); }
  std::span<float> of(Array array, const Slice& elements) override {
    return of(array).subspan(elements.begin, elements.size());
  }
  void descend(Array, const Slice&, int) override { throw std::logic_error("not used"); }
  CompressedGradient& compressed(const Codec&, const Slice&) override { throw std::logic_error("not used"); }
  double learning_rate() const override { return 1; }

 private:
  std::map<Array, Vector> arrays_;
};

/// Gradient of Rosenbrock's function, the sum of 100 (x_k+1 - x_k^2)^2 + (1 - x_k)^2.
Vector rosenbrock(const Vector& x) {
  std::vector<double> gradient(x.size());
  for (std::size_t k = 0; k + 1 < x.size(); ++k) {
    const double valley = x[k + 1] - double{x[k]} * x[k];
    gradient[k] += -400 * valley * x[k] - 2 * (1 - double{x[k]});
    gradient[k + 1] += 200 * valley;
  }
  return {gradient.begin(), gradient.end()};
}

Vector moved(const Vector& from, double length, const Vector& along) {
  Vector to = from;
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] + length * along[i];
  return to;
}

constexpr int kPairs = 5, kTasks = 4;
constexpr double kFirstLength = 1e-3;

/// The trial points of one machine, by lbfgs_direction and the same line search.
std::vector<Vector> points_of_one_machine(Vector point, int batches) {
  std::vector<Vector> points;
  LbfgsHistory history;
  Vector last, last_gradient, direction;
  LineSearch search;
  for (int batch = 0; batch < batches; ++batch) {
    const Vector gradient = rosenbrock(point);
    if (direction.empty() || search.accepts(dot(gradient, direction))) {
      if (!direction.empty())
        remember(history, kPairs, {moved(point, -1, last), moved(gradient, -1, last_gradient)});
      last = point;
      last_gradient = gradient;
      direction = lbfgs_direction(history, gradient);
      search = {.slope = dot(gradient, direction), .length = history.empty() ? kFirstLength : 1};
    }
    point = moved(last, search.length, direction);
    points.push_back(point);
  }
  return points;
}

/// The same points when servers have parts of all vectors.
std::vector<Vector> points_of_servers(const Vector& start, const std::vector<std::int64_t>& ends,
                                      int batches) {
  std::vector<ServerArrays> arrays(ends.size(), ServerArrays(start));
  std::vector<LbfgsShard> shards;
  std::vector<Slice> parts;
  for (const std::int64_t end : ends) {
    parts.push_back({parts.empty() ? 0 : parts.back().end, end});
    shards.emplace_back(kPairs, kTasks, parts.back());
  }
  LbfgsCoordinator coordinator(kPairs, kFirstLength);
  std::vector<Vector> points;
  Vector point = start;
  for (int batch = 0; batch < batches; ++batch) {
    const Vector gradient = moved(Vector(point.size()), kTasks, rosenbrock(point));  // a sum over tasks
    for (ServerArrays& one : arrays) std::ranges::copy(gradient, one.of(Array::gradients).begin());
    for (int command = 0; command < lbfgs_operations(kPairs); ++command) {
      const double number = coordinator.number(command);
      double sum = 0;
      for (std::size_t i = 0; i < shards.size(); ++i) sum += shards[i].carry_out(arrays[i], number);
      coordinator.answered(command, sum);
    }
    for (std::size_t i = 0; i < shards.size(); ++i)
      std::ranges::copy(arrays[i].of(Array::parameters, parts[i]), point.begin() + parts[i].begin);
    points.push_back(point);
  }
  return points;
}

double distance_to_minimum(const Vector& x) {
  double most = 0;
  for (const float value : x) most = std::max(most, std::abs(value - 1.0));
  return most;
}

}  // namespace

TEST_CASE("L-BFGS over sharded vectors makes the steps of one machine's, to rounding", "[strategies]") {
  const Vector start{-1.2F, 1, -0.5F, 0.8F, 0.3F, -0.1F, 1.4F};
  // Rounding grows from step to step, as everywhere in nonlinear optimisation: 20 steps agree to 1e-3.
  const auto one = points_of_one_machine(start, 20);
  for (const std::vector<std::int64_t>& ends : {std::vector<std::int64_t>{7}, {3, 7}, {1, 2, 5, 7}}) {
    const auto servers = points_of_servers(start, ends, 20);
    REQUIRE(servers.size() == one.size());
    for (std::size_t batch = 0; batch < one.size(); ++batch) {
      CAPTURE(batch, ends.size());
      for (std::size_t i = 0; i < start.size(); ++i)
        CHECK(servers[batch][i] == Approx(one[batch][i]).epsilon(1e-3).margin(1e-4));
    }
  }
}

TEST_CASE("L-BFGS over sharded vectors finds the minimum of Rosenbrock's function", "[strategies]") {
  const auto points = points_of_servers({-1.2F, 1, -1.2F, 1}, {1, 4}, 150);
  CHECK(distance_to_minimum(points.front()) > 1);
  CHECK(distance_to_minimum(points.back()) < 1e-3);
}

TEST_CASE("a refused trial point has work only at the first and the last command", "[strategies]") {
  using Kind = VectorOperation::Kind;
  const int all = lbfgs_operations(2);
  for (int command = 1; command < all - 1; ++command)
    CHECK(vector_operation(command, 2, 2, StepAcceptance::rejected).kind == Kind::none);
  CHECK(vector_operation(0, 2, 2, StepAcceptance::rejected).kind == Kind::slope);
  CHECK(vector_operation(all - 1, 2, 2, StepAcceptance::rejected).kind == Kind::move);
  int idle = 0;
  for (int command = 0; command < all; ++command)
    idle += vector_operation(command, 2, 2, StepAcceptance::accepted).kind == Kind::none ? 1 : 0;
  CHECK(idle == 0);  // with a full history, every command of an accepted point has work
}
