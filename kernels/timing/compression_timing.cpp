#include "kernels/timing/compression_timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>

#include "core/random.hpp"
#include "core/text.hpp"
#include "kernels/timing/host_info.hpp"
#include "kernels/timing/step_timer.hpp"
#include "models/layer_times/compression_times.hpp"
#include "strategies/arithmetic/compressed_values.hpp"

namespace stepcast {
namespace {

/// A gradient in the host's memory, with a second copy on the device if there is one.
struct GradientMemory {
  std::vector<float> own_values;
  std::shared_ptr<float> host, on_device;
  std::span<float> values;

  GradientMemory(const std::vector<float>& from, DeviceMemory* device)
      : own_values(from), values(own_values) {
    if (device == nullptr) return;
    host = device->host_memory(own_values.size());
    on_device = device->allocate(own_values.size());
    device->wait(device->record_event());  // the device zeroes new memory
    values = {host.get(), own_values.size()};
    std::copy(own_values.begin(), own_values.end(), host.get());
    device->to_device(host.get(), on_device.get(), own_values.size());
  }
  GradientMemory(const GradientMemory&) = delete;
};

constexpr std::size_t kHalves = 2048;  // elements that real runs convert together, within the caches

/// Arrays that one repetition works on.
struct Buffers {
  GradientMemory gradient, restored;
  std::vector<float> copy;
  std::vector<std::uint32_t> candidates;
  std::vector<std::uint16_t> halves, sent_halves;
  OneBitGradient bits;
  SparseGradient sparse;
};

std::vector<float> gaussian(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = normal({1, Purpose::data, 0, 0, static_cast<std::uint32_t>(i)});
  }
  return values;
}

Buffers buffers_of(const CompressionCapture& options) {
  const std::vector<float> values = options.next_gradient ? std::vector<float>{} : gaussian(options.elements);
  return {.gradient = {values, options.device.memory},
          .restored = {values, options.device.memory},
          .copy = std::vector<float>(options.elements),
          .candidates = {},
          .halves = std::vector<std::uint16_t>(kHalves),
          .sent_halves = std::vector<std::uint16_t>(options.elements),
          .bits = {},
          .sparse = {}};
}

void train(const CompressionCapture& options, Buffers& b) {
  if (options.next_gradient) b.gradient.values = b.restored.values = options.next_gradient();
}

/// Times one call and adds its seconds per byte of gradient to `samples`.
void time(const std::function<void()>& call, std::size_t elements, PassSamples& samples) {
  const double bytes = 4.0 * elements;
  const Instant begin = now();
  call();
  const Instant end = now();
  samples.seconds.push_back((end.wall - begin.wall) / bytes);
  samples.cpu_seconds.push_back((end.cpu - begin.cpu) / bytes);
}

/// Times one call on a gradient, including its copies from the device and back.
void time(const std::function<void()>& call, DeviceMemory* device, const GradientMemory& gradient,
          PassSamples& samples) {
  const std::size_t elements = gradient.values.size();
  time(call, elements, samples);
  if (device == nullptr) return;
  const double bytes = 4.0 * elements;
  const Instant begin = now();
  device->to_host(device->record_event(), gradient.on_device.get(), gradient.host.get(), elements);
  device->to_device(gradient.host.get(), gradient.on_device.get(), elements);
  const double copies = (now().wall - begin.wall) / bytes;
  samples.seconds.back() += copies;
  samples.cpu_seconds.back() += copies;
}

void quantize_to_halves(Buffers& b, std::span<float> residual) {
  for (std::size_t begin = 0; begin < residual.size(); begin += kHalves) {
    const std::size_t count = std::min(kHalves, residual.size() - begin);
    const auto block = std::span(b.halves).first(count);
    to_halves_with_feedback(b.gradient.values.subspan(begin, count), residual.subspan(begin, count), block);
    std::ranges::copy(block, b.sent_halves.begin() + begin);
  }
}

void restore_from_halves(Buffers& b) {
  const std::span<float> values = b.restored.values;
  for (std::size_t begin = 0; begin < values.size(); begin += kHalves) {
    const std::size_t count = std::min(kHalves, values.size() - begin);
    const auto block = std::span(b.halves).first(count);
    std::ranges::copy(std::span(b.sent_halves).subspan(begin, count), block.begin());
    from_halves(block, values.subspan(begin, count));
  }
}

/// @param residual  error of this codec, which stays from repetition to repetition
void time_codec(const CompressionCapture& options, Buffers& b, std::span<float> residual,
                CompressionTrace::Codec& codec) {
  const std::size_t count = std::ceil(options.density * options.elements);
  std::function<void()> quantize, restore;
  if (codec.kind == Compression::one_bit) {
    quantize = [&] { quantize_one_bit(b.gradient.values, options.rows, residual, b.bits); };
    restore = [&] { restore_one_bit(b.bits, b.restored.values); };
  } else if (codec.kind == Compression::fp16) {
    quantize = [&] { quantize_to_halves(b, residual); };
    restore = [&] { restore_from_halves(b); };
  } else {
    quantize = [&, count] { select_top_k(b.gradient.values, count, residual, b.candidates, b.sparse); };
    restore = [&] { restore_top_k(b.sparse, b.restored.values); };
  }
  train(options, b);
  time(quantize, options.device.memory, b.gradient, codec.quantize);
  time(restore, options.device.memory, b.restored, codec.restore);
}

CompressionTrace described(const CompressionCapture& options) {
  CompressionTrace trace;
  trace.name = options.name;
  trace.device = fmt::format("{} (1 used)", processor_name());
  trace.date = today();
  trace.command = options.command;
  trace.source = fmt::format(
      "stepcast capture-compression: {} with error feedback, the clocks read around each kernel (wall: "
      "CLOCK_MONOTONIC, CPU: CLOCK_PROCESS_CPUTIME_ID)",
      options.next_gradient ? "the gradients of backward passes" : "a random gradient");
  if (options.device.memory != nullptr) {
    trace.device = beside_device(trace.device, options.device.name);
    trace.source += "; the copies of the gradient from the device and back are in both clocks";
  }
  trace.gradient_bytes = 4.0 * options.elements;
  trace.rows = options.rows;
  trace.density = options.density;
  for (const auto kind : {Compression::one_bit, Compression::fp16, Compression::top_k}) {
    trace.codecs.push_back({kind, {}, {}});
  }
  return trace;
}

}  // namespace

CompressionTrace capture_compression(const CompressionCapture& options) {
  CompressionTrace trace = described(options), warm_up = trace;
  Buffers buffers = buffers_of(options);
  std::vector<std::vector<float>> residuals(trace.codecs.size(), std::vector<float>(options.elements));
  for (int repeat = -1; repeat < options.repeats; ++repeat) {
    CompressionTrace& into = repeat < 0 ? warm_up : trace;
    train(options, buffers);
    const auto copy = [&] { std::ranges::copy(buffers.gradient.values, buffers.copy.begin()); };
    time(copy, options.elements, into.copy);
    for (std::size_t i = 0; i < residuals.size(); ++i)
      time_codec(options, buffers, residuals[i], into.codecs[i]);
  }
  return trace;
}

}  // namespace stepcast
