#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <stdexcept>

#include "cuda_on_host.hpp"

// The fake GPU shows what forgets to wait.
namespace stepcast::test {
namespace {

struct Two {
  Two() {
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    void* memory = nullptr;
    cudaMalloc(&memory, 8);
    from = static_cast<char*>(memory);
    to = from + 4;
    cudaMemsetAsync(memory, 0, 8, first);
    cudaStreamSynchronize(first);
  }
  Two(const Two&) = delete;
  ~Two() {
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    cudaEventDestroy(event);
    cudaFree(from);
  }

  /// Copies on the second stream what the first stream writes. @return the value that is copied
  int copied(bool waits) const {
    cudaMemsetAsync(from, 7, 1, first);
    cudaEventRecord(event, first);
    if (waits) cudaStreamWaitEvent(second, event, 0);
    cudaMemcpyAsync(to, from, 1, cudaMemcpyDeviceToDevice, second);
    cudaStreamSynchronize(second);
    return *to;
  }

  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  char *from = nullptr, *to = nullptr;
};

}  // namespace

TEST_CASE("a stream that waits for another has its results, and one that forgets to wait has not always",
          "[pretended][streams]") {
  int missed = 0;
  for (int i = 0; i < 60; ++i) {
    CHECK(Two().copied(true) == 7);
    missed += Two().copied(false) == 7 ? 0 : 1;
  }
  CHECK(missed > 5);
}

TEST_CASE("an event is not ready before its stream has come to it, and has no time then",
          "[pretended][streams]") {
  const Two two;
  cudaMemsetAsync(two.from, 7, 1, two.first);
  cudaEventRecord(two.event, two.first);
  float milliseconds = 0;
  int waits = 0;
  while (cudaEventQuery(two.event) == cudaErrorNotReady) ++waits;
  CHECK(waits < 100);
  CHECK(*two.from == 7);
  CHECK(cudaEventElapsedTime(&milliseconds, two.event, two.event) == cudaSuccess);
}

TEST_CASE("a graph holds what was captured, runs nothing before it is launched, and runs it each time",
          "[pretended][streams]") {
  const Two two;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaStreamBeginCapture(two.first, cudaStreamCaptureModeThreadLocal);
  cudaMemcpyAsync(two.to, two.from, 1, cudaMemcpyDeviceToDevice, two.first);
  cudaMemsetAsync(two.from, 9, 1, two.first);
  cudaStreamEndCapture(two.first, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaStreamSynchronize(two.first);
  CHECK(*two.from == 0);
  for (const int expected : {0, 9}) {
    cudaGraphLaunch(executable, two.first);
    cudaStreamSynchronize(two.first);
    CHECK(*two.to == expected);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_CASE("launches that a GPU refuses are refused", "[pretended][streams]") {
  using emulated::Shape;
  const auto refuses = [](dim3 grid, dim3 block) {
    CHECK_THROWS_AS(emulated::launch(Shape(grid, block, 0, nullptr), [] {}), std::logic_error);
  };
  refuses(dim3(0), dim3(32));
  refuses(dim3(1, 0), dim3(32));
  refuses(dim3(1, 65536), dim3(32));
  refuses(dim3(1, 1, 65536), dim3(32));
  refuses(dim3(2147483648U), dim3(32));
  refuses(dim3(1), dim3(0));
  refuses(dim3(1), dim3(1025));
  refuses(dim3(1), dim3(32, 33));
  refuses(dim3(1), dim3(1, 1, 65));
  CHECK_NOTHROW(emulated::launch(Shape(dim3(1, 65535), dim3(1), 0, nullptr), [] {}));
}

}  // namespace stepcast::test
