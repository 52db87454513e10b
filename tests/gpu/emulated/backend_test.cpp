#include "kernels/network/backend.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/os/files.hpp"
#include "gpu/check/check_layers.hpp"
#include "gpu/commands/commands.hpp"
#include "kernels/cudnn/layers/spatial_layer.hpp"
#include "learned_curve.hpp"
#include "partitioned_training.hpp"
#include "spatial_training.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast::test {
// Tests of the whole cuDNN backend on a fake GPU: the project's kernels on the host, CUDA's runtime without a
// device, and fakes of cuDNN's convolutions, batch norm and RNN and of cuBLAS's products, which are plain
// loops that check descriptors by the libraries' rules. These tests show neither what other calls of the
// libraries do nor how long a GPU takes.
namespace {

constexpr GpuOptions kNchw{.precision = GpuPrecision::f32, .layout = ImageLayout::nchw};
constexpr GpuOptions kNhwc{.precision = GpuPrecision::f32, .layout = ImageLayout::nhwc};

std::unique_ptr<Backend> nchw_backend() {
  return make_cudnn_backend(kNchw);
}
std::unique_ptr<Backend> nhwc_backend() {
  return make_cudnn_backend(kNhwc);
}

std::unique_ptr<Backend> graph_backend() {
  return make_cudnn_backend({.graphs = true});
}

}  // namespace

TEST_CASE("the backend's layers compute what plain loops do", "[fake][long]") {
  const auto precision =
      GENERATE(GpuPrecision::f32, GpuPrecision::tf32, GpuPrecision::f16, GpuPrecision::bf16);
  const auto layout = GENERATE(ImageLayout::nchw, ImageLayout::nhwc);
  const auto backend = make_cudnn_backend({.precision = precision, .layout = layout});
  auto found = check_layers(*backend);
  CHECK(found.size() > 100);
  const auto shared = check_partitioned_layers(*backend);
  CHECK(shared.size() > 30);
  found.insert(found.end(), shared.begin(), shared.end());
  for (const Deviation& one : found) {
    INFO(one.layer << ", " << one.array);
    CHECK(one.error <= rounding_tolerance(precision));
  }
}

TEST_CASE("samples partitioned over several GPUs train like whole ones on a CPU, to rounding",
          "[fake][long]") {
  const auto number = GENERATE(range<std::size_t>(0, 7));
  const PartitionTrial t = partition_trials().at(number);
  const bool carried = number % 2 == 1;
  const auto make = carried ? nhwc_backend : nchw_backend;
  CAPTURE(carried);
  check_trains_as_whole(t.model, t.partition, t.labels, {make, carried});
}

TEST_CASE("layers that several GPUs share train like whole ones on a CPU, to rounding", "[fake][long]") {
  const std::string model = GENERATE(kStack, kUnshared);
  const auto c = GENERATE(SharedCase{"ways: 2", 2, 2, 4}, SharedCase{"ways: 4", 4, 4, 2},
                          SharedCase{"ways: 2, bucket: tensor, all_reduce: ring", 4, 2, 2},
                          SharedCase{"ways: 2, accumulation: 2, halo_overlap: false", 2, 2, 4});
  check_trains_as_whole(model, c, {nchw_backend, c.ranks == 4});
}

TEST_CASE("layers that several GPUs share in bf16 train like whole ones, to its rounding", "[fake]") {
  const auto make = []() { return make_cudnn_backend({.precision = GpuPrecision::bf16}); };
  check_trains_as_whole(kStack, {"ways: 2", 2, 2, 4}, {make, false, 0.02});
}

TEST_CASE("ranks on GPUs learn what ranks on CPUs do, to rounding", "[fake][long]") {
  using Kind = DataOptions::Kind;
  const LearningCase c = GENERATE(
      LearningCase{"{kind: synchronous, all_reduce: ring, bucket: tensor}", 2, 2, &kImages, Kind::images},
      LearningCase{"{kind: zero, stage: 2, bucket: 200 B}", 2, 2, &kDigits, Kind::images},
      LearningCase{"{kind: pipeline, stages: 2, split_points: [conv2], micro_batches: 4, schedule: gpipe}", 2,
                   1, &kImages, Kind::images},
      LearningCase{"{kind: spatial, split: 2, halo_overlap: false}", 2, 1, &kImages, Kind::images},
      LearningCase{"{kind: tensor, ways: 2, all_reduce: ring}", 4, 2, &kBlocks, Kind::sequences},
      LearningCase{
          "{kind: pipeline, stages: 2, tensor: 2, split_points: [add], micro_batches: 4, schedule: 1f1b}", 4,
          1, &kBlocks, Kind::sequences});
  const bool nhwc = c.model == &kDigits;
  const auto make = nhwc ? nhwc_backend : nchw_backend;
  CAPTURE(c.strategy, nhwc);
  const Curve expected = learned(c.strategy, c.ranks, *c.model, options_of(c));
  check_same(learned(c.strategy, c.ranks, *c.model, options_of(c), make), expected);
  CHECK(expected.evaluations.back().loss != expected.evaluations.front().loss);
}

TEST_CASE("ranks on GPUs that replay passes as graphs learn what ranks on CPUs do, to rounding",
          "[fake][graphs][long]") {
  using Kind = DataOptions::Kind;
  const LearningCase c = GENERATE(
      LearningCase{"{kind: synchronous, all_reduce: ring, bucket: tensor}", 2, 2, &kImages, Kind::images},
      LearningCase{"{kind: pipeline, stages: 2, split_points: [conv2], micro_batches: 4, schedule: 1f1b}", 2,
                   1, &kImages, Kind::images},
      LearningCase{"{kind: tensor, ways: 2, all_reduce: ring}", 4, 2, &kBlocks, Kind::sequences});
  CAPTURE(c.strategy);
  check_same(learned(c.strategy, c.ranks, *c.model, options_of(c), graph_backend),
             learned(c.strategy, c.ranks, *c.model, options_of(c)));
}

namespace {

using namespace cudnn;

constexpr std::int64_t kSamples = 2, kChannels = 3;

/// The value at (d, h, w) of a sample's channel in every map, which fp16 represents exactly.
float number_at(std::int64_t sample, std::int64_t channel, const std::vector<std::int64_t>& row) {
  std::int64_t number = sample * kChannels + channel;
  for (const std::int64_t one : row) number = number * 6 + one;
  return number;
}

/// Calls visit(sample, channel, row, index in row-major order) for all elements of a map with these rows.
template <class Visit>
void for_each_element(const std::vector<Rows>& rows, const Visit& visit) {
  std::size_t index = 0;
  for (std::int64_t n = 0; n < kSamples; ++n) {
    for (std::int64_t c = 0; c < kChannels; ++c) {
      for (std::int64_t h = rows[0].first; h < rows[0].last; ++h) {
        for (std::int64_t w = rows[1].first; w < rows[1].last; ++w)
          visit(n, c, std::vector<std::int64_t>{h, w}, index++);
      }
    }
  }
}

bool inside(const std::vector<std::int64_t>& row, const std::vector<Rows>& rows) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] < rows[i].first || row[i] >= rows[i].last) return false;
  }
  return true;
}

struct Maps {
  std::shared_ptr<Device> device;
  Order order;

  PartialMap empty(const std::vector<Rows>& rows, std::vector<std::int64_t> before = {}) const {
    Shape shape{kSamples, kChannels};
    for (std::size_t i = 0; i < rows.size(); ++i)
      shape.push_back(rows[i].size() + (before.empty() ? 0 : before[i] + 1));
    return {CudnnTensor(device, shape, device->element(), order), rows, std::move(before)};
  }
  PartialMap filled(const std::vector<Rows>& rows) const {
    PartialMap map = empty(rows);
    std::vector<float> values(map.tensor.elements());
    for_each_element(
        rows, [&](auto n, auto c, const auto& row, std::size_t i) { values[i] = number_at(n, c, row); });
    map.tensor.write(values);
    return map;
  }
};

Maps any_maps() {
  const auto precision = GENERATE(GpuPrecision::f32, GpuPrecision::f16);
  const auto layout = GENERATE(ImageLayout::nchw, ImageLayout::nhwc);
  return {std::make_shared<Device>(GpuOptions{.precision = precision, .layout = layout}),
          layout == ImageLayout::nhwc ? Order::channels_last : Order::row_major};
}

}  // namespace

TEST_CASE("rows that two maps hold are copied, and zeros in front of them stay", "[fake]") {
  const Maps maps = any_maps();
  const std::vector<Rows> own{{1, 4}, {2, 6}}, read{{2, 5}, {0, 4}};
  const PartialMap from = maps.filled(own), to = maps.empty(read, {1, 2});
  const auto move = move_rows(from, to);
  move_elements(move, from.tensor.data(), to.tensor.data(), maps.device->stream.get());
  const std::vector<float> found = to.tensor.read();
  // The rows in front and one more row behind, as a map of their own.
  for_each_element({{1, 6}, {-2, 5}}, [&](auto n, auto c, const auto& row, std::size_t i) {
    CHECK(found[i] == (inside(row, own) && inside(row, read) ? number_at(n, c, row) : 0));
  });
}

TEST_CASE("a box of rows goes through a message, position after position, and back", "[fake]") {
  const Maps maps = any_maps();
  const std::vector<Rows> own{{0, 4}, {0, 6}}, box{{2, 5}, {1, 3}}, read{{1, 5}, {2, 4}};
  const PartialMap from = maps.filled(own), to = maps.empty(read);
  std::vector<float> message(kSamples * kChannels * 3 * 2, -1);
  move_elements(rows_to_message(from, box), from.tensor.data(), message.data(), maps.device->stream.get());
  cudaStreamSynchronize(maps.device->stream.get());
  std::size_t at = 0;
  for (std::int64_t n = 0; n < kSamples; ++n) {
    for (std::int64_t h = 2; h < 5; ++h) {
      for (std::int64_t w = 1; w < 3; ++w) {
        for (std::int64_t c = 0; c < kChannels; ++c)
          CHECK(message[at++] == (h < 4 ? number_at(n, c, {h, w}) : -1));  // the map does not hold row 4
      }
    }
  }
  move_elements(message_to_rows(box, to), message.data(), to.tensor.data(), maps.device->stream.get());
  const std::vector<float> found = to.tensor.read();
  for_each_element(read, [&](auto n, auto c, const auto& row, std::size_t i) {
    const float sent = row[0] < 4 ? number_at(n, c, row) : -1;
    CHECK(found[i] == (inside(row, box) ? sent : 0));
  });
}

// The command capture-all on a fake GPU with 1 GiB of free memory and the name of a listed one.
namespace {

/// A network that the fake GPU computes in moments. @return its file
std::string tiny_model(const std::filesystem::path& folder) {
  write_atomically(folder / "tiny.yaml",
                   "name: tiny\nsource: test\ninput: [8]\nlayers:\n  - {name: a, kind: dense, units: 4}\n"
                   "  - {name: loss, kind: softmax_cross_entropy}\n");
  return (folder / "tiny.yaml").string();
}

int capture_all(const std::filesystem::path& folder, const std::string& models, const std::string& seconds) {
  setenv("STEPCAST_DATA", STEPCAST_SOURCE_DIR, 1);
  setenv("PRETENDED_GPU", "NVIDIA H200", 1);
  CommandLine line("stepcast-gpu", "", "");
  add_gpu_capture_all(line.command());
  const std::string out = folder.string();
  const std::vector<const char*> words{"stepcast-gpu", "capture-all", "--models",  models.c_str(),
                                       "--batches",    "2",           "--seconds", seconds.c_str(),
                                       "-o",           out.c_str()};
  return line.run(words.size(), words.data());
}

}  // namespace

TEST_CASE("a capture that can never fit is left out, whatever time it would take", "[fake][capture-all]") {
  const TemporaryFolder folder, models;
  CHECK(capture_all(folder.path(), tiny_model(models.path()) + ",mesh-1k", "3") == 0);
  CHECK(std::filesystem::exists(folder.path() / "tiny-b2-f32-nchw-gpu.yaml"));
  CHECK(entries(folder.path()) == 1);  // no marker is left
}

TEST_CASE("a capture that began twice and ended neither time is not met again", "[fake][capture-all]") {
  const TemporaryFolder folder, models;
  const std::string tiny = tiny_model(models.path());
  const auto marker = folder.path() / "tiny-b2-f32-nchw-gpu.begun";
  write_atomically(marker, "2026-11-23\n2026-11-23\n");
  CHECK(capture_all(folder.path(), tiny, "100") == 1);
  CHECK(entries(folder.path()) == 1);
  write_atomically(marker, "2026-11-23\n");
  CHECK(capture_all(folder.path(), tiny, "100") == 0);
  CHECK_FALSE(std::filesystem::exists(marker));
}

}  // namespace stepcast::test
