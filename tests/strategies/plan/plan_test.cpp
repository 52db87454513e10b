#include "strategies/plan/plan.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <set>

using namespace stepcast;

TEST_CASE("every stage does every micro-batch once each way, forward first", "[strategies]") {
  for (const PipelineOrder order :
       {PipelineOrder::naive, PipelineOrder::gpipe, PipelineOrder::one_forward_one_backward}) {
    for (int stage = 0; stage < 4; ++stage) {
      std::set<int> forward, backward;
      for (const PipelineAction& action : pipeline_schedule(order, stage, 4, 6)) {
        if (action.pass == Work::forward) CHECK(forward.insert(action.micro_batch).second);
        if (action.pass == Work::backward) {
          CHECK(forward.count(action.micro_batch) == 1);
          CHECK(backward.insert(action.micro_batch).second);
        }
      }
      CHECK(forward.size() == 6);
      CHECK(backward.size() == 6);
    }
  }
}

TEST_CASE("interleaved stages do every chunk of every micro-batch once each way, in an order that can be met",
          "[strategies]") {
  for (const int stages : {2, 4}) {
    for (const int chunks : {2, 3}) {
      const int micro_batches = 2 * stages;
      std::set<std::array<int, 3>> done;  // pass, run of layers, micro-batch
      std::vector<std::vector<PipelineAction>> left;
      for (int stage = 0; stage < stages; ++stage)
        left.push_back(pipeline_schedule(PipelineOrder::interleaved, stage, stages, micro_batches, chunks));
      std::vector<std::size_t> next(left.size());
      const auto ready = [&](int stage, const PipelineAction& action) {
        const int run = action.chunk * stages + stage, last = stages * chunks - 1;
        if (action.pass == Work::forward) return run == 0 || done.count({0, run - 1, action.micro_batch}) > 0;
        return run == last ? done.count({0, run, action.micro_batch}) > 0
                           : done.count({1, run + 1, action.micro_batch}) > 0;
      };
      for (bool any = true; any;) {  // every stage goes as far as it can
        any = false;
        for (int stage = 0; stage < stages; ++stage) {
          const std::size_t i = stage;
          for (; next[i] < left[i].size() && ready(stage, left[i][next[i]]); ++next[i], any = true) {
            const PipelineAction& action = left[i][next[i]];
            const int pass = action.pass == Work::forward ? 0 : 1;
            CHECK(done.insert({pass, action.chunk * stages + stage, action.micro_batch}).second);
          }
        }
      }
      CHECK(std::ssize(done) == 2 * stages * chunks * micro_batches);
    }
  }
}

TEST_CASE("interleaving holds more micro-batches of chunks than 1F1B of whole stages", "[strategies]") {
  const auto held = [](int stage) {
    const auto counts = most_in_flight(pipeline_schedule(PipelineOrder::interleaved, stage, 4, 8, 2), 2);
    return counts.at(0) + counts.at(1);
  };
  CHECK(held(0) == 11);  // of half a stage: 2 (S - 1) + (v - 1) S + 1, 1F1B holds 4 whole ones
  CHECK(held(3) == 5);
}

TEST_CASE("GPipe holds all micro-batches, 1F1B as many as there are stages left, naive one", "[strategies]") {
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(most_in_flight(pipeline_schedule(PipelineOrder::gpipe, stage, 4, 6)) == std::vector<int>{6});
    CHECK(most_in_flight(pipeline_schedule(PipelineOrder::one_forward_one_backward, stage, 4, 6)) ==
          std::vector<int>{4 - stage});
    CHECK(most_in_flight(pipeline_schedule(PipelineOrder::one_forward_one_backward, stage, 4, 2)) ==
          std::vector<int>{std::min(2, 4 - stage)});
    CHECK(most_in_flight(pipeline_schedule(PipelineOrder::naive, stage, 4, 6)) == std::vector<int>{1});
  }
}
