#include "cuda_on_host.hpp"

#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace stepcast::emulated {
namespace {

constexpr std::size_t kStack = 1 << 16;

struct Thread {
  enum class State { runs, meets_warp, meets_block, ended };

  State state = State::runs;
  ucontext_t context{};
  std::vector<char> stack = {};  ///< stack of threads that needed one of their own
  double place = 0;
};

struct Block {
  std::vector<std::unique_ptr<Thread>> threads;
  ucontext_t scheduler{};
  std::vector<std::size_t> order = {};  ///< in which the threads run from one barrier to the next
  std::size_t current = 0, next = 0;  ///< next: place in this order of the first thread that has not started
  const std::function<void()>* body = nullptr;
};
Block block;  // the running block

void select(std::size_t index) {
  block.current = index;
  const unsigned at = index;
  threadIdx = {at % blockDim.x, at / blockDim.x % blockDim.y, at / blockDim.x / blockDim.y};
}

/// One stack runs threads one after another until a thread waits for others; from then on the stack belongs
/// to that thread.
void enter() {
  while (block.next < block.threads.size()) {
    select(block.order[block.next++]);
    (*block.body)();
    block.threads[block.current]->state = Thread::State::ended;
  }
  swapcontext(&block.threads[block.current]->context, &block.scheduler);
}

void start_on_stack_of(Thread& one) {
  one.stack.resize(kStack);
  getcontext(&one.context);
  one.context.uc_stack.ss_sp = one.stack.data();
  one.context.uc_stack.ss_size = one.stack.size();
  makecontext(&one.context, enter, 0);
}

void stop(Thread::State why) {
  const std::size_t own = block.current;
  block.threads[own]->state = why;
  swapcontext(&block.threads[own]->context, &block.scheduler);
  select(own);
}

/// Releases the threads from `begin` on if all that still run have reached the barrier. @return whether they
/// were released
bool released(Thread::State at, std::size_t begin, std::size_t end) {
  bool any = false;
  for (std::size_t i = begin; i < end; ++i) {
    const Thread::State state = block.threads[i]->state;
    if (state != at && state != Thread::State::ended) return false;
    any = any || state == at;
  }
  for (std::size_t i = begin; any && i < end; ++i) {
    if (block.threads[i]->state == at) block.threads[i]->state = Thread::State::runs;
  }
  return any;
}

bool step() {
  bool ran = false;
  for (std::size_t place = 0; place < block.threads.size(); ++place) {
    const std::size_t i = block.order[place];
    if (block.threads[i]->state != Thread::State::runs) continue;
    place < block.next ? select(i) : start_on_stack_of(*block.threads[i]);
    swapcontext(&block.scheduler, &block.threads[i]->context);
    ran = true;
  }
  for (std::size_t first = 0; first < block.threads.size(); first += 32)
    ran = released(Thread::State::meets_warp, first, std::min(first + 32, block.threads.size())) || ran;
  return released(Thread::State::meets_block, 0, block.threads.size()) || ran;
}

/// Ascending, descending or shuffled. Two threads that use the same shared memory without a barrier between
/// them give another result where the second runs first.
void draw_order(std::size_t threads) {
  static std::mt19937 random(1);
  block.order.resize(threads);
  std::iota(block.order.begin(), block.order.end(), std::size_t{0});
  const auto which = random() % 3;
  if (which == 1) std::ranges::reverse(block.order);
  if (which == 2) std::ranges::shuffle(block.order, random);
}

void run_block(std::size_t threads) {
  for (std::size_t i = 0; i < threads; ++i) {
    if (i >= block.threads.size()) block.threads.push_back(std::make_unique<Thread>());
    block.threads[i]->state = Thread::State::runs;
  }
  block.threads.resize(threads);
  draw_order(threads);
  block.next = 0;
  while (step()) {
  }
  for (const auto& one : block.threads) {
    if (one->state != Thread::State::ended) throw std::logic_error("threads of a block wait for ever");
  }
}

}  // namespace

void run(const Shape& shape, const std::function<void()>& thread) {
  static std::mutex one_gpu;  // ranks that are threads share the fake GPU
  const std::lock_guard lock(one_gpu);
  gridDim = shape.grid;
  blockDim = shape.block;
  block.body = &thread;
  if (gridDim.x == 0 || gridDim.y == 0) throw std::logic_error("a grid of no blocks is an error");
  for (unsigned y = 0; y < gridDim.y; ++y) {
    for (unsigned x = 0; x < gridDim.x; ++x) {
      blockIdx = {x, y, 0};
      if (chosen_blocks() && !chosen_blocks()(blockIdx)) continue;
      run_block(std::size_t{1} * blockDim.x * blockDim.y * blockDim.z);
    }
  }
}

std::function<bool(uint3)>& chosen_blocks() {
  static std::function<bool(uint3)> one;
  return one;
}

std::function<void(cudaStream_t, std::function<void()>)>& launcher() {
  static std::function<void(cudaStream_t, std::function<void()>)> one;
  return one;
}

void launch(const Shape& shape, const std::function<void()>& thread) {
  // Limits of all devices that CUDA 13 supports.
  constexpr unsigned kMostThreads = 1024, kMostDeep = 64, kMostColumns = 2147483647, kMostRows = 65535;
  const auto within = [](unsigned size, unsigned most) { return size > 0 && size <= most; };
  const dim3 &grid = shape.grid, &threads = shape.block;
  const bool possible = within(grid.x, kMostColumns) && within(grid.y, kMostRows) &&
                        within(grid.z, kMostRows) && within(threads.x, kMostThreads) &&
                        within(threads.y, kMostThreads) && within(threads.z, kMostDeep) &&
                        within(threads.x * threads.y * threads.z, kMostThreads);
  if (!possible) throw std::logic_error("a launch that CUDA refuses");
  if (!launcher()) return run(shape, thread);
  launcher()(shape.stream, [shape, thread] { run(shape, thread); });
}

void meet_block() {
  stop(Thread::State::meets_block);
}
void meet_warp() {
  stop(Thread::State::meets_warp);
}
double& warp_place(unsigned lane) {
  return block.threads[block.current / 32 * 32 + lane]->place;
}
unsigned own_lane() {
  return block.current % 32;
}
unsigned warp_lanes() {
  return std::min<std::size_t>(32, block.threads.size() - block.current / 32 * 32);
}

}  // namespace stepcast::emulated
