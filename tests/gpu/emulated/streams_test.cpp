#include <cuda_runtime_api.h>

#include <catch2/catch.hpp>
#include <memory>

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

}  // namespace stepcast::test
