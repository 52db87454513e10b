#include "forecast/default_ranges.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

const std::string kServers =
    "name: servers\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nset: {platform.nodes: 2}\n"
    "batch_per_worker: 64\nstrategy: {kind: synchronous}\n";
const std::string kTwo = kServers + "workers: 16\n";

Experiment experiment_of(const Scenario& scenario, Library& library, std::vector<Assignment> more = {}) {
  auto values = middle_values(scenario, scenario.points.front());
  values.insert(values.end(), more.begin(), more.end());
  return build_experiment(scenario.document, values, library);
}

/// The kinds of the default ranges with their classes.
std::string ranges_of(const std::string& text) {
  const Scenario scenario = scenario_of(text);
  Library library;
  std::string all;
  for (const DefaultRange& one : default_ranges(scenario, experiment_of(scenario, library), library))
    all += one.kind + " " + one.source_class + "; ";
  return all;
}

}  // namespace

TEST_CASE("several servers have ranges of links, messages and compute beside them", "[forecast]") {
  CHECK(ranges_of(kTwo) ==
        "link_between_servers published; message_overhead assumed; "
        "compute_beside_communication assumed; start_of_kernels assumed; kernels_single_precision measured; "
        "spread_of_devices assumed; host_work assumed; ");
  CHECK(ranges_of(kTwo + "noise: {jitter: lognormal, sigma: 0.01}\n") ==
        "link_between_servers published; message_overhead assumed; "
        "compute_beside_communication assumed; spread_of_steps assumed; start_of_kernels assumed; "
        "kernels_single_precision "
        "measured; host_work assumed; ");
}

TEST_CASE("a network has a wide range where NCCL does not read it from the devices", "[forecast]") {
  for (const std::string change :
       {"platform: dgx1v\nset: {platform.nodes: 2, platform.software: null}\n",
        "platform: p3-16xlarge\nset: {platform.nodes: 2}\n", "platform: frontier\n"}) {
    INFO(change);
    const std::string text =
        "name: servers\nmodel: small-cnn\ntrace: derived\nbatch_per_worker: 64\n"
        "strategy: {kind: synchronous}\nworkers: 16\n" +
        change;
    CHECK(ranges_of(text).starts_with("link_between_servers data_sheet; "));
  }
}

TEST_CASE("one server has no range between servers, and one device has those of derived times",
          "[forecast]") {
  CHECK(ranges_of(kServers + "workers: 8\n") ==
        "link_inside_server data_sheet; message_overhead assumed; compute_beside_communication assumed; "
        "start_of_kernels assumed; kernels_single_precision measured; spread_of_devices assumed; host_work "
        "assumed; ");
  CHECK(ranges_of(kServers + "workers: 1\n") ==
        "start_of_kernels assumed; kernels_single_precision measured; ");
}

TEST_CASE("an assumption, a value and a class take the place of a default range", "[forecast]") {
  const std::string derived =
      "kernels_single_precision measured; spread_of_devices assumed; host_work assumed; ";
  const std::string assumed =
      "assumed: [{key: platform.network.bandwidth, range: [9 GB/s, 12 GB/s], why: known}]\n";
  CHECK(ranges_of(kTwo + assumed) ==
        "message_overhead assumed; compute_beside_communication assumed; start_of_kernels assumed; " +
            derived);
  CHECK(ranges_of(kServers +
                  "workers: 16\nuncertainty: {link_between_servers: measured, message_overhead: none}\n") ==
        "link_between_servers measured; compute_beside_communication assumed; start_of_kernels assumed; " +
            derived);
  const Scenario given = scenario_of(kTwo, {"strategy={kind: synchronous, compute_slowdown: 1.1}"});
  Library library;
  for (const DefaultRange& one :
       default_ranges(given, experiment_of(given, library, given.settings), library))
    CHECK(one.kind != "compute_beside_communication");
  CHECK(ranges_of(kTwo + "uncertainty: none\n").empty());
  CHECK(ranges_of(kTwo + "uncertainty: {discrepancy: none}\n") == ranges_of(kTwo));
}

TEST_CASE("the start of kernels has a range where times are derived, and host work where it is given",
          "[forecast]") {
  const auto has = [](const std::string& text, const std::string& kind) {
    return ranges_of(text).find(kind) != std::string::npos;
  };
  const std::string factor =
      "assumed: [{key: strategy.compute_factor, range: [0.9, 1.1], why: a rate is known}]\n";
  CHECK_FALSE(has(kTwo + factor, "start_of_kernels"));
  CHECK_FALSE(has(kTwo + factor, "host_work"));
  CHECK(has(kTwo, "host_work assumed"));
  const std::string host = kServers.substr(0, kServers.find("strategy:")) +
                           "strategy: {kind: synchronous, host_work: 1 ms}\nworkers: 16\n";
  CHECK(has(host, "host_work assumed"));
  CHECK(has(std::string(host).replace(host.find("host_work"), 9, "host_turn"), "host_work assumed"));
  CHECK(has(host + "uncertainty: {host_work: measured}\n", "host_work measured"));
}

TEST_CASE("derived times have the range of their precision, on one device too", "[forecast]") {
  const auto ranges = [](const std::string& platform, const std::string& workers,
                         const std::string& more = "") {
    return ranges_of("name: n\nmodel: gpt2-small\ntrace: derived\nplatform: " + platform +
                     "\nbatch_per_worker: 1\nworkers: " + workers + "\nstrategy: {kind: synchronous}\n" +
                     more);
  };
  const auto has = [](const std::string& all, const std::string& one) {
    return all.find(one) != std::string::npos;
  };
  CHECK(has(ranges("dgx-h100-pod", "1"), "kernels_of_transformers measured"));
  CHECK_FALSE(has(ranges("dgx-h100-pod", "1"), "kernels_half_precision"));
  CHECK_FALSE(has(ranges("dgx-h100-pod", "1"), "kernels_single_precision"));
  CHECK_FALSE(has(ranges("dgx-h100-pod", "1"), "message_overhead"));
  CHECK(has(ranges("dgx-b200", "8"), "kernels_of_transformers assumed"));  // its shares are another device's
  const std::string single = ranges("dgx-b200", "8", "kernels: {precision: f32}\n");
  CHECK(has(single, "kernels_single_precision assumed"));
  CHECK_FALSE(has(single, "kernels_of_transformers"));
  CHECK(has(ranges_of("name: n\nmodel: resnet50\ntrace: derived\nplatform: dgx-h100-pod\nbatch_per_worker: "
                      "1\nworkers: 8\n"
                      "strategy: {kind: synchronous}\nkernels: {precision: f16}\n"),
            "kernels_half_precision measured"));
}

TEST_CASE("kinds of kernels have ranges where points may have other kernels", "[forecast]") {
  const auto ranges = [](const std::string& sweep, const std::string& precision = "bf16") {
    return ranges_of(
        "name: n\nmodel: gpt2-small\ntrace: derived\nplatform: dgx-h100-pod\nworkers: 8\n"
        "batch_per_worker: 1\nstrategy: {kind: synchronous}\nkernels: {attention: flash, precision: " +
        precision + "}\nsweep: {" + sweep + "}\n");
  };
  CHECK(ranges("workers: [8, 16]").find("kernels_memory_bound") == std::string::npos);
  const std::string batches = ranges("batch_per_worker: [1, 2]");
  CHECK(batches.find("kernels_memory_bound measured; kernels_attention measured; ") != std::string::npos);
  CHECK(batches.find("kernels_fp8") == std::string::npos);
  CHECK(ranges("batch_per_worker: [1, 2]", "fp8").find("kernels_fp8 assumed") != std::string::npos);
}

TEST_CASE("the times of kinds of kernels are multiplied, and nothing else", "[forecast]") {
  const Scenario scenario = scenario_of(
      "name: n\nmodel: gpt2-small\ntrace: derived\nplatform: dgx-h100-pod\nbatch_per_worker: 4\nworkers: 8\n"
      "strategy: {kind: synchronous}\nkernels: {precision: fp8, attention: flash}\n");
  Library library;
  const KernelShares plain = *experiment_of(scenario, library).device.kernels;
  const auto with = [&](const std::string& factor) {
    return experiment_of(scenario, library, {parse_assignment(factor)}).device;
  };
  const KernelShares slow = *with("factors.memory_bound_kernels=2").kernels;
  CHECK(slow.streaming == plain.streaming / 2);
  CHECK(slow.layer_norm == plain.layer_norm / 2);
  CHECK(slow.flash == plain.flash);
  CHECK(slow.dense == plain.dense);
  CHECK(with("factors.flash_attention=2").kernels->flash == plain.flash / 2);
  const Device fp8 = with("factors.fp8_products=2");
  CHECK(fp8.fp8->kernels.dense == experiment_of(scenario, library).device.fp8->kernels.dense / 2);
  CHECK(fp8.kernels->dense == plain.dense);
}

TEST_CASE("GPUs of a scenario without noise have a spread with a range", "[forecast]") {
  CHECK(ranges_of(kTwo).find("spread_of_devices assumed") != std::string::npos);
  CHECK(ranges_of(kTwo + "noise: {jitter: lognormal, sigma: 0.01}\n").find("spread_of_devices") ==
        std::string::npos);
}

TEST_CASE("factors multiply the start of kernels and the work of the host", "[forecast]") {
  const Scenario scenario = scenario_of(kTwo);
  Library library;
  const auto with = [&](const std::string& factor) {
    return experiment_of(scenario, library,
                         {parse_assignment("strategy.host_work=1 ms"), parse_assignment(factor)});
  };
  const Device plain = experiment_of(scenario, library).device;
  const Device doubled = with("factors.kernel_start=2").device;
  CHECK(doubled.kernel_gap().value == 2 * plain.kernel_gap().value);
  CHECK(doubled.launch_overhead.value == 2 * plain.launch_overhead.value);
  const auto host = [](const Experiment& one) {
    double sum = 0;
    for (const LayerSeconds& layer : one.plan.workloads.front().host) sum += layer.forward + layer.backward;
    return sum;
  };
  CHECK(host(with("factors.host_work=1")) == Approx(8e-3));  // eight workers a server
  CHECK(host(with("factors.host_work=2")) == Approx(16e-3));
}

TEST_CASE("the range of layer times leaves the host's time of a stack as it is", "[forecast]") {
  const Scenario scenario = scenario_of(
      "name: x\nmodel: resnet50\ntrace: derived\nplatform: dgx1v\nbatch_per_worker: 8\nworkers: 8\n"
      "strategy: {kind: synchronous, like: pytorch-ddp}\n");
  Library library;
  const auto first = [&](const std::string& setting) {
    return experiment_of(scenario, library, {parse_assignment(setting)}).plan.workloads.front();
  };
  const Workload plain = first("factors.layer_times=1"), longer = first("factors.layer_times=1.3");
  CHECK(longer.median.front().forward == Approx(1.3 * plain.median.front().forward));
  CHECK(longer.host.at(0).forward == Approx(35e-6));
  CHECK(first("strategy.compute_factor=1.3").host.empty());
}

TEST_CASE("factors multiply the links and overheads of the platform", "[forecast]") {
  const Scenario scenario = scenario_of(kTwo);
  Library library;
  const Platform plain = experiment_of(scenario, library).platform;
  const Platform changed = experiment_of(scenario, library,
                                         {parse_assignment("factors.inside_server_bandwidth=0.5"),
                                          parse_assignment("factors.between_servers_bandwidth=0.25"),
                                          parse_assignment("factors.message_overhead=2")})
                               .platform;
  CHECK(changed.node.peer.bandwidth.value == 0.5 * plain.node.peer.bandwidth.value);
  CHECK(changed.node.device.bandwidth.value == 0.5 * plain.node.device.bandwidth.value);
  CHECK(changed.network.nic.bandwidth.value == 0.25 * plain.network.nic.bandwidth.value);
  CHECK(changed.message_costs.back().overhead.value == 2 * plain.message_costs.back().overhead.value);
  CHECK(changed.local_message_costs.back().overhead.value ==
        2 * plain.local_message_costs.back().overhead.value);
}

TEST_CASE("the scenario gets its default ranges as assumptions", "[forecast]") {
  const Scenario scenario = scenario_of(kTwo);
  Library library;
  const Scenario with = with_default_ranges(scenario, experiment_of(scenario, library), library);
  REQUIRE(with.assumptions.size() == 7);
  CHECK(with.assumptions[0].key == "factors.between_servers_bandwidth");
  CHECK(with.assumptions[0].low == 0.9);
  CHECK(with.assumptions[1].logarithmic);
  CHECK_NOTHROW(experiment_of(with, library));
}

TEST_CASE("unknown kinds and classes of uncertainty are the user's mistakes", "[forecast][errors]") {
  CHECK_THROWS_WITH(ranges_of(kTwo + "uncertainty: {link_between_server: measured}\n"),
                    Catch::Matchers::Contains("link_between_servers"));
  CHECK_THROWS_WITH(ranges_of(kTwo + "uncertainty: {message_overhead: guessed}\n"),
                    Catch::Matchers::Contains("uncertainty.message_overhead: expected"));
}
