#include "core/random.hpp"
#include "sim/workers/step_statistics.hpp"
#include "tests/sim/server_run.hpp"

namespace stepcast::parameter_server_test {

namespace {

constexpr double kApply = 0.002;
constexpr double kArray = kOwnUpdate / 5;  // to read or write one array of the parameters
const std::string kServer = "{kind: parameter_server, server: own_host, apply_time: 2 ms";

const auto exactly = [](double value) { return Approx(value).epsilon(1e-9).margin(0); };

/// A step with a serial master and one worker: the master asks, takes the update, applies it and answers.
constexpr double kMaster = kHop + (kHop + kModel) + kApply + (kHop + kModel);

ServerRun serial(int workers) {
  return {kServer + ", master: serial}", workers, 0, 6, {}};
}

std::size_t updates_taken(const SimulationResult& result) {
  const auto first = result.records.find("first_staleness"), later = result.records.find("staleness");
  return (first == result.records.end() ? 0 : first->second.size()) +
         (later == result.records.end() ? 0 : later->second.size());
}

double column(const ServerRun& run, const SimulationResult& result, const std::string& name) {
  for (const auto& [key, value] :
       run.plan().figures(first_records(result.records, result.steady_counts), result.steps.at(0).seconds)) {
    if (key == name) return value;
  }
  FAIL("no column " << name);
  return 0;
}

}  // namespace

TEST_CASE("one worker's Downpour step is mini-batch, own update, push, apply and fetch", "[sim]") {
  const ServerRun run{kServer + "}", 1, 0, 4, {}};
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + (kHop + kModel) + kApply + (kHop + kModel)));
}

TEST_CASE("applying takes what was measured: on such a processor, or in a trace that is named", "[sim]") {
  const double exchange = 2 * (kHop + kModel);
  ServerRun run{"{kind: parameter_server}", 1, 0, 4, {}};
  CHECK(number_from_child([&] { return run.step_seconds(); }) ==
        exactly(kMiniBatch + kOwnUpdate + exchange + kOwnUpdate));
  run.device.launch_overhead = {5e-6};  // the host of such devices has another processor, and fast memory
  CHECK(number_from_child([&] { return run.step_seconds(); }) ==
        exactly(kMiniBatch + kOwnUpdate + exchange + 5 * 4e6 / 1e15));
  run.strategy = "{kind: parameter_server, apply_trace: any}";
  CHECK(number_from_child([&] { return run.step_seconds(); }) ==
        exactly(kMiniBatch + kOwnUpdate + exchange + 0.003));
  run.strategy = "{kind: parameter_server, apply_trace: any, apply_arrays: 10, shards: 2}";
  CHECK(number_from_child([&] { return run.step_seconds(); }) ==
        exactly(kMiniBatch + kOwnUpdate + exchange + 0.003));
  CHECK(run.plan().flags == std::vector<std::string>{"disturbed"});
}

TEST_CASE("a serial master adds its two questions and its permission", "[sim]") {
  CHECK(serial(1).step_seconds() == exactly(kMiniBatch + kOwnUpdate + 2 * kHop + kMaster));
}

TEST_CASE("two workers that do not meet at the server take the step of one", "[sim]") {
  const ServerRun run{kServer + ", master: serial}", 2, 0, 6, {}};
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + 2 * kHop + kMaster));
}

TEST_CASE("a message an array pays its latency for each", "[sim]") {
  ServerRun run{kServer + ", messages: array, arrays: 10, exchanged: 8 MB}", 1, 0, 4, {}};
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + 2 * (10 * kHop + 2 * kModel) + kApply));
}

TEST_CASE("many workers make a serial master the bottleneck: updates a second are 1 / its time", "[sim]") {
  const ServerRun run = serial(12);
  const SimulationResult result = run.result();
  CHECK(column(run, result, "updates_per_second") == Approx(1 / kMaster).epsilon(1e-3));
  CHECK(column(run, result, "server_utilization") > 0.85);
  CHECK(column(run, result, "master_seconds") == exactly(kMaster));
  CHECK(column(run, result, "knee_workers") == exactly(1 + (kMiniBatch + kOwnUpdate) / kMaster));
}

TEST_CASE("the knee of a serial master lies at 1 + mini-batch / master's time, within 10 %", "[sim]") {
  const double apply = GENERATE(0.0005, 0.002, 0.008, 0.030);
  const double slower = GENERATE(0.5, 1.0, 3.0, 6.0);  // layers: knees of 1.4 to 23 workers
  const double master = kMaster - kApply + apply, batch = slower * (kMiniBatch + kOwnUpdate);
  CAPTURE(apply, slower);
  const auto rate = [&](int workers) {
    return number_from_child([&] {
      const std::string text = fmt::format(
          "{{kind: parameter_server, apply_time: {} s, master: serial, compute_factor: {}}}", apply, slower);
      return workers / ServerRun{text, workers, 0, 8, {}}.step_seconds();
    });
  };
  const double formula = 1 + batch / master;
  const double knee = rate(3 * formula) / rate(1);  // where the first line meets the ceiling
  CHECK(knee == Approx(formula).epsilon(0.1));
}

TEST_CASE("the updates of N equal workers are N - 1 versions stale", "[sim]") {
  const ServerRun run = serial(5);
  const SimulationResult result = run.result();
  for (const char* name : {"staleness_mean", "staleness_p95", "staleness_max"})
    CHECK(column(run, result, name) == exactly(4));
}

TEST_CASE("a worker three times as slow sees three updates of the other between two of its own", "[sim]") {
  ServerRun run{"{kind: parameter_server, apply_time: 1 us, exchanged: 1 kB}", 2, 0, 40, {}};
  const auto draw_of = [](std::uint32_t worker) { return uniform({1, Purpose::straggler, worker, 0, 0}); };
  run.noise.straggler_share = (draw_of(0) + draw_of(1)) / 2;  // one of the two, whichever draws less
  run.noise.straggler_factor = 3;
  const SimulationResult result = run.result();
  // Three of four updates come from the fast worker, and one of them is a version stale; the one of the
  // slow worker is three versions stale. Updates after the end of the fast worker do not count, because the
  // slow worker then goes on alone.
  CHECK(column(run, result, "staleness_mean") == Approx(1).margin(0.1));
  CHECK(column(run, result, "staleness_p95") == 3);
  CHECK(column(run, result, "staleness_max") <= 4);
}

TEST_CASE("every update that is sent is applied once", "[sim]") {
  ServerRun run{kServer + ", n_push: 3, n_fetch: 2, overlap: true}", 4, 0, 12, {}};
  run.noise.jitter = Noise::Jitter::lognormal;
  run.noise.sigma = 0.3;
  CHECK(updates_taken(run.result()) == 4 * 12 / 3);
}

TEST_CASE("reads and updates beside the mini-batch add two copies to its time", "[sim]") {
  const ServerRun run{kServer + ", overlap: true}", 2, 0, 8, {}};
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + 4 * kArray));
}

TEST_CASE("a mini-batch progresses at 1 / message_slowdown while a read or an update travels beside it",
          "[sim]") {
  const ServerRun run{kServer + ", overlap: true, message_slowdown: 2}", 1, 0, 8, {}};
  // The read is asked for when the last one has been copied, which takes twice as long beside the update. It
  // comes over the other direction of the link, and ends later than the update.
  const double travelling = 2 * (2 * kArray) + 2 * kHop + kModel;
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + 4 * kArray + travelling / 2));
}

TEST_CASE("a round of an array for itself, of a network with one array, is a round of the network", "[sim]") {
  const std::string rounds = kServer + ", mode: synchronous, messages: array";
  const ServerRun whole{rounds + "}", 3, 0, 8, {}}, arrays{rounds + ", overlap: true}", 3, 0, 8, {}};
  CHECK(arrays.step_seconds() == exactly(whole.step_seconds()));
}

TEST_CASE("four servers are no faster than one for a network with one array that lies whole on one",
          "[sim]") {
  const std::string rounds = kServer + ", mode: synchronous, messages: array, overlap: true";
  const ServerRun one{rounds + "}", 3, 0, 8, {}};
  const ServerRun whole{rounds + ", shards: 4, divide_arrays: false}", 3, 0, 8, {}};
  const ServerRun divided{rounds + ", shards: 4}", 3, 0, 8, {}};
  CHECK(whole.step_seconds() == exactly(one.step_seconds()));
  CHECK(divided.step_seconds() < one.step_seconds());
}

TEST_CASE("reads and updates less often cost in proportion", "[sim]") {
  const ServerRun run{kServer + ", n_push: 4, n_fetch: 4}", 1, 0, 9, {}};
  const double exchange = (kHop + kModel) + kApply + (kHop + kModel);  // in steps 4 and 8: two of eight
  const double sums = (2 + 3 * 3) * kArray / 4;  // the first gradient is copied, three are added
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + sums + 2 * exchange / 8));
}

TEST_CASE("shards apply their parts at the same time", "[sim]") {
  const ServerRun run{kServer + ", shards: 4}", 1, 0, 4, {}};
  CHECK(run.step_seconds() ==
        exactly(kMiniBatch + kOwnUpdate + (kHop + kModel) + kApply / 4 + (kHop + kModel)));
}

TEST_CASE("synchronous without backup workers waits for all", "[sim]") {
  const int workers = 3;
  const ServerRun run{kServer + ", mode: synchronous}", workers, 0, 4, {}};
  const double all = kHop + workers * kModel;
  const double adds = workers * 0.6 * kApply;  // three of the five arrays of an update
  CHECK(run.step_seconds() == exactly(kMiniBatch + all + adds + kApply + all));
}

TEST_CASE("backup workers take the slowest out of every round", "[sim]") {
  const auto rounds = [](int backup) {
    return numbers_from_child(3, [&] {
      ServerRun run{
          fmt::format("{}, mode: synchronous, backup_workers: {}}}", kServer, backup), 6, 0, 20, {}};
      run.noise.jitter = Noise::Jitter::lognormal;
      run.noise.sigma = 0.5;
      const SimulationResult result = run.result();
      const double taken = updates_taken(result);
      return std::vector<double>{result.steps.at(0).seconds, taken, column(run, result, "dropped_share")};
    });
  };
  const auto all = rounds(0), without_two = rounds(2);
  CHECK(without_two[0] < 0.9 * all[0]);
  CHECK(all[1] == 6 * 20);
  CHECK(without_two[1] == 4 * 20);
  CHECK(all[2] == 0);
  CHECK(without_two[2] > 0.1);
}

TEST_CASE("bounded staleness is never exceeded, and a looser bound is used", "[sim]") {
  const auto lead = [](int bound) {
    return numbers_from_child(2, [&] {
      ServerRun run{
          fmt::format("{}, mode: bounded_staleness, staleness_bound: {}}}", kServer, bound), 6, 0, 20, {}};
      run.noise.jitter = Noise::Jitter::lognormal;
      run.noise.sigma = 0.5;
      const SimulationResult result = run.result();
      return std::vector<double>{column(run, result, "staleness_lead"),
                                 static_cast<double>(updates_taken(result))};
    });
  };
  const auto tight = lead(1), loose = lead(4);
  CHECK(tight[0] == 1);
  CHECK(loose[0] > 1);
  CHECK(loose[0] <= 4);
  CHECK(tight[1] == 6 * 20);
}

TEST_CASE("validation on the master stops every worker", "[sim]") {
  const ServerRun run{kServer + ", validate_every: 2, validation_time: 1 s}", 1, 0, 9, {}};
  const double exchange = (kHop + kModel) + kApply + (kHop + kModel);
  // The server answers before it validates, so a mini-batch and a push run beside each of the four
  // validations.
  const double hidden = kMiniBatch + kOwnUpdate + (kHop + kModel) + (kHop + kModel);
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + exchange + 4 * (1 - hidden) / 8));
}

TEST_CASE("a sub-master goes to its master before it answers", "[sim]") {
  const ServerRun run{kServer + ", master: serial, sub_masters: 1}", 1, 0, 4, {}};
  const double copy = 2 * kApply / 5;  // of the update into the sum that the master gets
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + copy + 2 * (2 * kHop + kMaster)));
}

TEST_CASE("a group of ranks gets the weights, sums its gradients and exchanges once", "[sim]") {
  const ServerRun run{kServer + ", group_size: 4, all_reduce: ring}", 4, 0, 4, {}};
  const double broadcast = 2 * (kHop + kModel), ring = 6 * (kHop + kModel / 4);
  const double exchange = (kHop + kModel) + kApply + (kHop + kModel);
  CHECK(run.step_seconds() == exactly(broadcast + kMiniBatch + ring + kOwnUpdate + exchange));
}

TEST_CASE("machines of a replica share its work and each send their part to their own shards", "[sim]") {
  const ServerRun run{kServer + ", machines_per_replica: 2, shards: 2}", 2, 0, 4, {}};
  CHECK(run.plan().workers == 1);
  CHECK(run.plan().samples_a_step == 1);
  const double inside = kHop + 2000 / 1e9;  // 500 units of one sample each go to the other for the loss
  CHECK(run.step_seconds() ==
        exactly((kMiniBatch + kOwnUpdate) / 2 + inside + 2 * (kHop + kModel / 2) + kApply / 2));
}

TEST_CASE("the slowest machine of a replica decides, and other replicas do not wait for it", "[sim]") {
  ServerRun run{kServer + ", machines_per_replica: 2, shards: 2}", 2, 0, 4, {}};
  run.noise.stragglers = {{1, 3.0}};
  const double inside = kHop + 2000 / 1e9, exchange = 2 * (kHop + kModel / 2) + kApply / 2;
  CHECK(number_from_child([&] { return run.step_seconds(); }) ==
        exactly(3 * (kMiniBatch + kOwnUpdate) / 2 + inside + exchange));

  run.workers = 4;
  run.steps = 12;
  const double both = number_from_child([&] { return run.step_seconds(); });
  run.noise.stragglers = {};
  const double even = number_from_child([&] { return run.step_seconds(); });
  // Rates add up: one replica takes three times as long for its mini-batch, the other one as before.
  const double slow = even + kMiniBatch + kOwnUpdate;
  CHECK(both == Approx(2 / (1 / even + 1 / slow)).epsilon(0.05));  // they also meet at the servers
}

TEST_CASE("elastic averaging answers before it applies", "[sim]") {
  const ServerRun run{"{kind: elastic_averaging, apply_time: 2 ms, master: serial}", 1, 0, 4, {}};
  const double pull = 3.0 / 5 * kOwnUpdate;
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + 2 * kHop + (kMaster - kApply) + pull));
}

TEST_CASE("elastic averaging every fourth mini-batch costs a quarter", "[sim]") {
  const ServerRun run{"{kind: elastic_averaging, period: 4, apply_time: 2 ms}", 1, 0, 9, {}};
  const double exchange = 2 * (kHop + kModel) + 3.0 / 5 * kOwnUpdate;
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + 2 * exchange / 8));
}

TEST_CASE("gradient energy matching reads, works out its update, and sends it", "[sim]") {
  const ServerRun run{
      "{kind: gradient_energy_matching, apply_time: 2 ms, master: serial, local_arrays: 10}", 1, 0, 4, {}};
  const double read = kHop + (kHop + kModel), send = 2 * kHop + kHop + (kHop + kModel);
  CHECK(run.step_seconds() == exactly(kMiniBatch + kOwnUpdate + 2 * kArray + read + 2 * kOwnUpdate + send));
}

TEST_CASE("workers that start one after the other find the server free", "[sim]") {
  // Two workers that push at once share the server's link in both directions; workers half a step apart do
  // not.
  ServerRun run{kServer + "}", 2, 0, 8, {}};
  const double alone = kMiniBatch + kOwnUpdate + 2 * (kHop + kModel) + kApply;
  CHECK(numbers_from_child(1, [&] { return std::vector<double>{run.step_seconds()}; })[0] > alone + kModel);
  run.noise.start_spread = alone;
  CHECK(run.step_seconds() == exactly(alone));
}

}  // namespace stepcast::parameter_server_test
