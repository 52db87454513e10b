#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "commands/commands.hpp"
#include "commands/import/chakra_traces.hpp"
#include "commands/import/network.hpp"
#include "commands/import/written_file.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/pytorch_profile/profile.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

struct ImportOptions {
  std::string profile, model, write_model, parameters, output, device, source, step;
  std::vector<std::string> sizes;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
};

/// The batch of the shapes, or the one that the user gives. If the network is not known, the first size of
/// the first operator may be something else than the batch; then the given batch is used.
std::int64_t batch_of(const ImportOptions& options, const Attribution& all) {
  const std::int64_t recorded = recorded_batch(all.steps.front().operators);
  if (options.batch > 0 && !options.write_model.empty()) return options.batch;
  if (options.batch > 0 && recorded > 0 && recorded != options.batch) {
    throw InputError(fmt::format("--batch: expected {}, the batch in the shapes of {}, got {}", recorded,
                                 options.profile, options.batch));
  }
  if (options.batch == 0 && recorded == 0) {
    throw InputError(fmt::format(
        "--batch: {} holds no shapes (record_shapes=True); give the samples of a step", options.profile));
  }
  return recorded > 0 ? recorded : options.batch;
}

/// Seconds of `--step`; 0 without it.
double ordinary_step(const ImportOptions& options, const Profile& profile, const Attribution& all) {
  if (options.step.empty()) return 0;
  const double wall = profiled_host(all).wall;
  const auto seconds = parse_quantity(options.step, Dimension::time);
  if (profile.cpu_only) throw InputError("--step: only valid with a profile of a GPU");
  if (!seconds || !(*seconds > 0) || *seconds > wall)
    throw InputError(fmt::format("--step: expected a time up to the {:.4g} ms of a profiled step, got \"{}\"",
                                 1e3 * wall, printable(options.step)));
  return *seconds;
}

void print_host(const Profile& profile, const Attribution& all) {
  const ProfiledHost host = profiled_host(all);
  if (profile.cpu_only || host.issuing <= 0) return;
  fmt::print(
      "host: issues layers and the update for {:.4g} of the {:.4g} ms of a profiled step; --step TIME, that "
      "of "
      "a step without the profiler, writes the host's time of each layer\n",
      1e3 * host.issuing, 1e3 * host.wall);
}

void print_report(const Profile& profile, const Attribution& all, const Trace& trace) {
  const double steps = all.steps.size();
  const auto line = [&](const std::string& what, double seconds) {
    fmt::print("  {:<48} {:9.3f} ms  {:5.1f} %\n", what, 1e3 * seconds / steps,
               100 * seconds / all.gpu_seconds);
  };
  fmt::print("{}: {} steps on {}, precision {}\n", profile.file, all.steps.size(), trace.device,
             trace.precision);
  std::map<NonLayerWork, double> non_layer_seconds;
  double layers = all.gpu_seconds;
  for (const ProfileStep& step : all.steps) {
    for (const auto& [work, seconds] : step.non_layer_seconds) non_layer_seconds[work] += seconds;
  }
  for (const auto& [work, seconds] : non_layer_seconds) layers -= seconds;
  line(profile.cpu_only ? "operators' time a step" : "GPU time a step", all.gpu_seconds);
  line("layers, forward and backward", layers);
  line("optimizer (update of the layers)", non_layer_seconds[NonLayerWork::optimizer]);
  for (const auto& [work, seconds] : non_layer_seconds) {
    if (work != NonLayerWork::optimizer && seconds > 0)
      line(fmt::format("in no layer: {}", to_string(work)), seconds);
  }
  fmt::print("attributed: {:.2f} %; the trace's step: {:.4g} ms\n", 100 * all.attributed(),
             1e3 * step_time(trace).value);
  fmt::print("left out of the layers: {}\n", all.left_out_text());
  print_host(profile, all);
  for (const std::string& flag : trace.flags) fmt::print("flag: {}\n", flag);
}

/// The numbers of a text file, separated by spaces, commas or ends of lines.
std::vector<std::int64_t> read_numbers(const std::string& file) {
  std::vector<std::int64_t> numbers;
  std::ifstream stream(file);
  if (!stream) throw InputError(fmt::format("--parameters: {}: cannot read this file", file));
  for (std::string word; stream >> word;) {
    std::istringstream parts(word);
    for (std::string part; std::getline(parts, part, ',');) {
      const bool digits = std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (part.empty()) continue;
      if (!digits || part.size() > 15 || numbers.size() >= 1'000'000)
        throw InputError(
            fmt::format("--parameters: {}: expected integers, one for each parameter, got \"{}\"", file,
                        printable(part)));
      numbers.push_back(std::stoll(part));
    }
  }
  if (numbers.empty()) throw InputError(fmt::format("--parameters: {}: holds no numbers", file));
  return numbers;
}

void complete_trace(const ImportOptions& options, const std::string& network, Trace& trace) {
  trace.name = std::filesystem::path(options.output).stem().string();
  if (!options.device.empty()) trace.device = options.device;
  if (!options.source.empty()) trace.source += "; " + options.source;
  trace.command =
      fmt::format("stepcast import {} {}{}", std::filesystem::path(options.profile).filename().string(),
                  network, options.batch > 0 ? fmt::format(" --batch {}", options.batch) : "");
}

void check_folder(const std::filesystem::path& file) {
  check_writable(file.has_parent_path() ? file.parent_path() : ".");
}

void write_trace(const ImportOptions& options, const Profile& profile, const Attribution& all,
                 const Trace& trace) {
  print_report(profile, all, trace);
  write_atomically(options.output, to_yaml(trace));
  fmt::print("written: {}\n", options.output);
}

void import_profile(const ImportOptions& options) {
  Library library;
  const YamlNode name = command_line_name(options.model);
  const Model& model = library.model(YamlValue(name, "--model"));
  check_folder(options.output);
  const Profile profile = read_profile(options.profile);
  const Attribution all = attribute(profile);
  const std::int64_t batch = batch_of(options, all);
  const auto& operators = all.steps.front().operators;
  const LayerMatch match = match_layers(profile.file, operators, model, recorded_batch(operators));
  Trace trace = profile_trace(profile, all, {model, match}, batch, ordinary_step(options, profile, all));
  complete_trace(options, "--model " + model.name, trace);
  write_trace(options, profile, all, trace);
}

/// Adds the doubts about a network that is known only from its profile.
void add_doubts(const ProfileNetwork& network, const std::vector<NetworkOperator>& operators, Trace& trace) {
  const auto has_shapes = [](const NetworkOperator& one) { return !one.shapes.empty(); };
  if (std::none_of(operators.begin(), operators.end(), has_shapes)) {
    trace.flags.push_back(
        "the profile holds no shapes: sizes of activations are not known, so memory and "
        "messages between pipeline stages count none");
  }
  trace.notes.push_back(
      fmt::format("{} of {} layers are of kind measured; which layer reads which follows from sizes",
                  network.measured, network.model.layers.size()));
}

void import_network_of_profile(const ImportOptions& options) {
  const std::filesystem::path file = options.write_model;
  if (file.extension() != ".yaml" || file.stem().empty())
    throw InputError(
        fmt::format("--write-model: expected a path ending in .yaml, got \"{}\"", file.string()));
  if (std::filesystem::absolute(file).lexically_normal() ==
      std::filesystem::absolute(options.output).lexically_normal())
    throw InputError("--write-model: expected a different file from --output");
  check_folder(file);
  check_folder(options.output);
  std::vector<std::int64_t> parameters;
  if (!options.parameters.empty()) parameters = read_numbers(options.parameters);
  const Profile profile = read_profile(options.profile);
  const Attribution all = attribute(profile);
  const std::int64_t batch = batch_of(options, all);
  const double step = ordinary_step(options, profile, all);
  const auto& operators = all.steps.front().operators;
  const ProfileNetwork network =
      profile_network(profile.file, operators, batch, file.stem().string(), parameters);
  write_atomically(file, network.text);
  read_written([&] {
    if (!network.fault.empty()) throw InputError(network.fault);
  });
  Trace trace = profile_trace(profile, all, {network.model, network.match}, batch, step);
  complete_trace(options, "--write-model " + file.filename().string(), trace);
  add_doubts(network, operators, trace);
  fmt::print("{}: {} layers ({} of kind measured), {} parameters\nwritten: {}\n", network.model.name,
             network.model.layers.size(), network.measured, trainable_parameters(network.model),
             file.string());
  write_trace(options, profile, all, trace);
}

/// The first MiB of a file, which is as much as read_yaml reads.
std::string head_of(const std::filesystem::path& file) {
  constexpr std::size_t kMostBytes = 1 << 20;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InputError(fmt::format("{}: cannot read this file", file.string()));
  std::string text(kMostBytes, '\0');
  stream.read(text.data(), text.size());
  text.resize(stream.gcount());
  return text;
}

/// True if the file is the configuration of a network and no profile.
bool is_network_config(const std::string& text) {
  return text.find("\"traceEvents\"") == std::string::npos &&
         text.find("\"model_type\"") != std::string::npos;
}

void import_folder(const ImportOptions& options) {
  if (options.batch > 0 || options.sequence > 0 || !options.model.empty() || !options.write_model.empty() ||
      !options.sizes.empty())
    throw InputError("--output: the only option that is valid with a folder of Chakra traces");
  import_chakra_traces(options.profile, options.output);
}

void import_file(const ImportOptions& options) {
  if (std::filesystem::is_directory(options.profile)) return import_folder(options);
  if (std::filesystem::path(options.profile).extension() == ".onnx") {
    if (options.sequence > 0 || !options.model.empty() || !options.write_model.empty() ||
        !options.step.empty())
      throw InputError("--output, --size: the only options that are valid with an ONNX graph");
    return import_onnx(options.profile, options.sizes, options.output);
  }
  if (std::filesystem::path(options.profile).extension() == ".et")
    throw InputError(
        fmt::format("{}: expected the folder of the traces of all ranks, *.RANK.et", options.profile));
  const std::string head = head_of(options.profile);
  const bool of_profile = !is_network_config(head);
  if (!options.step.empty() && !of_profile) throw InputError("--step: only valid with a profile");
  if (!options.sizes.empty()) throw InputError("--size: only valid with an ONNX graph");
  if (!of_profile) return import_network(options.profile, options.sequence, options.output);
  if (options.sequence > 0) throw InputError("--sequence: only valid with the configuration of a network");
  const bool zipped = head.starts_with("\x1f\x8b");
  if (options.model.empty() && options.write_model.empty() && !zipped &&
      head.find("\"traceEvents\"") == std::string::npos)
    throw InputError(fmt::format(
        "{}: expected a profile, which has \"traceEvents\", or the configuration of a network, which has "
        "\"model_type\"",
        options.profile));
  if (options.model.empty() == options.write_model.empty())
    throw InputError(
        "--model: a profile needs either the name of its network, or --write-model FILE, which "
        "writes the network of the profile");
  if (!options.parameters.empty() && options.write_model.empty())
    throw InputError("--parameters: only valid with --write-model");
  options.write_model.empty() ? import_profile(options) : import_network_of_profile(options);
}

void add_network_options(const Command& command, ImportOptions& options) {
  command
      .add_option("--sequence", options.sequence,
                  "Tokens of a sample of a language model. Default: as many as the configuration allows.")
      .range(1, 10'000'000);
  command
      .add_option("--size", options.sizes,
                  "A size that an ONNX graph leaves free, by its name there or as INPUT:INDEX.")
      .type_name("NAME=N")
      .one_value();
}

}  // namespace

void add_import(Command app) {
  const Command command = app.add_subcommand(
      "import",
      "Turn a profile of PyTorch (torch.profiler, Kineto JSON) into a trace of layer times, the config.json "
      "of "
      "a Hugging Face network or an ONNX graph into a network file, or Chakra traces into a scenario.");
  auto options = std::make_shared<ImportOptions>();
  command
      .add_option("profile", options->profile,
                  "Profile, .json or .json.gz; config.json; graph, .onnx; or folder of Chakra traces.")
      .required()
      .type_name("FILE");
  command
      .add_option("--model", options->model,
                  "Network of the profile: a name in models/, or a path that ends in .yaml.")
      .type_name("NAME");
  command
      .add_option("--write-model", options->write_model,
                  "In place of --model: also write the network of the profile to this file.")
      .type_name("FILE");
  command
      .add_option("--parameters", options->parameters,
                  "With --write-model, for a profile without shapes: text file with the elements of each "
                  "parameter, in forward order.")
      .type_name("FILE");
  command
      .add_option("--batch", options->batch,
                  "Samples of a step. Needed if the profile has no shapes (record_shapes=True).")
      .range(1, 1 << 20);
  command
      .add_option("--device", options->device, "Name of the device in the trace. Default: as in the profile.")
      .type_name("NAME");
  command
      .add_option(
          "--step", options->step,
          "Time of a step without the profiler, such as \"45 ms\": the trace also has the host's times.")
      .type_name("TIME");
  command.add_option("--source", options->source,
                     "Where the profile comes from. The text is added to the trace's source.");
  command
      .add_option("-o,--output", options->output, "Trace, network or scenario file; - for standard output.")
      .required()
      .type_name("FILE");
  add_network_options(command, *options);
  command.footer("Example: stepcast import profile.json.gz --model resnet50 -o my-trace.yaml");
  command.callback_with_file([options] { import_file(*options); }, options->output, "imported");
}

}  // namespace stepcast
