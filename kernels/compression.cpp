#include "kernels/compression.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <span>

#include "core/random.hpp"
#include "kernels/processor.hpp"
#include "kernels/stopwatch.hpp"
#include "models/compression_beside.hpp"
#include "strategies/arithmetic/half.hpp"
#include "strategies/arithmetic/one_bit.hpp"
#include "strategies/arithmetic/top_k.hpp"

namespace stepcast {
namespace {

/// A gradient of the host, or what the host has of one that lies on a device.
struct Gradient {
  std::vector<float> own;
  std::shared_ptr<float> here, there;
  std::span<float> values;

  Gradient(const std::vector<float>& from, DeviceMemory* device) : own(from), values(own) {
    if (device == nullptr) return;
    here = device->host_memory(own.size());
    there = device->allocate(own.size());
    device->wait(device->mark());  // it zeroes it first
    values = {here.get(), own.size()};
    std::copy(own.begin(), own.end(), here.get());
    device->to_device(here.get(), there.get(), own.size());
  }
  Gradient(const Gradient&) = delete;
};

/// Arrays that a repeat works on.
struct Buffers {
  DeviceMemory* device;
  Gradient gradient, restored;
  std::vector<float> owed_before, owed, scratch;
  std::vector<std::uint16_t> halves;
  OneBitGradient bits;
  SparseGradient sparse;
};

std::vector<float> gaussian(std::size_t count, std::uint32_t salt) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(normal({1, Purpose::data, salt, 0, static_cast<std::uint32_t>(i)}));
  }
  return values;
}

Buffers buffers_of(const CompressionCapture& options) {
  const std::vector<float> owed = gaussian(options.elements, 1);
  DeviceMemory* const device = options.beside.memory;
  return {.device = device,
          .gradient = {gaussian(options.elements, 0), device},
          .restored = {owed, device},
          .owed_before = owed,
          .owed = owed,
          .scratch = owed,
          .halves = std::vector<std::uint16_t>(options.elements),
          .bits = {},
          .sparse = {}};
}

/// Seconds a byte of gradient of one call, added to `samples`.
void time(const std::function<void()>& call, std::size_t elements, PassSamples& samples) {
  const double bytes = 4.0 * static_cast<double>(elements);
  const Instant begin = now();
  call();
  const Instant end = now();
  samples.seconds.push_back((end.wall - begin.wall) / bytes);
  samples.cpu_seconds.push_back((end.cpu - begin.cpu) / bytes);
}

/// The same of what works on a gradient, with its way from the device and back.
void time(const std::function<void()>& call, const Buffers& b, const Gradient& gradient,
          PassSamples& samples) {
  const std::size_t elements = gradient.values.size();
  time(call, elements, samples);
  if (b.device == nullptr) return;
  const double bytes = 4.0 * static_cast<double>(elements);
  const Instant begin = now();
  b.device->to_host(b.device->mark(), gradient.there.get(), gradient.here.get(), elements);
  b.device->to_device(gradient.here.get(), gradient.there.get(), elements);
  const double copies = (now().wall - begin.wall) / bytes;
  samples.seconds.back() += copies;
  samples.cpu_seconds.back() += copies;
}

void time_codec(const CompressionCapture& options, Buffers& b, CompressionTrace::Codec& codec) {
  const auto count =
      static_cast<std::size_t>(std::ceil(options.density * static_cast<double>(options.elements)));
  std::function<void()> quantize, restore;
  if (codec.kind == Compression::one_bit) {
    quantize = [&] { quantize_one_bit(b.gradient.values, options.rows, b.owed, b.bits); };
    restore = [&] { restore_one_bit(b.bits, b.restored.values); };
  } else if (codec.kind == Compression::fp16) {
    quantize = [&] { to_halves_with_feedback(b.gradient.values, b.owed, b.halves); };
    restore = [&] { from_halves(b.halves, b.restored.values); };
  } else {
    quantize = [&, count] { select_top_k(b.gradient.values, count, b.owed, b.scratch, b.sparse); };
    restore = [&] { restore_top_k(b.sparse, b.restored.values); };
  }
  b.owed = b.owed_before;
  time(quantize, b, b.gradient, codec.quantize);
  time(restore, b, b.restored, codec.restore);
}

CompressionTrace described(const CompressionCapture& options) {
  const auto today = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  CompressionTrace trace;
  trace.name = options.name;
  trace.device = fmt::format("{} (1 used)", processor_name());
  trace.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(today));
  trace.command = options.command;
  trace.source =
      "stepcast capture-compression: a random gradient with error feedback, the clocks read around each "
      "kernel "
      "(wall: CLOCK_MONOTONIC, CPU: CLOCK_PROCESS_CPUTIME_ID)";
  if (options.beside.memory != nullptr) {
    trace.device = beside_device(trace.device, options.beside.name);
    trace.source += "; the copies of the gradient from the device and back are in both clocks";
  }
  trace.gradient_bytes = 4.0 * static_cast<double>(options.elements);
  trace.rows = static_cast<std::int64_t>(options.rows);
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
  for (int repeat = -1; repeat < options.repeats; ++repeat) {
    CompressionTrace& into = repeat < 0 ? warm_up : trace;
    const auto copy = [&] { std::ranges::copy(buffers.gradient.values, buffers.restored.values.begin()); };
    time(copy, options.elements, into.copy);
    for (auto& codec : into.codecs) time_codec(options, buffers, codec);
  }
  return trace;
}

}  // namespace stepcast
