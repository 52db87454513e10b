#include <fmt/format.h>

#include <fstream>
#include <map>

#include "commands/commands.hpp"
#include "commands/import/network.hpp"
#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/pytorch_profile/profile_reader.hpp"
#include "models/pytorch_profile/profile_trace.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

struct ImportOptions {
  std::string profile, model, output, device, source;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
};

/// The batch of the shapes, or the one that the user gives.
std::int64_t batch_of(const ImportOptions& options, const Attribution& all) {
  const std::int64_t recorded = recorded_batch(all.steps.front().operators);
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

void print_report(const Profile& profile, const Attribution& all, const Trace& trace) {
  const double steps = static_cast<double>(all.steps.size());
  const auto line = [&](const std::string& what, double seconds) {
    fmt::print("  {:<48} {:9.3f} ms  {:5.1f} %\n", what, 1e3 * seconds / steps,
               100 * seconds / all.gpu_seconds);
  };
  fmt::print("{}: {} steps on {}, precision {}\n", profile.file, all.steps.size(), trace.device,
             trace.precision);
  std::map<Share, double> shares;
  double layers = all.gpu_seconds;
  for (const ProfileStep& step : all.steps) {
    for (const auto& [share, seconds] : step.shares) shares[share] += seconds;
  }
  for (const auto& [share, seconds] : shares) layers -= seconds;
  line(profile.cpu_only ? "operators' time a step" : "GPU time a step", all.gpu_seconds);
  line("layers, forward and backward", layers);
  line("optimizer (update of the layers)", shares[Share::optimizer]);
  for (const auto& [share, seconds] : shares) {
    if (share != Share::optimizer && seconds > 0)
      line(fmt::format("in no layer: {}", to_string(share)), seconds);
  }
  fmt::print("attributed: {:.2f} %; the trace's step: {:.4g} ms\n", 100 * all.attributed(),
             1e3 * step_time(trace).value);
  for (const std::string& flag : trace.flags) fmt::print("flag: {}\n", flag);
}

Trace import_trace(const ImportOptions& options, const Profile& profile, const Attribution& all,
                   const Model& model) {
  const std::int64_t batch = batch_of(options, all);
  const auto& operators = all.steps.front().operators;
  const std::int64_t compared = recorded_batch(operators);
  Trace trace =
      profile_trace(profile, all, model, match_layers(profile.file, operators, model, compared), batch);
  trace.name = std::filesystem::path(options.output).stem().string();
  if (!options.device.empty()) trace.device = options.device;
  if (!options.source.empty()) trace.source += "; " + options.source;
  trace.command = fmt::format("stepcast import {} --model {}{}",
                              std::filesystem::path(options.profile).filename().string(), model.name,
                              options.batch > 0 ? fmt::format(" --batch {}", options.batch) : "");
  return trace;
}

void import_profile(const ImportOptions& options) {
  Library library;
  const YamlNode name = command_line_name(options.model);
  const Model& model = library.model(YamlValue(name, "--model"));
  const std::filesystem::path file = options.output;
  check_writable(file.has_parent_path() ? file.parent_path() : ".");
  const Profile profile = read_profile(options.profile);
  const Attribution all = attribute(profile);
  const Trace trace = import_trace(options, profile, all, model);
  print_report(profile, all, trace);
  write_atomically(file, to_yaml(trace));
  fmt::print("written: {}\n", file.string());
}

/// Whether the file is the configuration of a network and no profile.
bool is_network_config(const std::filesystem::path& file) {
  constexpr std::size_t kMostBytes = 1 << 20;  // as read_yaml
  std::ifstream stream(file, std::ios::binary);
  std::string text(kMostBytes, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text.find("\"traceEvents\"") == std::string::npos &&
         text.find("\"model_type\"") != std::string::npos;
}

void import_file(const ImportOptions& options) {
  if (is_network_config(options.profile))
    return import_network(options.profile, options.sequence, options.output);
  if (options.model.empty()) throw InputError("--model: missing; a profile needs the name of its network");
  if (options.sequence > 0) throw InputError("--sequence: only valid with the configuration of a network");
  import_profile(options);
}

}  // namespace

void add_import(Command app) {
  const Command command =
      app.add_subcommand("import",
                         "Turn a profile of PyTorch (torch.profiler, Kineto JSON) into a trace "
                         "of layer times, or the config.json "
                         "of a Hugging Face network into a network file.");
  auto options = std::make_shared<ImportOptions>();
  command.add_option("profile", options->profile, "Profile, .json or .json.gz; or a config.json.")
      .required()
      .type_name("FILE");
  command.add_option("--model", options->model,
                     "Network of the profile: a name in models/, or a path that ends in .yaml.");
  command
      .add_option("--batch", options->batch,
                  "Samples of a step. Needed if the profile has no shapes (record_shapes=True).")
      .range(1, 1 << 20);
  command.add_option("--device", options->device,
                     "Name of the device in the trace. Default: as in the profile.");
  command.add_option("--source", options->source,
                     "Where the profile comes from; added to the trace's source.");
  command.add_option("-o,--output", options->output, "Trace file, or network file.")
      .required()
      .type_name("FILE");
  command
      .add_option("--sequence", options->sequence,
                  "Tokens of a sample of a network. Default: as many as the configuration allows.")
      .range(1, 10'000'000);
  command.footer("Example: stepcast import profile.json.gz --model resnet50 -o my-trace.yaml");
  command.callback([options] { import_file(*options); });
}

}  // namespace stepcast
