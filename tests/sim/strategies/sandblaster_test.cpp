#include "tests/sim/server_run.hpp"

namespace stepcast::sandblaster_test {

namespace {

const auto exactly = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };

}  // namespace

TEST_CASE("a batch of L-BFGS on one replica is a read, its portions, and the servers' arithmetic", "[sim]") {
  const ServerRun run{"{kind: sandblaster, tasks: 3, history: 2, server: own_device}", 1, 0, 4, {}};
  const double own = 3.0 / 5 * kOwnUpdate;  // a vector operation, or adding a gradient
  const double order = 2 * kHop;            // and the report on it
  const double read = order + kHop + (kHop + kModel);
  const double portion = order + kMiniBatch, send = order + (kHop + kModel);
  const double vectors = (4 * 2 + 6) * (2 * kHop + own);
  // The server adds the last gradient while the report travels, and the first command waits for it.
  CHECK(run.step_seconds() == exactly(read + 3 * (portion + send) + vectors + own - kHop - kHop));
}

TEST_CASE("backup tasks shorten a batch with stragglers", "[sim]") {
  const auto batch = [](bool backup) {
    return number_from_child([&] {
      ServerRun run{
          fmt::format("{{kind: sandblaster, tasks: 64, exchanged: 40 kB, backup_tasks: {}}}", backup),
          16,
          0,
          4,
          {}};
      run.noise.straggler_share = 0.15;
      run.noise.straggler_factor = 10;
      return run.step_seconds();
    });
  };
  CHECK(batch(true) < 0.8 * batch(false));
}

TEST_CASE("a replica that gets no portion of a batch does not shorten the batch", "[sim]") {
  // Two portions for eight replicas, the last of which never gets one: batches of any number take the same
  // time, in which a replica reads the parameters, computes a portion and sends its gradients.
  const auto batch = [](int steps) {
    return number_from_child([&] {
      return ServerRun{"{kind: sandblaster, tasks: 2, history: 2, server: own_device}", 8, 0, steps, {}}
          .step_seconds();
    });
  };
  CHECK(batch(3) > kModel + kMiniBatch + kModel);
  CHECK(batch(6) == exactly(batch(3)));
}

}  // namespace stepcast::sandblaster_test
