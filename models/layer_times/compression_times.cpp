#include "models/layer_times/compression_times.hpp"

#include <fmt/format.h>

#include "core/fields.hpp"
#include "core/yaml.hpp"
#include "models/cost/roofline.hpp"
#include "models/layer_times/trace.hpp"

namespace stepcast {
namespace {

/// Times of at least one step.
Form<std::vector<double>> byte_times() {
  Form<std::vector<double>> form = numbers(0, 1);
  form.read = [read = form.read](const YamlValue& value) {
    std::vector<double> times = read(value);
    if (times.empty()) value.expected("at least one time");
    return times;
  };
  return form;
}

const Fields<PassSamples>& byte_time_fields() {
  static const Fields<PassSamples> fields{
      field("seconds_per_byte", &PassSamples::seconds, byte_times(), required("a list of seconds a byte"),
            "wall time per byte of fp32 gradient, in seconds"),
      field("cpu_seconds_per_byte", &PassSamples::cpu_seconds, byte_times(),
            required("a list of seconds a byte"), "CPU time per byte of fp32 gradient, in seconds")};
  return fields;
}

const Default& samples_needed() {
  static const Default needed = required("a mapping with seconds_per_byte");
  return needed;
}

const Fields<CompressionTrace::Codec>& codec_fields() {
  using Codec = CompressionTrace::Codec;
  static const Fields<Codec> fields{field("name", &Codec::kind,
                                          choice<Compression>({{"one_bit", Compression::one_bit},
                                                               {"fp16", Compression::fp16},
                                                               {"top_k", Compression::top_k}}),
                                          required("one_bit, fp16 or top_k"), "the compression"),
                                    field("quantize", &Codec::quantize, mapping<byte_time_fields>(),
                                          samples_needed(), "times before a gradient is sent"),
                                    field("restore", &Codec::restore, mapping<byte_time_fields>(),
                                          samples_needed(), "times after a gradient has arrived")};
  return fields;
}

const Fields<CompressionTrace>& file_fields() {
  using File = CompressionTrace;
  static const Fields<File> fields{
      field("name", &File::name, text(), required("a name"), "name of the file"),
      field("device", &File::device, text(), required("the processor"), "the processor"),
      field("threads", &File::threads, integer(1, 4096), required("an integer >= 1"),
            "threads of the kernels"),
      field("date", &File::date, text(), required("a date"), "when the file was made"),
      field("command", &File::command, text(), required("the command that made the file"),
            "command that made the file"),
      field("source", &File::source, text(), required("how the times were obtained"),
            "how the times were obtained"),
      field("gradient_bytes", &File::gradient_bytes, number(1), required("bytes"),
            "size of the measured gradient, in bytes"),
      field("rows", &File::rows, integer(1), required("an integer >= 1"), "`one_bit`: elements of a column"),
      field("density", &File::density, number(0, 1), required("a share"), "`top_k`: share of the elements"),
      field("copy", &File::copy, mapping<byte_time_fields>(), samples_needed(), "times of a plain copy"),
      field("codecs", &File::codecs, list_of<codec_fields>(), required("a list of codecs"),
            "times of `one_bit`, `fp16` and `top_k`, each once")};
  return fields;
}

}  // namespace

const Words<Compression>& compression_words() {
  static const Words<Compression> words{{"none", Compression::none},
                                        {"one_bit", Compression::one_bit},
                                        {"fp16", Compression::fp16},
                                        {"top_k", Compression::top_k}};
  return words;
}

const Keys& compression_file_keys() {
  return file_fields().keys();
}

CompressionTrace read_compression(const YamlValue& value) {
  CompressionTrace trace;
  const YamlMap map = read_mapping(value, file_fields(), trace);
  if (trace.codecs.size() + 1 != compression_words().names().size())
    map.at("codecs").expected("one_bit, fp16 and top_k");
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
  return fmt::format("{{seconds_per_byte: {}, cpu_seconds_per_byte: {}}}", yaml_numbers(pass.seconds),
                     yaml_numbers(pass.cpu_seconds));
}

std::string name_of(Compression kind) {
  return compression_words().of(kind);
}

std::string table_line(const std::string& what, const PassSamples& pass) {
  const double seconds = median(pass.seconds).value, cpu = median(pass.cpu_seconds).value;
  return fmt::format("{:<18} {:8.3f} ns/B wall {:8.3f} ns/B CPU {:8.2f} GB/s\n", what, 1e9 * seconds,
                     1e9 * cpu, 1e-9 / seconds);
}

}  // namespace

std::string to_yaml(const CompressionTrace& trace) {
  std::string text = fmt::format("name: {}\ndevice: {}\nthreads: {}\ndate: {}\n", yaml_quoted(trace.name),
                                 yaml_quoted(trace.device), trace.threads, yaml_quoted(trace.date));
  text += fmt::format("command: {}\nsource: {}\n", yaml_quoted(trace.command), yaml_quoted(trace.source));
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
