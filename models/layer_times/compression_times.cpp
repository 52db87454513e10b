#include "models/layer_times/compression_times.hpp"

#include <fmt/format.h>

#include "models/cost/roofline.hpp"
#include "models/layer_times/trace.hpp"
#include "models/layer_times/trace_text.hpp"

namespace stepcast {
namespace {

std::vector<double> read_times(const YamlValue& value) {
  std::vector<double> times;
  for (const YamlValue& time : value.list()) times.push_back(time.number(0, 1));
  if (times.empty()) value.expected("at least one time");
  return times;
}

PassSamples read_samples(const YamlValue& value) {
  const YamlMap map = read_map(value, byte_times_keys());
  return {read_times(map.at("seconds_per_byte", "a list of seconds a byte")),
          read_times(map.at("cpu_seconds_per_byte", "a list of seconds a byte"))};
}

CompressionTrace::Codec read_codec(const YamlValue& value) {
  const YamlMap map = read_map(value, codec_keys());
  CompressionTrace::Codec codec;
  const YamlValue name = map.at("name", "one_bit, fp16 or top_k");
  codec.kind = static_cast<Compression>(name.one_of(compression_names()));
  if (codec.kind == Compression::none) name.expected("one_bit, fp16 or top_k");
  codec.quantize = read_samples(map.at("quantize", "a mapping with seconds_per_byte"));
  codec.restore = read_samples(map.at("restore", "a mapping with seconds_per_byte"));
  return codec;
}

}  // namespace

const std::vector<std::string>& compression_names() {
  static const std::vector<std::string> names{"none", "one_bit", "fp16", "top_k"};
  return names;
}

CompressionTrace read_compression(const YamlValue& value) {
  const YamlMap map = read_map(value, compression_file_keys());
  CompressionTrace trace;
  trace.name = map.at("name", "a name").text();
  trace.device = map.at("device", "the processor").text();
  trace.threads = static_cast<int>(map.at("threads", "an integer >= 1").integer(1, 4096));
  trace.date = map.at("date", "a date").text();
  trace.command = map.at("command", "the command that made the file").text();
  trace.source = map.at("source", "how the times were obtained").text();
  trace.gradient_bytes = map.at("gradient_bytes", "bytes").number(1);
  trace.rows = map.at("rows", "an integer >= 1").integer(1);
  trace.density = map.at("density", "a share").number(0, 1);
  trace.copy = read_samples(map.at("copy", "a mapping with seconds_per_byte"));
  const YamlValue codecs = map.at("codecs", "a list of codecs");
  for (const YamlValue& codec : codecs.list()) trace.codecs.push_back(read_codec(codec));
  if (trace.codecs.size() + 1 != compression_names().size()) codecs.expected("one_bit, fp16 and top_k");
  return trace;
}

CompressionCost cost_of(const CompressionTrace& trace, Compression kind) {
  for (const auto& codec : trace.codecs) {
    if (codec.kind == kind) {
      return {median(codec.quantize.cpu_seconds).value, median(codec.restore.cpu_seconds).value};
    }
  }
  return {};
}

CompressionCost derived_cost(const CompressionTrace& trace, Compression kind, const Device& device) {
  const CompressionCost measured = cost_of(trace, kind);
  const double copy = 2 / (kStreamingShare * device.memory_bandwidth.value);
  const double factor = copy / median(trace.copy.cpu_seconds).value;
  return {factor * measured.quantize, factor * measured.restore};
}

namespace {

std::string samples(const PassSamples& pass) {
  return fmt::format("{{seconds_per_byte: {}, cpu_seconds_per_byte: {}}}", numbers(pass.seconds),
                     numbers(pass.cpu_seconds));
}

std::string name_of(Compression kind) {
  return compression_names()[static_cast<std::size_t>(kind)];
}

std::string table_line(const std::string& what, const PassSamples& pass) {
  const double seconds = median(pass.seconds).value, cpu = median(pass.cpu_seconds).value;
  return fmt::format("{:<18} {:8.3f} ns/B wall {:8.3f} ns/B CPU {:8.2f} GB/s\n", what, 1e9 * seconds,
                     1e9 * cpu, 1e-9 / seconds);
}

}  // namespace

std::string to_yaml(const CompressionTrace& trace) {
  std::string text = fmt::format("name: {}\ndevice: {}\nthreads: {}\ndate: {}\n", quoted(trace.name),
                                 quoted(trace.device), trace.threads, quoted(trace.date));
  text += fmt::format("command: {}\nsource: {}\n", quoted(trace.command), quoted(trace.source));
  text += fmt::format("gradient_bytes: {:.0f}\nrows: {}\ndensity: {:g}\ncopy: {}\ncodecs:\n",
                      trace.gradient_bytes, trace.rows, trace.density, samples(trace.copy));
  for (const auto& codec : trace.codecs) {
    text += fmt::format("  - name: {}\n    quantize: {}\n    restore: {}\n", name_of(codec.kind),
                        samples(codec.quantize), samples(codec.restore));
  }
  return text;
}

std::string compression_table(const CompressionTrace& trace) {
  std::string text = table_line("copy", trace.copy);
  for (const auto& codec : trace.codecs) {
    text += table_line(name_of(codec.kind) + " quantize", codec.quantize);
    text += table_line(name_of(codec.kind) + " restore", codec.restore);
  }
  return text;
}

namespace {

constexpr const char* kBeside = " beside ";

}  // namespace

std::string beside_device(const std::string& processor, const std::string& device) {
  return processor + kBeside + device;
}

bool is_beside_device(const CompressionTrace& trace) {
  return trace.device.find(kBeside) != std::string::npos;
}

}  // namespace stepcast
