#include <catch2/catch.hpp>

#include "sim/simulation.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::messages_test {

// Tests messages between programs, and collectives in groups, on one switch of 1 GB/s and 1 us.

namespace {

constexpr double kLatency = 1e-6, kBandwidth = 1e9;
const auto exactly = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };

Message message(int tag, double bytes, int parts = 1) {
  Message made;
  made.tag = MessageTag(tag);
  made.buffer.size = {bytes};
  made.parts = parts;
  return made;
}

Program send_one(Worker& worker, RoleId to, Message what) {
  co_await worker.send(to, what);
  worker.end_step();
}

Program answer(Worker& worker) {
  for (;;) {
    const Message asked = co_await worker.receive(MessageTag(1));
    co_await worker.pause({0.010});
    const Message reply = message(2, 2e6);
    co_await worker.send(asked.from, reply);
  }
}

Program ask(Worker& worker, RoleId server, int times) {
  for (int i = 0; i < times; ++i) {
    const Message question = message(1, 1e6);
    co_await worker.send(server, question);
    co_await worker.receive(MessageTag(2), server);
    worker.end_step();
  }
}

/// Workers that ask a server `times` each.
SimulationResult ask_server(int workers, int times) {
  Run run(switch_platform(workers + 1), workers + 1, three_layers({1}));
  run.plan.endpoints = test::first_endpoints(workers + 1);
  run.plan.workloads.push_back(run.workload);
  run.plan.asynchronous = true;
  for (int i = 0; i < workers; ++i) {
    run.plan.roles.push_back({"worker", RankId(i), 1, 0, true,
                              [=](Worker& worker) { return ask(worker, RoleId(workers), times); }});
  }
  run.plan.roles.push_back({"server", RankId(workers), 1, -1, false, answer});
  run.simulation.plan = &run.plan;
  return simulate(run.simulation);
}

Program halves(Worker& worker) {
  co_await worker.forward();
  const CollectiveId sum{0};
  co_await worker.collective(sum);
  worker.end_step();
}

/// Eight workers, an all-reduce of 8 MB in each group of `size`.
SimulationResult groups(int size, bool fold, double sigma) {
  Run run(switch_platform(8), 8, three_layers({1}));
  run.plan.endpoints = test::first_endpoints(8);
  run.plan.workloads.push_back(run.workload);
  run.plan.communicators.push_back(communicator(run.platform, run.plan.endpoints, first_ranks(8), size));
  run.plan.communicators.back().all_reduce.algorithm = Algorithm::ring;
  run.plan.collectives.push_back(
      {Collective::Kind::all_reduce, CommunicatorId{0}, {Array::gradients, {}, {8e6}}, nullptr});
  run.plan.roles.push_back({"worker", RankId{0}, 8, 0, true, halves});
  run.simulation.plan = &run.plan;
  run.simulation.fold = fold ? Folding::always : Folding::never;
  run.simulation.noise.jitter = sigma > 0 ? Noise::Jitter::lognormal : Noise::Jitter::none;
  run.simulation.noise.sigma = sigma;
  return simulate(run.simulation);
}

}  // namespace

TEST_CASE("a message takes its latency a part and its bytes once", "[sim]") {
  Run run(switch_platform(2), 2, three_layers({1}));
  run.plan.endpoints = test::first_endpoints(2);
  run.plan.workloads.push_back(run.workload);
  run.plan.asynchronous = true;
  run.plan.roles.push_back({"worker", RankId{0}, 1, 0, true,
                            [](Worker& worker) { return send_one(worker, RoleId{1}, message(1, 5e6, 7)); }});
  run.plan.roles.push_back({"server", RankId{1}, 1, -1, false, answer});
  run.simulation.plan = &run.plan;
  CHECK(simulate(run.simulation).steps.at(0).seconds == exactly(7 * kLatency + 5e6 / kBandwidth));
}

TEST_CASE("one worker and a server take turns", "[sim]") {
  CHECK(ask_server(1, 5).seconds == exactly(5 * (2 * kLatency + 3e6 / kBandwidth + 0.010)));
}

TEST_CASE("a server that serves one after the other bounds the rate of many workers", "[sim]") {
  const double service = 0.010 + kLatency + 2e6 / kBandwidth;  // asking overlaps serving another
  CHECK(ask_server(8, 20).steps.at(0).seconds == Approx(8 * service).epsilon(1e-6));
}

TEST_CASE("groups reduce side by side, each in the time of its size", "[sim]") {
  const double four = 6 * (kLatency + 2e6 / kBandwidth), two = 2 * (kLatency + 4e6 / kBandwidth);
  CHECK(number_from_child([] { return groups(4, true, 0).seconds; }) == exactly(0.060 + four));
  CHECK(number_from_child([] { return groups(2, true, 0).seconds; }) == exactly(0.060 + two));
  CHECK(number_from_child([] { return groups(2, false, 0).seconds; }) == exactly(0.060 + two));
}

TEST_CASE("folded groups of jittered workers wait for their own latest, as unfolded ones do", "[sim]") {
  const auto compute = [](bool fold) {
    const auto step = groups(2, fold, 0.3).steps.at(0);
    return step.seconds;
  };
  CHECK(number_from_child([&] { return compute(true); }) ==
        Approx(number_from_child([&] { return compute(false); })).epsilon(1e-9));
}

}  // namespace stepcast::messages_test
