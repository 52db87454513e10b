#include <catch2/catch.hpp>

#include "kernels/cudnn/layers/spatial_layer.hpp"
#include "kernels/network/backend.hpp"

namespace stepcast::test {
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

}  // namespace stepcast::test
