// Readers of what other programs wrote. The first byte says which one.
#include <stdexcept>

#include "data/train_and_test.hpp"
#include "models/hugging_face/network_text.hpp"
#include "models/network/model.hpp"
#include "models/pytorch_profile/profile.hpp"
#include "platforms/discovery/discovered.hpp"
#include "report/results/results.hpp"
#include "tests/fuzz/input.hpp"
#include "validate/compare/point_comparison.hpp"
#include "validate/measure/benchmark_readers.hpp"
#include "validate/measure/link_results.hpp"

using namespace stepcast;

namespace {

/// As `calibrate --from` writes it.
std::string platform_of(const BenchmarkTimes& benchmark) {
  MeasuredPlatform platform;
  platform.name = "input";
  platform.source = benchmark.what + " in input.txt";
  platform.cluster.kind = Cluster::Kind::netcluster;
  platform.cluster.ranks = std::max(2, benchmark.ranks);
  platform.links = fitted_link_table(benchmark.times);
  return platform_text(platform);
}

void read_written(const std::string& text) {
  try {
    const YamlNode root = parse_yaml(text, "written.yaml");
    read_platform(YamlValue(root, ""), {});
  } catch (const InputError& error) {
    throw std::logic_error(error.what() + ("\n" + text));
  }
}

void benchmark(const std::string& text) {
  for (const char* name : {"input.txt", "all_reduce_perf.txt"}) {
    std::string written;
    refuses_or_reads([&] { written = platform_of(read_benchmark(text, name, 2)); });
    if (!written.empty()) read_written(written);
  }
}

void csv(const std::string& text) {
  const Results results = read_csv(text, "input.csv");
  summary_lines(compare_points(results, results));
  const std::string once = to_csv(results);
  if (to_csv(read_csv(once, "again.csv")) != once)
    throw std::logic_error("written again it differs: " + once);
}

void json_lines(const std::string& text) {
  const Results results = read_json_lines(text, "input.jsonl");
  const std::string once = to_json_lines(results);
  if (to_json_lines(read_json_lines(once, "again.jsonl")) != once)
    throw std::logic_error("written again it differs: " + once);
}

void all_samples(const Dataset& data, const SampleForm& form) {
  std::vector<float> input(sample_numbers(form.input)), targets(sample_numbers(form.targets));
  for (std::int64_t sample = 0; sample < data.samples(); ++sample)
    refuses_or_reads([&] { data.read(sample, input, targets); });
}

/// Images up to the first of the labels' magic numbers.
void idx(const std::string& text) {
  const SampleForm form{{1, 2, 3}, {1}, 10};
  const std::size_t cut = std::min(text.find(std::string("\0\0\x08\x01", 4), 4), text.size());
  const MemoryFile images(text.substr(0, cut)), labels(text.substr(cut));
  all_samples(*idx_files(images.name(), labels.name(), form), form);
}

void records(const std::string& text) {
  const MemoryFile file(text);
  const SampleForm image{{3, 32, 32}, {1}, 10}, vector{{4}, {1}, 3}, number{{2}, {1}, 0};
  refuses_or_reads([&] { all_samples(*cifar10_files({file.name()}, image), image); });
  for (const SampleForm& form : {vector, number})
    refuses_or_reads([&] { all_samples(*raw_files({file.name(), file.name()}, form), form); });
}

/// The network file of a configuration can be read, unless its arrays are too large.
void configuration(const std::string& text) {
  const YamlNode root = parse_yaml(text, "config.json");
  const HuggingFaceConfig config = read_hugging_face_config(YamlValue(root, ""));
  const std::string written = network_text(config, "network", 0);
  const YamlNode again = parse_yaml(written, "network.yaml");
  try {
    read_model(YamlValue(again, ""));
  } catch (const InputError& error) {
    if (std::string(error.what()).find("too large") == std::string::npos)
      throw std::logic_error(error.what() + ("\n" + written));
  }
}

/// A profile of a network of a convolution, a ReLU and a dense layer.
void profile(const std::string& text) {
  static const YamlNode network = parse_yaml(
      "name: m\nsource: s\ninput: [1, 4, 4]\nlayers:\n"
      "  - {name: c, kind: convolution, filters: 1, kernel: 1}\n  - {name: r, kind: relu}\n"
      "  - {name: f, kind: reshape, shape: [16]}\n  - {name: d, kind: dense, units: 2}\n"
      "  - {name: l, kind: softmax_cross_entropy}\n",
      "m.yaml");
  static const Model model = read_model(YamlValue(network, ""));
  const MemoryFile file(text);
  const Profile read = read_profile(file.name());
  const Attribution all = attribute(read);
  const auto& operators = all.steps.front().operators;
  refuses_or_reads([&] {
    const std::int64_t batch = std::max<std::int64_t>(1, recorded_batch(operators));
    const ProfileNetwork written = profile_network("p", operators, batch, "written", {});
    step_time(profile_trace(read, all, {written.model, written.match}, batch));
  });
  const LayerMatch match = match_layers("p", operators, model, recorded_batch(operators));
  step_time(profile_trace(read, all, {model, match}, 1));
}

/// The written file may be refused, such as one with more devices than a node can have, but not be invalid
/// YAML.
void write_platform(const DiscoveredPlatform& found) {
  const YamlNode root = parse_yaml(platform_file_text(found, {}), "written.yaml");
  read_platform(YamlValue(root, ""), {});
}

/// Readers of the output of tools about servers and fabrics.
void platform(const std::string& text) {
  refuses_or_reads([&] { write_platform({"p", "d", 1, read_nvidia_topology(text, "t"), {}}); });
  refuses_or_reads([&] { write_platform({"p", "d", 1, {}, read_infiniband_fabric(text, "t")}); });
  write_platform({"p", "d", 1, {}, read_slurm_topology(text, "t")});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return read_by_name(data, size, [](std::uint8_t name, const std::string& text) {
    switch (name) {
      case 'b':
        refuses_or_reads([&] { read_nccl_tests(text, "input.txt"); });
        return benchmark(text);
      case 'c':
        return csv(text);
      case 'j':
        return json_lines(text);
      case 'h':
        return configuration(text);
      case 'p':
        return profile(text);
      case 'i':
        return idx(text);
      case 't':
        return platform(text);
      default:
        return records(text);
    }
  });
}
