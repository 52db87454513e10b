#include "scenarios/experiment/software_stack.hpp"

#include <catch2/catch.hpp>

#include "models/loader.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

Experiment with_strategy(const std::string& strategy, const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all{"workers=16", "strategy={" + strategy + "}"};
  all.insert(all.end(), settings.begin(), settings.end());
  return shipped_experiment("resnet50-ethernet-cpu", all);
}

const std::vector<Bucket>& buckets_of(const Experiment& experiment) {
  return experiment.plan.workloads.front().buckets;
}

}  // namespace

TEST_CASE("a stack sets what the scenario does not give", "[scenarios]") {
  const Experiment ddp = with_strategy("kind: synchronous, like: pytorch-ddp");
  CHECK(buckets_of(ddp).front().gradient.value < 16e6);  // the last layer alone exceeds 1 MiB
  CHECK(ddp.plan.communicators.front().all_reduce.algorithm == Algorithm::ring);
  const Experiment own =
      with_strategy("kind: synchronous, like: pytorch-ddp, bucket: model, first_bucket: 1 GB");
  CHECK(buckets_of(own).size() == 1);
  CHECK(buckets_of(with_strategy("kind: synchronous, like: megatron")).size() == 1);
}

TEST_CASE("PyTorch's host takes time without a stack too, unless layer times are scaled to a measured step",
          "[scenarios]") {
  const auto host = [](const std::string& strategy) {
    return shipped_experiment("resnet50-ethernet-cpu", {"trace=derived", "platform=dgx1v", "workers=8",
                                                        "strategy={kind: synchronous" + strategy + "}"})
        .plan.workloads.front()
        .host;
  };
  CHECK(host(", like: horovod").empty());
  CHECK(host(", compute_factor: 1").empty());
  REQUIRE_FALSE(host("").empty());
  CHECK(host("").front().forward == Approx(35e-6));
  const auto of_stack = host(", like: pytorch-ddp");
  REQUIRE_FALSE(of_stack.empty());
  CHECK(of_stack.front().forward == Approx(35e-6));  // a convolution
  CHECK(host(", like: pytorch-ddp, host_operation: 1 ms").front().forward == Approx(1e-3));
  CHECK(host(", like: pytorch-ddp, compute_factor: 1").empty());
}

TEST_CASE("keys that a stack sets are not among those that have no effect", "[scenarios]") {
  CHECK(with_strategy("kind: synchronous, like: megatron").plan.ineffective_keys.empty());
  const Experiment given = with_strategy("kind: synchronous, like: megatron, compute_slowdown: 1.1");
  REQUIRE(given.plan.ineffective_keys.size() == 1);
  CHECK(given.plan.ineffective_keys.front().key == "strategy.compute_slowdown");
}

TEST_CASE("TensorFlow sums by NCCL between GPUs that reach each other's memory, and copies where they do not",
          "[scenarios]") {
  const auto all_reduce = [](const std::string& setting) {
    return with_strategy("kind: synchronous, like: tensorflow-replicated",
                         {"trace=derived", "platform=p2-8xlarge", "workers=8", setting})
        .plan.communicators.front()
        .all_reduce;
  };
  CHECK(all_reduce("platform.device=k80").algorithm == Algorithm::automatic);  // NCCL's choice
  CHECK(all_reduce("platform.node.peer_access=false").algorithm == Algorithm::hierarchical);
  CHECK(all_reduce("platform.device=rtx-3090").algorithm == Algorithm::hierarchical);
  CHECK(all_reduce(
            "platform.node={kind: links, devices: 8, sockets: 1, peer_access: false, "
            "device_link: {bandwidth: 12 GB/s, latency: 0 s}, memory: {bandwidth: 60 GB/s, latency: 0 s}, "
            "peer_link: {bandwidth: 50 GB/s, latency: 0 s}, peers: [[0, 1]]}")
            .algorithm == Algorithm::automatic);
}

TEST_CASE("a stack of servers replaces the kind synchronous", "[scenarios]") {
  const Experiment servers = with_strategy("kind: synchronous, like: tensorflow-ps");
  CHECK(servers.strategy == "parameter_server");
  CHECK(servers.plan.asynchronous);
  CHECK(!buckets_of(servers).empty());
}

TEST_CASE("rings of NCCL are a stack's choice only where the platform names no NCCL", "[scenarios]") {
  const std::string like = "kind: synchronous, like: horovod";
  const auto algorithm = [&](const std::vector<std::string>& settings) {
    return with_strategy(like, settings).plan.communicators.front().all_reduce.algorithm;
  };
  CHECK(algorithm({}) == Algorithm::ring);
  CHECK(algorithm({"platform=dgx1v", "platform.nodes=2", "platform.software={nccl: \"2.8\"}"}) ==
        Algorithm::automatic);
}

TEST_CASE("stacks that use NCCL lay a ring for each NIC, if there are several servers", "[scenarios]") {
  const auto rings = [](int workers, const std::string& strategy = "kind: synchronous, like: horovod") {
    const Experiment experiment =
        with_strategy(strategy, {"platform=dgx-a100", "platform.nodes=4", "platform.software=null",
                                 "workers=" + std::to_string(workers)});
    return experiment.plan.communicators.front().all_reduce.channels;
  };
  CHECK(rings(8) == 1);
  CHECK(rings(16) == 8);
  CHECK(rings(16, "kind: synchronous, like: horovod, channels: 2") == 2);
}

TEST_CASE("a year chooses what libraries had then", "[scenarios]") {
  const auto in = [](int year, const std::string& more = "simulation.seed=1") {
    return shipped_experiment(
        "resnet50-ethernet-cpu",
        {"model=gpt2-small", "trace=derived", "platform=dgx-a100", "batch_per_worker=4", "workers=16",
         "strategy={kind: synchronous}", "year=" + std::to_string(year), more});
  };
  const auto kernels = [&](int year) { return in(year).device.choice(); };
  CHECK(kernels(2017).precision == KernelChoice::Precision::f32);
  CHECK(kernels(2019).precision == KernelChoice::Precision::f16);
  CHECK(kernels(2022).attention == KernelChoice::Attention::eager);
  CHECK(kernels(2022).update == KernelChoice::Update::for_loop);
  CHECK(kernels(2023).attention == KernelChoice::Attention::flash_1);
  CHECK(kernels(2025).attention == KernelChoice::Attention::flash);
  CHECK(kernels(2025).precision == KernelChoice::Precision::bf16);
  const auto nccl = [&](const Experiment& experiment) { return experiment.platform.software.nccl; };
  CHECK(nccl(in(2012)) == 200);
  CHECK(nccl(in(2019)) == 204);
  CHECK(nccl(in(2039)) == 227);
  CHECK(nccl(in(2019, "platform.software.nccl=\"2.8\"")) == 208);  // a version that is given stays
}

TEST_CASE("a stack of sharded data parallelism replaces the kind synchronous", "[scenarios]") {
  CHECK(with_strategy("kind: synchronous, like: pytorch-fsdp").strategy == "zero");
  // With a key that only a mesh has, it is a mesh, which does not take those of plain replicas from a stack.
  const std::string hybrid = "kind: synchronous, like: pytorch-fsdp, shard_within: 4";
  CHECK(with_strategy(hybrid).strategy == "synchronous");
  CHECK(with_strategy(hybrid + ", shard: parameters").plan.collectives.size() ==
        with_strategy(hybrid).plan.collectives.size());
  CHECK(with_strategy("kind: synchronous, like: pytorch-ddp, shard: optimizer").strategy == "synchronous");
}

TEST_CASE("stacks that pack gradients copy them into buffers, or to the host", "[scenarios]") {
  const auto copies = [](const std::string& name, const std::string& more = "") {
    const Experiment experiment = with_strategy("kind: synchronous, like: " + name + more);
    return experiment.plan.simulated_only.find("bucket_copies") != std::string::npos;
  };
  for (const char* name : {"deepspeed", "chainermn", "chainermn-hierarchical", "chainermn-non-cuda-aware",
                           "pytorch-ddp", "horovod-mpi"}) {
    CAPTURE(name);
    CHECK(copies(name));
    CHECK_FALSE(copies(name, ", bucket_copies: none"));
  }
  CHECK_FALSE(copies("lbann"));
}

TEST_CASE("Horovod sums on hosts after the pass, on GPUs beside it", "[scenarios]") {
  const auto idle = [](const std::string& stack) {  // a key that counts beside the pass only
    const Plan plan = with_strategy("kind: synchronous, like: " + stack + ", compute_slowdown: 1.1").plan;
    return !plan.ineffective_keys.empty();
  };
  CHECK_FALSE(idle("horovod"));
  CHECK(idle("horovod-mpi"));
  CHECK_FALSE(idle("horovod-mpi, overlap: true"));
}

TEST_CASE("the threads of a stack over sockets limit the rate of a NIC, and no slower one", "[scenarios]") {
  const auto nic = [](const std::string& stack, const std::string& bandwidth) {
    return with_strategy("kind: synchronous, like: " + stack, {"platform.network.bandwidth=" + bandwidth})
        .platform.network.nic.bandwidth.value;
  };
  CHECK(nic("tensorflow-ps, connection_rate: 0.1 GB/s", "3 GB/s") == Approx(1.5e9));  // 15 other hosts
  CHECK(nic("tensorflow-ps", "3 GB/s") == 3e9);
  CHECK(nic("horovod-mpi", "3 GB/s") == 1.4e9);
  CHECK(nic("horovod-mpi, network_rate: 2 GB/s", "3 GB/s") == 2e9);
  CHECK(nic("horovod", "3 GB/s") == 3e9);
}

TEST_CASE("every shipped stack can be used and gives each value a source", "[scenarios]") {
  const auto names = names_in(data_folder() / "strategies/stacks");
  CHECK(names.size() >= 8);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(with_strategy("kind: synchronous, like: " + name).plan.workers == 16);
    const YamlNode document = parse_yaml("strategy: {like: " + name + "}", "s.yaml");
    Library library;
    const auto stack = software_stack_of(document, library);  // outlives the loop
    REQUIRE(stack);
    for (const StackValue& one : stack->values) CHECK(one.source.size() > 10);
  }
}

TEST_CASE("an unknown stack is refused", "[scenarios][errors]") {
  CHECK_THROWS_WITH(
      with_strategy("kind: synchronous, like: horovd"),
      Catch::Contains("strategy.like: expected a name in strategies/stacks/") && Catch::Contains("horovod"));
}

TEST_CASE("a stack's kernels replace the usual ones, not those that the scenario gives", "[scenarios]") {
  const auto kernels = [](const std::string& stack, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"model=gpt2-lm", "trace=derived", "platform=dgx-a100", "workers=8",
                                 "strategy={kind: synchronous, mesh: {tensor: 2}" + stack + "}"};
    all.insert(all.end(), more.begin(), more.end());
    return shipped_experiment("resnet50-ethernet-cpu", all).device.choice();
  };
  CHECK(kernels("").attention == KernelChoice::Attention::flash);
  CHECK(kernels("").cross_entropy == KernelChoice::CrossEntropy::log_softmax);
  const KernelChoice megatron = kernels(", like: megatron"), core = kernels(", like: megatron-core");
  CHECK(megatron.attention == KernelChoice::Attention::fused_softmax);
  CHECK(megatron.cross_entropy == KernelChoice::CrossEntropy::vocab_parallel);
  CHECK(megatron.precision == KernelChoice::Precision::bf16);
  CHECK(core.attention == KernelChoice::Attention::flash);
  CHECK(core.elementwise == KernelChoice::Elementwise::fused);
  const KernelChoice given = kernels(", like: megatron", {"kernels={precision: f16, attention: eager}"});
  CHECK(given.attention == KernelChoice::Attention::eager);
  CHECK(given.cross_entropy == KernelChoice::CrossEntropy::vocab_parallel);
}
