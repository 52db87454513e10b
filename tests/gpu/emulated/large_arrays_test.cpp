#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cuda_on_host.hpp"
#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/cuda/optimizer_updates.hpp"
#include "kernels/cudnn/cuda/rows.hpp"
#include "kernels/cudnn/cuda/sums.hpp"

// Kernels on arrays of more than 2^31 elements, which have 8 GiB of addresses and few MiB of memory. Only
// those blocks of a launch run that compute the last element.
namespace stepcast::test {
namespace {

using namespace cudnn;

/// A multiple of the elements that the largest grid of a kernel covers at once, in packs of four too.
constexpr std::int64_t kElements = std::int64_t{4} * 132 * 32 * 256 * 497;
static_assert(kElements > std::int64_t{1} << 31);
constexpr std::int64_t kLength = 1024, kRows = kElements / kLength;

/// Zeros. The first and the last 16 MiB have memory of their own, and all parts between them share one: an
/// index that overflows reaches addresses that are not mapped, or leaves the last element as it is.
class LargeArray {
 public:
  LargeArray() {
    const int file = memfd_create("array", MFD_CLOEXEC);
    void* const all = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file < 0 || ftruncate(file, 3 * kPart) != 0 || all == MAP_FAILED)
      throw std::runtime_error("no addresses for a large array");
    memory_ = {static_cast<char*>(all), [](char* one) { munmap(one, kReserved); }};
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t from = part == 0 ? 0 : part + 1 == kParts ? 2 : 1;
      if (mmap(memory_.get() + (part + 1) * kPart, kPart, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
               file, from * kPart) == MAP_FAILED)
        throw std::runtime_error("no memory for a large array");
    }
    close(file);
  }

  template <class T = float>
  T* data() const {
    return reinterpret_cast<T*>(memory_.get() + kPart);
  }
  float& last() const { return data()[kElements - 1]; }

 private:
  static constexpr std::size_t kPart = std::size_t{1} << 24;
  static constexpr std::size_t kParts = (kElements * sizeof(float) + kPart - 1) / kPart;
  static constexpr std::size_t kReserved =
      (kParts + 2) * kPart;  // nothing is mapped before and after the array
  std::shared_ptr<char> memory_;
};

/// While it lives, launches run the last block of their first and of their last row, as some kernels begin
/// with the last line.
struct LastBlocks {
  LastBlocks() {
    emulated::chosen_blocks() = [](uint3 at) {
      return at.x + 1 == gridDim.x && (at.y == 0 || at.y + 1 == gridDim.y);
    };
  }
  LastBlocks(const LastBlocks&) = delete;
  ~LastBlocks() { emulated::chosen_blocks() = nullptr; }
};

/// x holds zeros and a last element of 3.
struct Arrays {
  Arrays() { x.last() = 3; }
  LargeArray x, y;
  LastBlocks blocks;
};

}  // namespace

TEST_CASE("element-wise kernels reach elements beyond 2^31", "[emulated][large]") {
  const Arrays a;
  const auto check_last = [&](float expected) { CHECK(a.y.last() == Approx(expected)); };
  SECTION("activations") {
    activation_forward({LayerKind::relu}, a.x.data(), a.y.data(), Element::f32, kElements, nullptr);
    check_last(3);
    activation_backward({LayerKind::relu}, a.x.data(), a.x.data(), a.y.data(), Element::f32, kElements,
                        nullptr);
    check_last(3);
  }
  SECTION("sums and dropout") {
    sum({a.x.data(), a.x.data()}, a.y.data(), Element::f32, kElements, nullptr);
    check_last(6);
    dropout({.scale = 4}, a.x.data(), a.y.data(), Element::f32, kElements, nullptr);
    check_last(12);
  }
  SECTION("losses") {
    const ElementLossShape shape{
        .squared = true, .weight = kElements, .element = Element::f32, .elements = kElements};
    const LargeArray targets;
    element_loss_backward(shape, a.x.data(), targets.data(), a.y.data(), nullptr);
    check_last(6);
    double loss = 0;
    element_loss_forward(shape, a.x.data(), targets.data(), &loss, nullptr);
    CHECK(loss == Approx(9));
  }
  SECTION("updates") {
    a.y.last() = 10;
    update({.kind = Optimizer::Kind::sgd, .learning_rate = 2, .momentum = 0},
           {a.y.data(), a.x.data(), {}, kElements, 1, 1}, nullptr);
    check_last(4);
  }
}

TEST_CASE("kernels that move elements reach elements beyond 2^31", "[emulated][large]") {
  const Arrays a;
  const auto check_last = [&](float expected) { CHECK(a.y.last() == Approx(expected)); };
  SECTION("conversions") {
    convert(a.x.data(), Element::f32, a.y.data(), Element::f32, kElements, nullptr);
    check_last(3);
  }
  SECTION("boxes") {
    Move move;
    move.size = {1, 1, 1, kRows, kLength};
    move.from_stride = move.to_stride = {0, 0, 0, kLength, 1};
    if (GENERATE(false, true)) move.from_stride = {0, 0, 0, 1, kRows};  // a transposition
    move_elements(move, a.x.data(), a.y.data(), nullptr);
    check_last(3);
  }
  SECTION("segments") {
    const CopySegment all{0, 0, kElements};
    copy_segments({&all, 1, kElements}, a.x.data(), Element::f32, a.y.data(), Element::f32, nullptr);
    check_last(3);
  }
  SECTION("biases") {
    const std::vector<float> bias(64, 5);
    a.y.last() = 3;
    add_bias(a.y.data(), a.y.data(), bias.data(), Element::f32, kElements, GENERATE(1, 2, 4), 64, nullptr);
    check_last(8);
  }
  SECTION("pools and up-sampling") {
    using Five = std::array<std::int64_t, 5>;
    const Five size{497, 132, 1, 256, 128}, strides = GENERATE(Five{132 << 15, 1 << 15, 1 << 15, 128, 1},
                                                               Five{132 << 15, 1, 132 << 15, 132 * 128, 132});
    const PoolShape pool{size, size, strides, strides, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}};
    const LargeArray taps;
    pool_forward(pool, a.x.data(), a.y.data(), taps.data<std::uint16_t>(), Element::f32, nullptr);
    check_last(3);
    a.y.last() = 0;
    pool_backward(pool, a.x.data(), a.y.data(), taps.data<std::uint16_t>(), Element::f32, nullptr);
    check_last(3);
    a.y.last() = 0;
    up_sample_forward({size, strides, strides}, a.x.data(), a.y.data(), Element::f32, nullptr);
    check_last(3);
    a.y.last() = 0;
    up_sample_backward({size, strides, strides}, a.x.data(), a.y.data(), Element::f32, nullptr);
    check_last(3);
  }
  SECTION("rows of a table") {
    const float token = kRows - 1;
    std::vector<float> row(kLength);
    embedding_forward(&token, a.x.data(), row.data(), Element::f32, 1, kLength, nullptr);
    CHECK(row.back() == 3);
    embedding_backward(&token, row.data(), a.y.data(), Element::f32, 1, kLength, nullptr);
    check_last(3);
  }
}

TEST_CASE("kernels of compression reach elements beyond 2^31", "[emulated][large]") {
  const Arrays a;
  constexpr std::int64_t kColumn = 1 << 15;
  std::vector<float> below(kElements / kColumn), above(below);
  const LargeArray signs, residual;
  const OneBitArrays sent{signs.data<std::uint32_t>(), below.data(), above.data()};
  quantize_one_bit(a.x.data(), kElements, kColumn, residual.data(), sent, nullptr);
  CHECK(above.back() == Approx(3.0 / kColumn));
  CHECK(residual.last() == Approx(3 - 3.0 / kColumn));
  restore_one_bit(sent, kElements, kColumn, a.y.data(), nullptr);
  CHECK(a.y.last() == above.back());
  const LargeArray other, halves;
  to_halves_with_feedback(a.x.data(), other.data(), halves.data<std::uint16_t>(), kElements, nullptr);
  from_halves(halves.data<std::uint16_t>(), a.y.data(), kElements, nullptr);
  CHECK(a.y.last() == 3);
}

TEST_CASE("kernels over rows reach elements beyond 2^31", "[emulated][large]") {
  const Arrays a;
  const Rows rows{kRows, kLength, Element::f32};
  const float softmax = std::exp(3.0) / (std::exp(3.0) + kLength - 1);
  SECTION("softmax") {
    softmax_rows(rows, false, a.x.data(), a.y.data(), nullptr);
    CHECK(a.y.last() == Approx(softmax));
    a.y.last() = 1;
    softmax_rows_backward(rows, 1, a.x.data(), a.y.data(), nullptr);  // 3 (1 - 3), as the others are 0
    CHECK(a.y.data()[kElements - 2] == 0);
    CHECK(a.y.last() == Approx(-6));
  }
  SECTION("losses") {
    std::vector<float> targets(kRows, kLength - 1);
    double loss = 0;
    softmax_loss_forward(rows, kRows, a.x.data(), targets.data(), a.y.data(), &loss, nullptr);
    CHECK(a.y.last() == Approx(softmax));
    CHECK(loss == Approx(-std::log(softmax)));
    softmax_loss_backward(rows, kRows, a.x.data(), targets.data(), a.y.data(), nullptr);
    CHECK(a.y.last() == 2);
    std::vector<float> sums(2 * kRows);
    vocab_parallel_sums({rows, 0, kLength}, a.x.data(), targets.data(), a.y.data(), sums.data(), nullptr);
    CHECK(a.y.last() == Approx(std::exp(3.0)));
    CHECK(sums.back() == 3);
    vocab_parallel_backward({rows, 0, kLength}, kRows, a.x.data(), sums.data(), targets.data(), a.y.data(),
                            nullptr);
    CHECK(a.y.last() == Approx(3 / (std::exp(3.0) + kLength - 1) - 1));
  }
  SECTION("layer norm") {
    const std::vector<float> scale(kLength, 1), shift(kLength, 7);
    std::vector<float> mean(kRows), inverse(kRows);
    layer_norm_forward(rows, a.x.data(), scale.data(), shift.data(), a.y.data(), mean.data(), inverse.data(),
                       nullptr);
    CHECK(mean.back() == Approx(3.0 / kLength));
    CHECK(a.y.last() == Approx((3 - 3.0 / kLength) * inverse.back() + 7));
    layer_norm_backward(rows, a.x.data(), a.x.data(), scale.data(), mean.data(), inverse.data(), a.y.data(),
                        nullptr);
    const double normal = (3 - mean.back()) * inverse.back();
    CHECK(a.y.last() ==
          Approx((3 - 3.0 / kLength - normal * 3 * normal / kLength) * inverse.back()).margin(1e-3));
  }
}

TEST_CASE("kernels over channels reach elements beyond 2^31", "[emulated][large]") {
  const Arrays a;
  std::vector<float> memory(1 << 18);
  const Scratch scratch{memory.data(), sizeof(float) * memory.size()};
  SECTION("sums of innermost channels, in packs and one by one") {
    std::vector<float> sums(16), more(33);
    // 128 parts: the last has the last line
    const Scratch few{memory.data(), 128 * 16 * 2 * sizeof(float)},
        wider{memory.data(), 128 * 33 * 2 * sizeof(float)};
    channel_sums({kElements / 16, 16, 1}, a.x.data(), sums.data(), few, nullptr);
    CHECK(sums.back() == 3);
    channel_sums({kElements / 33, 33, 1}, a.x.data(), more.data(), wider, nullptr);
    CHECK(more.back() == 3);
  }
  SECTION("sums of planes") {
    std::vector<float> sums(2048);
    channel_sums({kElements / 2048 / 32, 2048, 32}, a.x.data(), sums.data(), scratch, nullptr);
    CHECK(sums.back() == 3);
  }
  SECTION("normalization") {
    const Channels shape = GENERATE(Channels{kElements / 64, 64, 1}, Channels{497, 132, 1 << 15});
    const std::size_t channels = shape.channels;
    const std::vector<float> ones(channels, 1), zeros(channels);
    std::vector<float> mean(channels), inverse(channels), sums(2 * channels, 0);
    std::fill(sums.begin() + shape.channels, sums.end(), 4.F);  // of x^2: a variance of 4
    const BatchNormArrays arrays{ones.data(), zeros.data(), mean.data(), inverse.data()};
    synchronized_batch_norm_forward(shape, arrays, sums.data(), 1, a.x.data(), a.y.data(), nullptr);
    CHECK(a.y.last() == Approx(1.5).epsilon(1e-4));
    std::fill(sums.begin(), sums.end(), 0.F);
    synchronized_batch_norm_backward(shape, arrays, sums.data(), 1, a.x.data(), a.x.data(), a.y.data(),
                                     nullptr);
    CHECK(a.y.last() == Approx(1.5).epsilon(1e-4));
  }
}

}  // namespace stepcast::test
