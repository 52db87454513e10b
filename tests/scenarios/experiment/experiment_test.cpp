#include <catch2/catch.hpp>
#include <iterator>

#include "models/layer_times/trace.hpp"
#include "scenario_text.hpp"

using namespace stepcast;

namespace {

Experiment quick(const std::vector<std::string>& settings) {
  return shipped_experiment("resnet50-ethernet-cpu", settings);
}

/// The error message for `KEY=VALUE`. The place of a command-line value is the option itself.
void refused(const std::string& setting, const std::string& message) {
  CHECK_THROWS_WITH(quick({setting}), "--set " + setting + ": " + message);
}

double backward_seconds(const Experiment& one) {
  double sum = 0;
  for (const LayerSeconds& layer : one.plan.workloads.at(0).median) sum += layer.backward;
  return sum;
}

}  // namespace

TEST_CASE("ResNet-50 on the Ethernet CPU cluster has captured times and one worker a node", "[scenarios]") {
  const Experiment one = quick({"workers=8"});
  CHECK(one.model.name == "resnet50");
  CHECK(one.platform.name == "ethernet-cpu");
  CHECK(one.plan.workers == 8);
  CHECK(one.plan.endpoints == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(one.plan.batch_per_worker == 8);
  CHECK(one.plan.trace_kind == "captured");
  CHECK(one.strategy == "synchronous");
  CHECK(one.noise.jitter == Noise::Jitter::trace);
  CHECK(one.epoch_samples == 1281167);
  double bytes = 0;
  for (const Bucket& bucket : one.plan.workloads.at(0).buckets) bytes += bucket.gradient.value;
  CHECK(bytes == 4.0 * 25557032);
}

TEST_CASE("folding is automatic, on or off, and true and false are on and off", "[scenarios]") {
  CHECK(quick({"workers=2"}).fold == Folding::automatic);
  for (const char* on : {"on", "true"})
    CHECK(quick({"workers=2", std::string("simulation.fold=") + on}).fold == Folding::always);
  for (const char* off : {"off", "false"})
    CHECK(quick({"workers=2", std::string("simulation.fold=") + off}).fold == Folding::never);
  refused("simulation.fold=never",
          "simulation.fold: expected one of automatic, on, off, true, false, got \"never\"");
}

TEST_CASE("where messages choose their routes, each of them is simulated, by the solver that knows the load",
          "[scenarios][errors]") {
  const auto adaptive = [](const std::string& setting) {
    return shipped_experiment("cray-plugin-sync", {"platform.network.routing=adaptive", setting});
  };
  CHECK(adaptive("workers=16").fidelity == Fidelity::message);
  CHECK(adaptive("workers=16").link_sharing == LinkSharing::max_min);
  CHECK_THROWS_WITH(adaptive("simulation.fidelity=coupled"),
                    "--set simulation.fidelity=coupled: simulation.fidelity: only automatic or message with "
                    "routing: adaptive");
  CHECK_THROWS_WITH(adaptive("simulation.sharing=simgrid"),
                    "--set simulation.sharing=simgrid: simulation.sharing: only automatic or max_min with "
                    "routing: adaptive");
}

TEST_CASE("times of a batch that was not measured are computed from the given traces", "[scenarios]") {
  CHECK(quick({"batch_per_worker=6"}).plan.trace_kind == "captured, scaled");
  CHECK(quick({"batch_per_worker=6", "trace=[resnet50-b1-cpu, resnet50-b8-cpu]"}).plan.trace_kind ==
        "captured, interpolated");
  const Experiment accumulated = quick({"batch_per_worker=16", "strategy.accumulation=2"});
  CHECK(accumulated.plan.trace_kind == "captured");
  CHECK(accumulated.plan.batch_per_worker == 16);
}

TEST_CASE("as many steps are simulated as jitter and workers with servers need", "[scenarios]") {
  Scenario scenario = read_scenario(shipped_scenario("resnet50-ethernet-cpu"), {});
  std::erase_if(scenario.document.entries, [](const auto& one) { return one.first.text == "simulation"; });
  Library library;
  const auto steps = [&](const std::string& strategy, const std::string& more = "workers=4") {
    return build_experiment(scenario.document, parse_assignments({"workers=4", "strategy=" + strategy, more}),
                            library)
        .plan.steps;
  };
  CHECK(steps("{kind: synchronous}", "noise.jitter=none") == 1);
  CHECK(steps("{kind: synchronous}") == 20);  // the scenario has jitter
  CHECK(steps("{kind: parameter_server}") == 100);
  CHECK(steps("{kind: elastic_averaging, period: 20}") == 200);
  CHECK(steps("{kind: elastic_averaging, period: 20}", "simulation.steps=3") == 3);
}

TEST_CASE("without a given batch a worker uses that of the trace", "[scenarios]") {
  Scenario scenario = read_scenario(shipped_scenario("resnet50-ethernet-cpu"), {});
  std::erase_if(scenario.document.entries,
                [](const auto& one) { return one.first.text == "batch_per_worker"; });
  Library library;
  const auto with = [&](const std::vector<std::string>& settings) {
    std::vector<Assignment> values{parse_assignment("workers=4")};
    for (const std::string& setting : settings) values.push_back(parse_assignment(setting));
    return build_experiment(scenario.document, values, library).plan.batch_per_worker;
  };
  CHECK(with({}) == 8);
  CHECK(with({"strategy.accumulation=3"}) == 24);
  CHECK(with({"global_batch=64"}) == 16);
  CHECK_THROWS_WITH(with({"global_batch=66"}),
                    "--set global_batch=66: global_batch: 66 samples cannot be shared evenly by 4 workers");
  CHECK_THROWS_WITH(with({"global_batch=64",
                          "strategy={kind: elastic_averaging, server: colocated, machines_per_replica: 8}"}),
                    Catch::Contains("4 devices cannot form workers of 8; give a divisor"));
  CHECK_THROWS_WITH(with({"trace=[]"}), "--set trace=[]: trace: expected at least one trace, got a list");
}

TEST_CASE("servers use the update of a named trace of the same network", "[scenarios][errors]") {
  const std::string server = "strategy={kind: parameter_server, apply_trace: ";
  CHECK_NOTHROW(quick({"workers=4", server + "resnet50-b1-cpu}"}));
  CHECK_THROWS_WITH(
      quick({"workers=4", server + "vgg16-b2-cpu}"}),
      "--set " + server +
          "vgg16-b2-cpu}: strategy.apply_trace: expected a trace of model resnet50, got one of vgg16");
}

TEST_CASE("an unknown key is refused with the nearest known one", "[scenarios][errors]") {
  refused("strategy.bucekt=1 MiB", "strategy.bucekt: unknown key; did you mean \"bucket\"?");
  refused("wrokers=3", "wrokers: unknown key; did you mean \"workers\"?");
  refused("loss=3",
          "loss: unknown key (expected one of: model, trace, kernels, year, passes, platform, workers, "
          "batch_per_worker, "
          "global_batch, strategy, noise, placement, background, data, memory, simulation, epoch, faults, "
          "campaign, learning, compression_times, factors)");
  refused("platform.nods=4", "platform.nods: unknown key; did you mean \"nodes\"?");
  refused(
      "simulation.sede=4",
      "simulation.sede: unknown key; did you mean \"seed\"? (expected one of: steps, seed, fidelity, fold, "
      "sharing)");
}

TEST_CASE("an unknown name is refused with the nearest known name", "[scenarios][errors]") {
  refused("model=resnet5",
          "model: expected a name in models/ or a path ending in .yaml, got \"resnet5\"; did you mean "
          "\"resnet50\"?");
  refused(
      "trace=resnet50-b8-cpi",
      "trace: expected a name in models/traces/ or a path ending in .yaml, got \"resnet50-b8-cpi\"; did you "
      "mean \"resnet50-b8-cpu\"?");
  refused(
      "platform=etherned-cpu",
      "platform: expected a name in platforms/ or a path ending in .yaml, got \"etherned-cpu\"; did you mean "
      "\"ethernet-cpu\"?");
  refused("platform=../platforms/ethernet-cpu",
          "platform: expected a name in platforms/ or a path ending in .yaml, "
          "got \"../platforms/ethernet-cpu\"");
  refused("platform=mine/p.yaml", "platform: there is no file mine/p.yaml");
  refused("strategy.all_reduce=rign",
          "strategy.all_reduce: expected one of automatic, ring, halving_doubling, recursive_doubling, "
          "binomial_tree, double_tree, hierarchical, mpi, aluminum, got \"rign\"; did you mean \"ring\"?");
}

TEST_CASE("a platform file on the command line is found from the current folder", "[scenarios]") {
  const TemporaryFolder folder;
  std::filesystem::copy_file(std::string(STEPCAST_SOURCE_DIR) + "/platforms/lassen.yaml",
                             folder.path() / "p.yaml");
  CHECK(quick({"platform=" + (folder.path() / "p.yaml").string()}).platform.name == "lassen");
}

TEST_CASE("invalid points are refused", "[scenarios][errors]") {
  refused("workers=1025",
          "workers: expected at most 1024 workers, the devices of platform ethernet-cpu, got 1025; set "
          "platform.nodes (at most 16384)");
  refused("workers=0", "workers: expected an integer from 1 to 10000000, got \"0\"");
  refused("global_batch=8", "global_batch: give either batch_per_worker or global_batch");
  refused("trace=small-cnn-b64-cpu", "trace: expected a trace of model resnet50, got one of small-cnn");
  refused("trace=[resnet50-b8-cpu, small-cnn-b64-cpu]",
          "trace[1]: expected a trace of model resnet50, got one of small-cnn");
  refused("trace=[]", "trace: expected at least one trace, got a list");
  refused(
      "background=[{links: nothing*, share: 0.5}]",
      "background[0].links: expected names of links, such as \"node 0 device 0 -> socket 0\" (* stands for "
      "anything), got \"nothing*\"");
  refused("background=[{links: '*', share: 1}]",
          "background[0].share: expected a number from 0 to 0.99, got \"1\"");
  CHECK_THROWS_WITH(
      quick({"strategy.accumulation=3"}),
      Catch::Matchers::EndsWith("batch_per_worker: a batch of 8 for each worker is not a multiple of 3 "
                                "micro-batches"));
}

TEST_CASE("data are read from the storage of the platform", "[scenarios]") {
  CHECK_FALSE(quick({}).plan.load_data);
  const Experiment loaded =
      quick({"data={sample_size: 110 kB, prefetch: 3}", "batch_per_worker=16", "strategy.accumulation=2"});
  CHECK(loaded.plan.load_data);
  CHECK(loaded.plan.workloads.at(0).input.value == 8 * 110e3);
}

TEST_CASE(
    "compute beside loads is slower by data.compute_slowdown, without effect where loads are waited for",
    "[scenarios]") {
  CHECK(quick({"data={sample_size: 110 kB}"}).plan.load_slowdown == 1);
  CHECK(quick({"data={sample_size: 110 kB, compute_slowdown: 1.2}"}).plan.load_slowdown == 1.2);
  const auto waited = quick({"data={sample_size: 110 kB, prefetch: 0, compute_slowdown: 1.2}"});
  CHECK(waited.plan.load_slowdown == 1);
  CHECK(std::ranges::count(waited.plan.ineffective_keys, "data.compute_slowdown", &IneffectiveKey::key) == 1);
}

TEST_CASE("unequal samples need no storage, but samples of a worker's own", "[scenarios]") {
  const Experiment one = quick({"data={imbalance: 0.2}"});
  CHECK(one.noise.imbalance == 0.2);
  CHECK_FALSE(one.plan.load_data);
  CHECK_FALSE(one.noise.is_none());
  CHECK(quick({"data={imbalance: 0.2, sample_size: 110 kB}"}).plan.load_data);
  CHECK_THROWS_WITH(quick({"data={imbalance: 0.2, prefetch: 3}"}),
                    Catch::Contains("only valid with sample_size"));
  CHECK_THROWS_WITH(quick({"data={prefetch: 3}"}), Catch::Contains("bytes of one sample as stored"));
  CHECK_THROWS_WITH(quick({"data={imbalance: 0.2}", "noise={jitter: trace, per: node}"}),
                    Catch::Contains("not valid with noise.per: node"));
  CHECK_THROWS_WITH(quick({"data={imbalance: 0.2}", "workers=16",
                           "strategy={kind: pipeline, stages: 4, micro_batches: 4}"}),
                    Catch::Contains("only valid where every worker has samples of its own"));
}

TEST_CASE("data cannot be loaded on a platform without storage", "[scenarios][errors]") {
  std::ifstream shipped(std::string(STEPCAST_SOURCE_DIR) + "/platforms/ethernet-cpu.yaml");
  const std::string text{std::istreambuf_iterator<char>(shipped), {}};
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "p.yaml").string();
  std::ofstream(file) << text.substr(0, text.find("storage:"));
  CHECK_THROWS_WITH(quick({"data={sample_size: 110 kB}", "platform=" + file}),
                    "--set data={sample_size: 110 kB}: data: needs a platform with storage; platform "
                    "ethernet-cpu has none");
}

TEST_CASE("background traffic takes its share of the links that match, and of no other", "[scenarios]") {
  const Experiment plain = quick({"workers=2"});
  const Experiment loaded = quick({"workers=2", "background=[{links: 'node 0 *', share: 0.25}]"});
  REQUIRE(loaded.bandwidths.size() == plain.bandwidths.size());
  std::size_t slower = 0;
  for (int i = 0; i < plain.bandwidths.size(); ++i) {
    const double ratio = loaded.bandwidths[i] / plain.bandwidths[i];
    if (ratio != 1) CHECK(ratio == Approx(0.75));
    slower += ratio != 1;
  }
  CHECK(slower > 0);
  CHECK(slower < 10);
}

TEST_CASE("shallow settings come before deep ones, later ones over earlier ones", "[scenarios]") {
  const Experiment one = quick({"platform.nodes=4", "platform=lassen"});
  CHECK(one.platform.name == "lassen");
  CHECK(one.platform.nodes == 4);
  CHECK(quick({"workers=2", "workers=7"}).plan.workers == 7);
}

TEST_CASE("layer times are multiplied by the compute factor, medians and samples alike", "[scenarios]") {
  const Experiment plain = quick({}), slow = quick({"strategy.compute_factor=1.5"});
  CHECK(slow.plan.workloads.at(0).median.at(0).forward ==
        Approx(1.5 * plain.plan.workloads.at(0).median.at(0).forward));
  CHECK(slow.plan.workloads.at(0).samples.at(3).at(0).backward ==
        Approx(1.5 * plain.plan.workloads.at(0).samples.at(3).at(0).backward));
}

TEST_CASE("mixed precision halves the gradients, synchronized batch norm adds statistics", "[scenarios]") {
  const Experiment plain = quick({}), mixed = quick({"strategy.precision=mixed"});
  double bytes = 0;
  for (const Bucket& bucket : mixed.plan.workloads.at(0).buckets) bytes += bucket.gradient.value;
  CHECK(bytes == 2.0 * 25557032);
  CHECK(plain.plan.collectives.size() == plain.plan.workloads.at(0).buckets.size());
  double statistics = 0;
  for (const Collective& one : quick({"strategy.synchronized_batch_norm=true"}).plan.collectives) {
    if (one.buffer.array == Array::statistics) statistics += one.buffer.size.value;
  }
  CHECK(statistics == 8.0 * 26560);  // ResNet-50 has 26,560 batch-norm channels, 53,120 scales and shifts
}

TEST_CASE("trace: derived selects the rule for derived traces", "[scenarios]") {
  const Experiment one = quick({"platform=lassen", "trace=derived", "batch_per_worker=32"});
  CHECK(one.plan.trace_kind == "derived");
  CHECK(one.plan.workloads.at(0).samples.size() <= 1);
}

TEST_CASE("kernels of a derived trace are chosen by the scenario", "[scenarios]") {
  const std::vector<std::string> base{"platform=lassen", "trace=derived", "batch_per_worker=32"};
  const auto with = [&](const std::string& kernels) {
    std::vector<std::string> settings = base;
    settings.push_back("kernels=" + kernels);
    return quick(settings);
  };
  const Experiment plain = quick(base), half = with("{precision: f16}");
  CHECK(half.device.peak.value == 125e12);
  CHECK(backward_seconds(half) < 0.5 * backward_seconds(plain));
  // Memory follows the kernels.
  CHECK(with("{optimizer: adam}").plan.memory.total() > plain.plan.memory.total());
  // Nothing is kept from one point to the next.
  CHECK(backward_seconds(quick(base)) == backward_seconds(plain));
}

TEST_CASE("kernels that cannot be had are refused", "[scenarios][errors]") {
  refused("kernels={precision: f16}",
          "kernels: only valid with trace: derived, because a captured trace has the kernels that ran");
  CHECK_THROWS_WITH(
      quick({"trace=derived", "kernels={precision: f16}"}),
      "--set kernels={precision: f16}: kernels: device cpu-core: has no shares by kind of kernel, so "
      "its kernels cannot be chosen (precision f16)");
}

TEST_CASE("a training step that needs more than the device's memory does not fit", "[scenarios]") {
  CHECK(quick({}).plan.fits);
  CHECK_FALSE(quick({"batch_per_worker=1000000"}).plan.fits);
}

namespace {

/// A file of the repository.
std::string read_text(const std::string& file) {
  std::ifstream in(std::string(STEPCAST_SOURCE_DIR) + "/" + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a platform names its device, or a file beside it", "[scenarios][errors]") {
  const TemporaryFolder folder;
  const auto with_device = [&](const std::string& device) {
    std::string text = read_text("platforms/ethernet-cpu.yaml");
    text.replace(text.find("cpu-core"), 8, device);
    const auto file = folder.path() / "mine.yaml";
    std::ofstream(file) << text;
    return shipped_experiment("resnet50-ethernet-cpu", {"platform=" + file.string()});
  };
  std::string device = read_text("models/devices/cpu-core.yaml");
  std::ofstream(folder.path() / "my-core.yaml") << device.replace(device.find("cpu-core"), 8, "my-core");
  CHECK(with_device("my-core.yaml").device.name == "my-core");
  CHECK(with_device("cpu-core").device.name == "cpu-core");
  CHECK_THROWS_WITH(
      with_device("cpu-cor"),
      (folder.path() / "mine.yaml").string() +
          ":5:9: platform.device: expected a name in models/devices/ or a path ending in .yaml, "
          "got \"cpu-cor\"; did you mean \"cpu-core\"?");
}
