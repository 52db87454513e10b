#include "kernels/cudnn/capture/kernel_probes.hpp"

#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/cuda/optimizer_updates.hpp"
#include "kernels/cudnn/cuda/rows.hpp"
#include "kernels/cudnn/cuda/sums.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"

namespace stepcast::cudnn {
namespace {

constexpr std::int64_t kChannels = 256, kSide = 16, kLength = 1024, kTokens = 64;

float* floats(const std::shared_ptr<void>& memory) {
  return static_cast<float*>(memory.get());
}

/// Arrays that the kernels read and write.
struct Arrays {
  Arrays(std::shared_ptr<Device> of, std::int64_t elements)
      : device(std::move(of)), n(elements), element(device->element()) {
    for (auto* one : {&x, &dy, &y, &first, &second}) *one = memory(n);
    for (const auto* drawn : {&x, &dy}) device->draw(drawn->get(), n * bytes_of(element), element);
    for (auto* one : {&scale, &shift, &mean, &inverse, &sums}) *one = memory(kLength);
    for (auto* one : {&row_mean, &row_inverse, &tokens}) *one = memory(rows());
    std::vector<float> numbers;  // each row once, in an order that no cache foresees
    for (std::int64_t i = 0; i < rows(); ++i) numbers.push_back(i * 7919 % rows());
    upload(numbers, floats(tokens), stream());
  }

  std::shared_ptr<void> memory(std::int64_t floats) const {
    return allocate_bytes(floats * sizeof(float), stream());
  }
  std::int64_t rows() const { return n / kLength; }
  cudaStream_t stream() const { return device->stream.get(); }
  Scratch scratch() const { return {device->workspace.data(), device->workspace.bytes}; }
  BatchNormArrays norm() const { return {floats(scale), floats(shift), floats(mean), floats(inverse)}; }
  UpdateArrays updated() const {
    return {floats(y), floats(dy), {floats(first), floats(second)}, static_cast<std::size_t>(n)};
  }

  std::shared_ptr<Device> device;
  std::int64_t n;
  Element element;
  std::shared_ptr<void> x, dy, y, first, second;  ///< n floats each
  std::shared_ptr<void> scale, shift, mean, inverse, sums, row_mean, row_inverse, tokens;
};

/// A pool as ResNet's: windows of 3 x 3, every second place.
PoolShape overlapping_pool(std::int64_t elements, bool innermost) {
  constexpr std::int64_t kDepth = 64, kIn = 32, kOut = kIn / 2;
  const std::int64_t images = elements / kDepth / kIn / kIn;
  const auto strides = [innermost](std::int64_t side) -> std::array<std::int64_t, 5> {
    const std::int64_t plane = side * side, image = kDepth * plane;
    if (innermost) return {image, 1, image, side * kDepth, kDepth};
    return {image, plane, plane, side, 1};
  };
  return {.in = {images, kDepth, 1, kIn, kIn},
          .out = {images, kDepth, 1, kOut, kOut},
          .in_stride = strides(kIn),
          .out_stride = strides(kOut),
          .kernel = {1, 3, 3},
          .stride = {1, 2, 2},
          .pad = {0, 1, 1}};
}

class Probes {
 public:
  explicit Probes(std::shared_ptr<const Arrays> arrays) : arrays_(std::move(arrays)) {}

  std::vector<KernelProbe> all() {
    add_element_wise();
    add_norms();
    add_rows();
    add_moves();
    add_pools();
    add_tokens();
    add_updates();
    return std::move(list_);
  }

 private:
  /// @param bytes_each  bytes that the kernel moves for each of the n elements
  template <class Call>
  void add(const std::string& name, double bytes_each, const Call& call) {
    list_.push_back({name, bytes_each * arrays_->n, [arrays = arrays_, call] { call(*arrays); }});
  }

  /// Bytes of this many elements.
  double elements(int count) const { return count * static_cast<double>(bytes_of(arrays_->element)); }

  void add_element_wise() {
    constexpr Activation kRelu{LayerKind::relu, 0};
    add("relu", elements(2), [kRelu](const Arrays& p) {
      activation_forward(kRelu, p.x.get(), p.y.get(), p.element, p.n, p.stream());
    });
    add("relu, backward", elements(3), [kRelu](const Arrays& p) {
      activation_backward(kRelu, p.x.get(), p.dy.get(), p.y.get(), p.element, p.n, p.stream());
    });
    add("sum of two", elements(3), [](const Arrays& p) {
      sum({p.x.get(), p.dy.get()}, p.y.get(), p.element, p.n, p.stream());
    });
    add("dropout", elements(2), [](const Arrays& p) {
      dropout({.key = 1, .threshold = 1u << 31, .scale = 2}, p.x.get(), p.y.get(), p.element, p.n,
              p.stream());
    });
    add("bias", elements(2), [](const Arrays& p) {
      add_bias(p.y.get(), p.y.get(), floats(p.shift), p.element, p.n, 1, kChannels, p.stream());
    });
  }

  void add_norms() {
    const std::int64_t n = arrays_->n;
    const Element element = arrays_->element;
    for (const bool innermost : {true, false}) {
      const Channels shape = innermost
                                 ? Channels{n / kChannels, kChannels, 1, element}
                                 : Channels{n / kChannels / kSide / kSide, kChannels, kSide * kSide, element};
      const std::string layout = innermost ? ", NHWC" : ", NCHW";
      add("batch norm" + layout, elements(3), [shape](const Arrays& p) {
        batch_norm_forward(shape, p.norm(), p.x.get(), p.y.get(), p.scratch(), p.stream());
      });
      add("batch norm, backward" + layout, elements(5), [shape](const Arrays& p) {
        batch_norm_backward(shape, p.norm(), p.x.get(), p.dy.get(), p.y.get(), floats(p.first),
                            floats(p.second), p.scratch(), p.stream());
      });
      add_norm_with_relu(shape, layout);
    }
  }

  void add_norm_with_relu(const Channels& shape, const std::string& layout) {
    for (const bool adds : {false, true}) {
      const std::string name = adds ? "batch norm, sum and ReLU" : "batch norm and ReLU";
      const auto arrays = [adds](const Arrays& p) {
        return NormReluArrays{p.x.get(),  adds ? p.dy.get() : nullptr,    p.y.get(),
                              p.dy.get(), adds ? p.first.get() : nullptr, p.second.get()};
      };
      add(name + layout, elements(adds ? 4 : 3), [shape, arrays](const Arrays& p) {
        batch_norm_relu_forward(shape, p.norm(), arrays(p), p.scratch(), p.stream());
      });
      add(name + ", backward" + layout, elements(adds ? 7 : 5), [shape, arrays](const Arrays& p) {
        batch_norm_relu_backward(shape, p.norm(), arrays(p), floats(p.sums), floats(p.sums) + kChannels,
                                 p.scratch(), p.stream());
      });
    }
  }

  void add_rows() {
    const Rows rows{arrays_->rows(), kLength, arrays_->element};
    add("softmax of rows", elements(2),
        [rows](const Arrays& p) { softmax_rows(rows, false, p.x.get(), p.y.get(), p.stream()); });
    add("layer norm", elements(2), [rows](const Arrays& p) {
      layer_norm_forward(rows, p.x.get(), floats(p.scale), floats(p.shift), p.y.get(), floats(p.row_mean),
                         floats(p.row_inverse), p.stream());
    });
    add("layer norm, backward", elements(3), [rows](const Arrays& p) {
      layer_norm_backward(rows, p.x.get(), p.dy.get(), floats(p.scale), floats(p.row_mean),
                          floats(p.row_inverse), p.y.get(), p.stream());
    });
    add("layer norm, parameters", elements(2), [rows](const Arrays& p) {
      layer_norm_parameters({rows.count, rows.length, 1, rows.element}, p.x.get(), p.dy.get(),
                            floats(p.row_mean), floats(p.row_inverse), floats(p.first), floats(p.second),
                            p.scratch(), p.stream());
    });
  }

  void add_moves() {
    const std::int64_t images = arrays_->n / kChannels / kSide / kSide;
    Move move{.from_element = arrays_->element, .to_element = arrays_->element};
    move.size = {1, 1, images, kChannels, kSide * kSide};
    move.from_stride = {0, 0, kChannels * kSide * kSide, kSide * kSide, 1};
    move.to_stride = {0, 0, kChannels * kSide * kSide, 1, kChannels};
    add("NCHW to NHWC", elements(2),
        [move](const Arrays& p) { move_elements(move, p.x.get(), p.y.get(), p.stream()); });
    add("fp32 to the precision", sizeof(float) + elements(1),
        [](const Arrays& p) { convert(p.first.get(), Element::f32, p.y.get(), p.element, p.n, p.stream()); });
  }

  void add_pools() {
    for (const bool innermost : {true, false}) {
      const PoolShape pool = overlapping_pool(arrays_->n, innermost);
      const std::string layout = innermost ? ", NHWC" : ", NCHW";
      const double bytes = elements(1) + (elements(1) + sizeof(std::uint16_t)) / 4;  // y has a quarter
      const auto taps = [](const Arrays& p) { return static_cast<std::uint16_t*>(p.second.get()); };
      add("max pool" + layout, bytes, [pool, taps](const Arrays& p) {
        pool_forward(pool, p.x.get(), p.y.get(), taps(p), p.element, p.stream());
      });
      add("max pool, backward" + layout, bytes, [pool, taps](const Arrays& p) {
        pool_backward(pool, p.dy.get(), p.y.get(), taps(p), p.element, p.stream());
      });
    }
  }

  void add_tokens() {
    add("embedding", sizeof(float) + elements(1), [](const Arrays& p) {
      embedding_forward(floats(p.tokens), floats(p.first), p.y.get(), p.element, p.rows(), kLength,
                        p.stream());
    });
    add("embedding, backward", 2 * sizeof(float) + elements(1), [](const Arrays& p) {
      embedding_backward(floats(p.tokens), p.dy.get(), floats(p.second), p.element, p.rows(), kLength,
                         p.stream());
    });
    constexpr std::int64_t kTable = kTokens * kLength;
    add("position embedding", elements(2), [](const Arrays& p) {
      add_bias(p.x.get(), p.y.get(), floats(p.first), p.element, p.n, 1, kTable, p.stream());
    });
    add("position embedding, table", elements(1), [](const Arrays& p) {
      channel_sums({p.n / kTable, kTable, 1, p.element}, p.dy.get(), floats(p.first), p.scratch(),
                   p.stream());
    });
  }

  void add_updates() {
    add("SGD with momentum", 5 * sizeof(float), [](const Arrays& p) {
      update({.kind = Optimizer::Kind::sgd, .momentum = 0.9}, p.updated(), p.stream());
    });
    add("Adam", 7 * sizeof(float), [](const Arrays& p) {
      update({.kind = Optimizer::Kind::adam, .momentum = 0.9}, p.updated(), p.stream());
    });
    add("fp16 with error feedback", 3 * sizeof(float) + 2, [](const Arrays& p) {
      to_halves_with_feedback(floats(p.dy), floats(p.first), static_cast<std::uint16_t*>(p.y.get()), p.n,
                              p.stream());
    });
  }

  std::shared_ptr<const Arrays> arrays_;
  std::vector<KernelProbe> list_;
};

}  // namespace

std::vector<KernelProbe> kernel_probes(const std::shared_ptr<Device>& device, std::int64_t elements) {
  return Probes(std::make_shared<Arrays>(device, elements)).all();
}

double memory_bandwidth(int device) {
  int kilohertz = 0, bits = 0;
  check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device), "cudaDeviceGetAttribute");
  return 2 * 1e3 * kilohertz * (bits / 8.0);  // two transfers a clock
}

}  // namespace stepcast::cudnn
