#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "commands/commands.hpp"
#include "commands/init/questions.hpp"
#include "commands/init/starting_files.hpp"
#include "commands/init/usual_training.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "models/loader.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/experiment/usual_kernels.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// Options of `init`. Empty texts and zeros were not given.
struct InitOptions {
  std::string file, model, platform, trace, strategy, workers, batch, precision;
  bool new_platform = false, new_model = false, new_device = false, yes = false;
  std::string device, nodes, devices, nics, nic, nvlink, nvlink_pairs;
  std::string like, peak, tensor_peak, memory_bandwidth, memory;
};

/// "8", "8..64" (doubled) or "8:64".
std::pair<int, int> worker_range(const std::string& text) {
  constexpr int kMost = 1'048'576;
  const auto dots = text.find("..");
  if (dots == std::string::npos) {
    const int workers = whole_number("--workers", text, 1, kMost);
    return {workers, workers};
  }
  const int least = whole_number("--workers", text.substr(0, dots), 1, kMost);
  return {least, whole_number("--workers", text.substr(dots + 2), least, kMost)};
}

/// The scenario's name: that of the file, in the letters that names may have.
std::string name_of(const std::filesystem::path& file) {
  std::string name = file.stem().string();
  for (char& c : name) {
    c = std::tolower(static_cast<unsigned char>(c));
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '-';
  }
  return name;
}

void check_new_file(const std::filesystem::path& file) {
  if (file.extension() != ".yaml")
    throw InputError(
        fmt::format("init: expected a name ending in .yaml, got \"{}\"", printable(file.string())));
  std::error_code error;
  if (std::filesystem::exists(file, error))
    throw InputError(file.string() + ": this file already exists; give another name");
}

/// Writes the text below a line that tells editors its schema, unless `check` finds an error in the file.
/// @param kind  of schemas/KIND.json
template <class Check>
void write_checked(const std::filesystem::path& file, const std::string& kind, const std::string& text,
                   const Check& check) {
  const std::filesystem::path schema =
      std::filesystem::absolute(data_folder() / "schemas" / (kind + ".json"));
  write_atomically(file, fmt::format("# yaml-language-server: $schema={}\n{}", schema.string(), text));
  try {
    check();
  } catch (const InputError&) {
    std::filesystem::remove(file);
    throw;
  }
  fmt::print("written: {}\n", file.string());
}

Platform platform_named(const std::string& name) {
  Library library;
  const YamlNode node = command_line_name(name);
  return library.platform(YamlValue(library.tree(YamlValue(node, "--platform"), "platforms"), ""));
}

/// A path from the command line as the file in `folder` has to name it.
std::string seen_from(const std::filesystem::path& file, const std::string& name) {
  const auto folder = file.parent_path();
  if (!name.ends_with(".yaml") || folder.empty()) return name;
  return std::filesystem::proximate(name, folder).string();
}

/// @throws InputError that says how to get a file of another device
void check_device(Library& library, const std::string& name) {
  const auto known = names_in(data_folder() / "models" / "devices");
  if (!name.ends_with(".yaml") && std::ranges::find(known, name) == known.end()) {
    std::string nearest = nearest_word(name.substr(0, name.find('-')), known);  // h100-sxm5-80gb
    if (nearest.empty()) nearest = nearest_word(name, known);
    throw InputError(fmt::format(
        "--device: there is no device \"{}\"{} stepcast show device lists them; stepcast init "
        "{}.yaml --new-device writes a file for your device",
        printable(name), nearest.empty() ? ";" : "; did you mean \"" + nearest + "\"?", name_of(name)));
  }
  library.device(name);
}

constexpr int kMostPaired = 45;  // a platform has at most 1024 pairs of peers

/// NVLinks join either pairs of devices, or all devices to NVSwitches.
void ask_nvlink(const Questions& questions, const InitOptions& options, PlatformStart& start) {
  const auto is_rate = [](const std::string& text) { return !text.empty() && text != "none"; };
  if (is_rate(options.nvlink) && is_rate(options.nvlink_pairs))
    throw InputError("--nvlink-pairs: a node has either these NVLinks or those of --nvlink");
  std::string pairs = "none", nvlink = "none";
  if (options.nvlink.empty() || !options.nvlink_pairs.empty())
    pairs = questions.rate(options.nvlink_pairs, "--nvlink-pairs",
                           "Bandwidth of NVLink between every two devices in one direction, or none", "none");
  if (is_rate(pairs) && start.devices > kMostPaired)
    throw InputError(fmt::format("--nvlink-pairs: expected at most {} devices in a node", kMostPaired));
  if (!is_rate(pairs))
    nvlink = questions.rate(options.nvlink, "--nvlink",
                            "Bandwidth of one device at the NVSwitch in one direction, or none", "none");
  using Nvlinks = PlatformStart::Nvlinks;
  start.nvlinks = is_rate(pairs) ? Nvlinks::pairs : is_rate(nvlink) ? Nvlinks::to_switch : Nvlinks::none;
  start.nvlink = is_rate(pairs) ? pairs : nvlink;
}

void init_platform(const InitOptions& options) {
  const std::filesystem::path file = options.file.empty() ? "my-cluster.yaml" : options.file;
  check_new_file(file);
  const Questions questions(options.yes);
  Library library;
  PlatformStart start{.name = name_of(file)};
  start.device = questions.answer(
      options.device,
      "Device (stepcast show device lists them; init --new-device writes a file for your device)",
      "a100-40gb", [&](const std::string& name) { check_device(library, name); });
  start.nodes = questions.number(options.nodes, "--nodes", "Nodes", 4, 1 << 20);
  start.devices = questions.number(options.devices, "--devices", "Devices of a node", 8, 256);
  start.nics = questions.number(options.nics, "--nics", "Network cards (NICs) of a node", 1, 64);
  start.nic = questions.rate(options.nic, "--nic", "Bandwidth of one NIC", "200 Gbit/s");
  ask_nvlink(questions, options, start);
  const Device& device = library.device(start.device);
  start.device = seen_from(file, start.device);
  write_checked(file, "platform", platform_file_text(platform_of(start, device), device),
                [&] { platform_named(file.string()); });
  fmt::print("next: correct the values marked as assumed, then stepcast show platform {}\n", file.string());
}

void init_model(const InitOptions& options) {
  const std::filesystem::path file = options.file.empty() ? "my-net.yaml" : options.file;
  check_new_file(file);
  write_checked(file, "model", model_text(name_of(file)), [&] {
    const YamlNode node = command_line_name(file.string());
    Library().model(YamlValue(node, "--new-model"));
  });
  fmt::print("next: replace the layers by those of your network, then stepcast show model {}\n",
             file.string());
}

/// Asks for the figures of a data sheet; those of the device `like` are the defaults.
void ask_figures(const InitOptions& options, const Questions& questions, const YamlNode& like,
                 DeviceStart& start) {
  const auto figure = [&](const std::string& given, const char* option, const char* question,
                          const YamlNode* similar, Dimension dimension) {
    const YamlNode* otherwise = similar == nullptr ? nullptr : similar->find("value");
    if (given.empty() && otherwise == nullptr) return std::string();
    const std::string text = questions.answer(
        given, question, otherwise == nullptr ? "" : otherwise->text, [&](const std::string& answer) {
          if (!parse_quantity(answer, dimension))
            throw InputError(fmt::format("{}: expected a quantity such as \"{}\", got \"{}\"{}", option,
                                         example(dimension), printable(answer),
                                         quantity_advice(answer, dimension)));
        });
    return given.empty() && text == otherwise->text ? std::string() : text;
  };
  const YamlNode* precisions = like.find("precisions");
  const YamlNode* f16 = precisions == nullptr ? nullptr : precisions->find("f16");
  start.peak = figure(options.peak, "--peak", "Peak rate in fp32, without tensor cores", like.find("peak"),
                      Dimension::flops_per_second);
  start.tensor_peak =
      figure(options.tensor_peak, "--tensor-peak", "Peak rate of tensor cores in fp16, without sparsity",
             f16 == nullptr ? nullptr : f16->find("peak"), Dimension::flops_per_second);
  start.memory_bandwidth = figure(options.memory_bandwidth, "--memory-bandwidth", "Bandwidth of its memory",
                                  like.find("memory_bandwidth"), Dimension::bytes_per_second);
  start.memory = figure(options.memory, "--memory", "Memory", like.find("memory"), Dimension::bytes);
}

void init_device(const InitOptions& options) {
  const std::filesystem::path file = options.file.empty() ? "my-gpu.yaml" : options.file;
  check_new_file(file);
  const Questions questions(options.yes);
  Library library;
  DeviceStart start{.name = name_of(file)};
  start.like = questions.answer(options.like, "Similar device (stepcast show device lists them)", "a100-40gb",
                                [&](const std::string& like) { check_device(library, like); });
  const YamlNode node = command_line_name(start.like);
  const YamlNode& like = library.tree(YamlValue(node, "--like"), "models/devices");
  ask_figures(options, questions, like, start);
  write_checked(file, "device", device_text(start, like), [&] { Library().device(file.string()); });
  fmt::print("next: correct what is assumed, then stepcast init my-cluster.yaml --new-platform --device {}\n",
             file.string());
}

/// The precision of products, for layer times by a rule; measured ones have their own.
std::string ask_precision(const Questions& questions, const InitOptions& options, const std::string& usual) {
  const bool derived = options.trace.empty() || options.trace == "derived";
  if (!derived && !options.precision.empty())
    throw InputError("--precision: the trace has a precision of its own; leave out --trace");
  if (!derived) return "f32";
  return questions.answer(options.precision, "Precision of products (f32, tf32, f16, bf16, fp8)", usual,
                          [](const std::string& text) {
                            const YamlNode node = command_line_name(text);
                            YamlValue(node, "--precision").one_of(precision_words().names());
                          });
}

/// Sets the layer times: a measured trace if the user named no precision and there is one, else the rule with
/// the kernels that people use.
void choose_times(const Questions& questions, const InitOptions& options, const std::filesystem::path& file,
                  Library& library, ScenarioStart& start) {
  const YamlNode model = command_line_name(start.model);
  const Model& network = library.model(YamlValue(model, "--model"));
  const YamlNode platform = command_line_name(start.platform);
  const YamlNode& cluster = library.tree(YamlValue(platform, "--platform"), "platforms");
  const Device& device = library.device(YamlValue(cluster, "").any_map().at("device"));
  const auto traces = names_in(data_folder() / "models" / "traces");
  start.trace = !options.trace.empty()      ? seen_from(file, options.trace)
                : options.precision.empty() ? matching_trace(traces, start.model, device.name, start.batch)
                                            : "derived";
  if (start.trace != "derived") return;
  const std::string precision = ask_precision(questions, options, usual_precision(network, device));
  start.half = precision == "f16" || precision == "bf16" || precision == "fp8";
  start.half_transformer = start.half && precision != "fp8" && has_layers(network, LayerKind::attention);
  start.kernels = kernels_text(network, device, precision);
}

ScenarioStart ask_scenario(const InitOptions& options, const std::filesystem::path& file) {
  const Questions questions(options.yes);
  Library library;
  ScenarioStart start{.name = name_of(file)};
  start.model =
      questions.answer(options.model, "Network (stepcast show model lists them), or a path ending in .yaml",
                       "resnet50", [&](const std::string& name) {
                         const YamlNode node = command_line_name(name);
                         library.model(YamlValue(node, "--model"));
                       });
  start.platform = questions.answer(options.platform,
                                    "Cluster (stepcast show platform lists them), or a path ending in .yaml",
                                    "dgx-a100", [](const std::string& name) { platform_named(name); });
  const Platform platform = platform_named(start.platform);
  start.strategy = questions.answer(options.strategy, "Strategy (stepcast show strategies lists them)",
                                    kPlainReplicas, [](const std::string& kind) {
                                      const YamlNode node = command_line_name(kind);
                                      YamlValue(node, "--strategy").one_of(strategy_names());
                                    });
  const Strategy& strategy = *find_strategy(start.strategy);
  start.example = strategy.example;
  start.takes_precision = find_key(strategy.keys, "precision") != nullptr;
  const int all = std::min(platform.devices(), 1024);
  const std::string doubled = fmt::format("{}..{}", std::min(platform.devices_per_node, all), all);
  const std::string workers = questions.answer(options.workers, "Workers, such as 8 or 8..256 (doubled)",
                                               doubled, [](const std::string& text) { worker_range(text); });
  std::tie(start.least, start.most) = worker_range(workers);
  if (start.most > platform.devices())
    start.nodes = (start.most + platform.devices_per_node - 1) / platform.devices_per_node;
  if (!options.batch.empty()) start.batch = whole_number("--batch", options.batch, 1, 1'000'000'000);
  choose_times(questions, options, file, library, start);
  start.model = seen_from(file, start.model);
  start.platform = seen_from(file, start.platform);
  if (options.batch.empty())
    fit_memory(file, library, {.strategy = options.strategy.empty(), .workers = options.workers.empty()},
               platform.devices_per_node, start);
  start.batch =
      questions.number(options.batch, "--batch", "Samples of a worker in a step", start.batch, 1'000'000'000);
  return start;
}

void init_scenario(const InitOptions& options) {
  const std::filesystem::path file = options.file.empty() ? "my-scenario.yaml" : options.file;
  check_new_file(file);
  const ScenarioStart start = ask_scenario(options, file);
  write_checked(file, "scenario", scenario_text(start), [&] {
    const Scenario scenario = read_scenario(file, {});
    Library library;
    build_experiment(scenario.document, middle_values(scenario, scenario.points.back()), library);
  });
  fmt::print("next: stepcast run {} --dry-run, then stepcast run {}\n", file.string(), file.string());
}

void add_scenario_options(const Command& command, InitOptions& options) {
  command.add_option("--model", options.model, "Network: a name or a path. Default: resnet50.")
      .type_name("NAME");
  command.add_option("--platform", options.platform, "Cluster: a name or a path. Default: dgx-a100.")
      .type_name("NAME");
  command
      .add_option("--trace", options.trace,
                  "Layer times: a name, a path or derived. Default: a shipped trace of this network, batch "
                  "and device, "
                  "or else derived.")
      .type_name("NAME");
  command
      .add_option("--strategy", options.strategy,
                  "Training strategy. Default: synchronous, or zero where that does not fit into memory.")
      .type_name("KIND");
  command
      .add_option(
          "--precision", options.precision,
          "Precision of products: f32, tf32, f16, bf16 or fp8. With the last three, gradients and "
          "activations have 2 bytes. Default: bf16 for a transformer and tf32 for other networks, where "
          "the device has it, else f16, else f32.")
      .type_name("NAME");
  command
      .add_option("--batch", options.batch,
                  "Samples of a worker in a step. Default: 32, or the most that "
                  "fit into memory.")
      .type_name("N");
  command
      .add_option("--workers", options.workers,
                  "Workers, such as 8, or 8..256 to double from 8 to 256. Default: from one node to all.")
      .type_name("N");
}

void add_platform_options(const Command& command, InitOptions& options) {
  command.add_option("--device", options.device, "Platform: device of a worker. Default: a100-40gb.")
      .type_name("NAME");
  command.add_option("--nodes", options.nodes, "Platform: number of nodes. Default: 4.").type_name("N");
  command.add_option("--devices", options.devices, "Platform: devices of a node. Default: 8.").type_name("N");
  command.add_option("--nics", options.nics, "Platform: NICs of a node. Default: 1.").type_name("N");
  command.add_option("--nic", options.nic, "Platform: bandwidth of one NIC. Default: \"200 Gbit/s\".")
      .type_name("RATE");
  command
      .add_option("--nvlink", options.nvlink,
                  "Platform: bandwidth of a device at the NVSwitch in one direction, such as \"240 "
                  "GB/s\", or none. Default: none.")
      .type_name("RATE");
  command
      .add_option("--nvlink-pairs", options.nvlink_pairs,
                  "Platform without NVSwitch: bandwidth of NVLink between every two devices of a node in one "
                  "direction, or none. Default: none.")
      .type_name("RATE");
}

void add_device_options(const Command& command, InitOptions& options) {
  command
      .add_option(
          "--like", options.like,
          "Device: a similar device, which gives the figures that no option gives. Default: a100-40gb.")
      .type_name("NAME");
  command
      .add_option("--peak", options.peak,
                  "Device: peak rate in fp32, without tensor cores, such as \"91.6 Tflop/s\".")
      .type_name("RATE");
  command
      .add_option("--tensor-peak", options.tensor_peak,
                  "Device: peak rate of tensor cores in fp16 or bf16, without sparsity.")
      .type_name("RATE");
  command
      .add_option("--memory-bandwidth", options.memory_bandwidth,
                  "Device: bandwidth of its memory, such as \"864 GB/s\".")
      .type_name("RATE");
  command.add_option("--memory", options.memory, "Device: its memory, such as \"48 GB\".").type_name("SIZE");
}

}  // namespace

void add_init(Command app) {
  const Command command =
      app.add_subcommand("init",
                         "Write a commented scenario to start from, or with "
                         "--new-model a network, with --new-platform a platform, or with "
                         "--new-device a device. On a terminal it asks for the values that no option "
                         "gives.");
  auto options = std::make_shared<InitOptions>();
  command
      .add_option("file", options->file,
                  "File to write. Default: my-scenario.yaml, my-net.yaml, my-cluster.yaml or my-gpu.yaml.")
      .type_name("FILE.yaml");
  add_scenario_options(command, *options);
  const Option new_model =
      command.add_flag("--new-model", options->new_model, "Write a network in place of a scenario.");
  const Option new_platform =
      command.add_flag("--new-platform", options->new_platform, "Write a platform in place of a scenario.")
          .excludes(new_model);
  command.add_flag("--new-device", options->new_device, "Write a device in place of a scenario.")
      .excludes(new_model)
      .excludes(new_platform);
  add_platform_options(command, *options);
  add_device_options(command, *options);
  command.add_flag("-y,--yes", options->yes, "Ask nothing and take the defaults.");
  command.callback([=] {
    if (options->new_model) return init_model(*options);
    if (options->new_device) return init_device(*options);
    options->new_platform ? init_platform(*options) : init_scenario(*options);
  });
  command.footer(
      "Example: stepcast init my.yaml --model resnet50 --platform dgx-a100 --batch 64 --workers 8..256");
}

}  // namespace stepcast
