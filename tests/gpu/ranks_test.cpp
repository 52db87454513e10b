#include <catch2/catch.hpp>
#include <cmath>
#include <thread>

#include "gpu/nccl/nccl_group.hpp"
#include "gpu_or_skip.hpp"
#include "kernels/network/network.hpp"
#include "networks.hpp"
#include "runtime/memory/parameters.hpp"

using namespace stepcast;
using namespace stepcast::test;

namespace {

/// The numbers 1, 2, 3, ... times `factor`, in a GPU's memory.
struct Values {
  Values(int device, std::size_t count, float factor)
      : backend(make_cudnn_backend({.device = device})),
        there(backend->allocate(count)),
        here(backend->device_memory()->host_memory(count)),
        elements(count) {
    backend->finish();
    for (std::size_t i = 0; i < count; ++i) here.get()[i] = factor * static_cast<float>(i + 1);
    backend->device_memory()->to_device(here.get(), there.get(), count);
  }

  float at(std::size_t i) {
    DeviceMemory& memory = *backend->device_memory();
    memory.to_host(memory.record_event(), there.get(), here.get(), elements);
    return here.get()[i];
  }

  std::unique_ptr<Backend> backend;
  std::shared_ptr<float> there, here;
  std::size_t elements;
};

LibraryCollective sum_call() {
  return {.kind = LibraryCollective::Kind::all_reduce};
}

}  // namespace

TEST_CASE("what is copied to a GPU and added there comes back", "[gpu]") {
  if (!gpu_or_skip()) return;
  Values one(0, 1000, 1), two(0, 1000, 10);
  one.backend->add(one.there.get(), one.there.get(), 500);
  CHECK(one.at(3) == 8);
  CHECK(one.at(700) == 701);
  one.backend->clear(one.there.get(), 10);
  CHECK(one.at(9) == 0);
  CHECK(one.at(10) == 22);
}

TEST_CASE("a copy to the host waits for the kernels before its event", "[gpu]") {
  if (!gpu_or_skip()) return;
  constexpr std::size_t kElements = 1 << 22;
  Values one(0, kElements, 0);
  Values ones(0, kElements, 0);
  std::fill_n(ones.here.get(), kElements, 1.0F);
  one.backend->device_memory()->to_device(ones.here.get(), ones.there.get(), kElements);
  for (int i = 0; i < 200; ++i) one.backend->add(ones.there.get(), one.there.get(), kElements);
  CHECK(one.at(kElements - 1) == 200);
}

TEST_CASE("a host mirror holds the gradients that the GPU computed", "[gpu]") {
  if (!gpu_or_skip()) return;
  const auto backend = make_cudnn_backend({});
  Network network(*backend, two_layer_model(4), {.batch = 16});
  network.step();
  HostMirror mirror(network);
  mirror.fetch(mirror.gradients(), mirror.device().record_event());
  const std::vector<float> first = network.kernel(0).read_gradient(0);
  CHECK(std::abs(first[0]) + std::abs(first[1]) > 0);
  CHECK(mirror.gradients()[0] == first[0]);
  CHECK(mirror.gradients()[1] == first[1]);
}

TEST_CASE("an all-reduce of one rank by NCCL leaves its values unchanged", "[gpu]") {
  if (!gpu_or_skip()) return;
  Values one(0, 64, 1);
  const auto group = join_nccl({}, nccl_unique_id());
  LibraryCollective scatter{.kind = LibraryCollective::Kind::reduce_scatter,
                            .parts = {{0, {0, 40}}, {0, {40, 64}}}};
  LibraryCollective broadcast{.kind = LibraryCollective::Kind::broadcast};
  for (const LibraryCollective& call : {sum_call(), scatter, broadcast}) {
    group->run(call, one.there.get(), 64, one.backend->device_memory()->record_event());
    CHECK(one.at(63) == 64);
  }
  LibraryCollective exchange{.kind = LibraryCollective::Kind::exchange};
  exchange.rounds = {{{.way = Transfer::Way::send, .peer = 0, .slice = {0, 8}, .after = {}},
                      {.way = Transfer::Way::receive, .peer = 0, .slice = {8, 16}, .after = {}}}};
  group->run(exchange, one.there.get(), 64, one.backend->device_memory()->record_event());
  CHECK(one.at(0) == 1);
  CHECK(one.at(8) == 10);  // 9 + 1
}

TEST_CASE("NCCL sums over two GPUs, and with one GPU the test is skipped", "[gpu]") {
  if (!gpu_or_skip()) return;
  if (gpu_count() < 2) {
    WARN("one GPU: NCCL over two was not tried");
    return;
  }
  const std::string id = nccl_unique_id();
  std::vector<float> got(2);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      Values own(rank, 64, rank == 0 ? 1.0F : 10.0F);
      const auto group = join_nccl({.device = rank, .rank = rank, .group_rank = rank, .group_size = 2}, id);
      group->run(sum_call(), own.there.get(), 64, own.backend->device_memory()->record_event());
      got[rank] = own.at(1);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  CHECK(got == std::vector<float>{22, 22});
}
