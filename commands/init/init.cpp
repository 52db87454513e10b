#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <iostream>

#include "commands/commands.hpp"
#include "commands/init/starting_files.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "models/loader.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// Options of `init`. Empty texts and zeros were not given.
struct InitOptions {
  std::string file, model, platform, trace, strategy, workers, batch;
  bool new_platform = false, new_model = false, yes = false;
  std::string device, nodes, devices, nics, nic, nvlink, nvlink_pairs;
};

/// Asks on the terminal for what no option gave. Where there is none, or with --yes, the default is taken.
class Questions {
 public:
  explicit Questions(bool yes) : asks_(!yes && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {}

  /// The option's text, or the answer. `check` throws InputError for a bad one, which is asked again.
  template <class Check>
  std::string answer(const std::string& given, const std::string& question, const std::string& otherwise,
                     const Check& check) const {
    if (!given.empty() || !asks_) {
      const std::string text = given.empty() ? otherwise : given;
      check(text);
      return text;
    }
    while (true) {
      fmt::print("{} [{}]: ", question, otherwise);
      std::fflush(stdout);
      std::string text;
      if (!std::getline(std::cin, text)) throw Interrupted("init: the answers ended; nothing was written");
      if (text.empty()) text = otherwise;
      try {
        check(text);
        return text;
      } catch (const InputError& error) {
        fmt::print("{}\n", error.what());
      }
    }
  }

 private:
  bool asks_;
};

int whole_number(const std::string& what, const std::string& text, int least, int most) {
  const auto number = parse_integer(text);
  if (!number || *number < least || *number > most)
    throw InputError(
        fmt::format("{}: expected an integer from {} to {}, got \"{}\"", what, least, most, printable(text)));
  return static_cast<int>(*number);
}

/// Reads a number that was given or asked for.
int ask_number(const Questions& questions, const std::string& given, const std::string& option,
               const std::string& question, int otherwise, int most) {
  const auto check = [&](const std::string& text) { whole_number(option, text, 1, most); };
  return whole_number(option, questions.answer(given, question, std::to_string(otherwise), check), 1, most);
}

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
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
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
    throw InputError(file.string() + ": there is such a file; give another name");
}

/// Writes the text, unless `check` finds an error in the file.
template <class Check>
void write_checked(const std::filesystem::path& file, const std::string& text, const Check& check) {
  write_atomically(file, text);
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
  return read_platform(YamlValue(library.tree(YamlValue(node, "--platform"), "platforms"), ""));
}

/// A path from the command line as the file in `folder` has to name it.
std::string seen_from(const std::filesystem::path& file, const std::string& name) {
  const auto folder = file.parent_path();
  if (!name.ends_with(".yaml") || folder.empty()) return name;
  return std::filesystem::proximate(name, folder).string();
}

constexpr int kMostPaired = 45;  // a platform has at most 1024 pairs of peers

void init_platform(const InitOptions& options) {
  const std::filesystem::path file = options.file.empty() ? "my-cluster.yaml" : options.file;
  check_new_file(file);
  const Questions questions(options.yes);
  Library library;
  PlatformStart start{.name = name_of(file)};
  start.device = questions.answer(options.device, "Device (stepcast show device lists them)", "a100-40gb",
                                  [&](const std::string& name) { library.device(name); });
  start.nodes = ask_number(questions, options.nodes, "--nodes", "Nodes", 4, 1 << 20);
  start.devices = ask_number(questions, options.devices, "--devices", "Devices of a node", 8, 256);
  start.nics = ask_number(questions, options.nics, "--nics", "Network cards (NICs) of a node", 1, 64);
  const auto rate = [](const char* option) {
    return [option](const std::string& text) {
      if (text != "none" && !parse_quantity(text, Dimension::bytes_per_second))
        throw InputError(fmt::format("{}: expected a bandwidth such as \"200 Gbit/s\", got \"{}\"", option,
                                     printable(text)));
    };
  };
  start.nic = questions.answer(options.nic, "Bandwidth of one NIC", "200 Gbit/s", rate("--nic"));
  const std::string pairs =
      !options.nvlink.empty()
          ? "none"
          : questions.answer(options.nvlink_pairs,
                             "Bandwidth of NVLink between every two devices in one direction, or none",
                             "none", rate("--nvlink-pairs"));
  if (pairs != "none") {
    if (start.devices > kMostPaired)
      throw InputError(fmt::format("--nvlink-pairs: expected at most {} devices in a node", kMostPaired));
    start.nvlink_pairs = pairs;
  }
  const std::string nvlink = pairs != "none" ? "none"
                                             : questions.answer(options.nvlink,
                                                                "Bandwidth of one device at the NVSwitch in "
                                                                "one direction, or none",
                                                                "none", rate("--nvlink"));
  if (nvlink != "none") start.nvlink = nvlink;
  write_checked(file, platform_text(start), [&] { platform_named(file.string()); });
  fmt::print("next: correct the values marked as assumed, then stepcast show platform {}\n", file.string());
}

void init_model(const InitOptions& options) {
  const std::filesystem::path file = options.file.empty() ? "my-net.yaml" : options.file;
  check_new_file(file);
  write_checked(file, model_text(name_of(file)), [&] {
    const YamlNode node = command_line_name(file.string());
    Library().model(YamlValue(node, "--new-model"));
  });
  fmt::print("next: replace the layers by those of your network, then stepcast show model {}\n",
             file.string());
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
                                    "synchronous", [](const std::string& kind) {
                                      const YamlNode node = command_line_name(kind);
                                      YamlValue(node, "--strategy").one_of(strategy_names());
                                    });
  start.example = std::ranges::find(strategies(), start.strategy, &Strategy::kind)->example;
  start.batch =
      ask_number(questions, options.batch, "--batch", "Samples of a worker in a step", 32, 1'000'000'000);
  const int all = std::min(platform.devices(), 1024);
  const std::string doubled = fmt::format("{}..{}", std::min(platform.devices_per_node, all), all);
  const std::string workers = questions.answer(options.workers, "Workers, such as 8 or 8..256 (doubled)",
                                               doubled, [](const std::string& text) { worker_range(text); });
  std::tie(start.least, start.most) = worker_range(workers);
  if (start.most > platform.devices())
    start.nodes = (start.most + platform.devices_per_node - 1) / platform.devices_per_node;
  const auto traces = names_in(data_folder() / "models" / "traces");
  start.trace = options.trace.empty() ? matching_trace(traces, start.model, platform.device_name, start.batch)
                                      : seen_from(file, options.trace);
  return start;
}

void init_scenario(const InitOptions& options) {
  const std::filesystem::path file = options.file.empty() ? "my-scenario.yaml" : options.file;
  check_new_file(file);
  ScenarioStart start = ask_scenario(options, file);
  start.model = seen_from(file, start.model);
  start.platform = seen_from(file, start.platform);
  write_checked(file, scenario_text(start), [&] {
    const Scenario scenario = read_scenario(file, {});
    Library library;
    build_experiment(scenario.document, middle_values(scenario, scenario.points.back()), library);
  });
  fmt::print("next: stepcast run {} --dry-run, then stepcast run {}\n", file.string(), file.string());
}

void add_platform_options(const Command& command, InitOptions& options) {
  command.add_option("--device", options.device, "Platform: device of a worker. Default: a100-40gb.")
      .type_name("NAME");
  command.add_option("--nodes", options.nodes, "Platform: number of nodes. Default: 4.").type_name("N");
  command.add_option("--devices", options.devices, "Platform: devices of a node. Default: 8.").type_name("N");
  command.add_option("--nics", options.nics, "Platform: NICs of a node. Default: 1.").type_name("N");
  command.add_option("--nic", options.nic, "Platform: bandwidth of one NIC. Default: \"200 Gbit/s\".")
      .type_name("RATE");
  const Option nvlink =
      command
          .add_option("--nvlink", options.nvlink,
                      "Platform: bandwidth of a device at the NVSwitch in one direction, such as \"240 "
                      "GB/s\", or none. Default: none.")
          .type_name("RATE");
  command
      .add_option("--nvlink-pairs", options.nvlink_pairs,
                  "Platform without NVSwitch: bandwidth of NVLink between every two devices of a node in one "
                  "direction, or none. Default: none.")
      .type_name("RATE")
      .excludes(nvlink);
}

}  // namespace

void add_init(Command app) {
  const Command command = app.add_subcommand("init",
                                             "Write a commented scenario to start from, or with "
                                             "--new-model a network, or with --new-platform a platform. On a "
                                             "terminal it asks for what no option gives.");
  auto options = std::make_shared<InitOptions>();
  command
      .add_option("file", options->file,
                  "File to write. Default: my-scenario.yaml, my-net.yaml or my-cluster.yaml.")
      .type_name("FILE.yaml");
  command.add_option("--model", options->model, "Network: a name or a path. Default: resnet50.")
      .type_name("NAME");
  command.add_option("--platform", options->platform, "Cluster: a name or a path. Default: dgx-a100.")
      .type_name("NAME");
  command
      .add_option("--trace", options->trace,
                  "Layer times: a name, a path or derived. Default: a shipped trace of this network, batch "
                  "and device, "
                  "or else derived.")
      .type_name("NAME");
  command.add_option("--strategy", options->strategy, "Training strategy. Default: synchronous.")
      .type_name("KIND");
  command.add_option("--batch", options->batch, "Samples of a worker in a step. Default: 32.").type_name("N");
  command
      .add_option("--workers", options->workers,
                  "Workers, such as 8, or 8..256 to double from 8 to 256. Default: from one node to all.")
      .type_name("N");
  const Option new_model =
      command.add_flag("--new-model", options->new_model, "Write a network in place of a scenario.");
  command.add_flag("--new-platform", options->new_platform, "Write a platform in place of a scenario.")
      .excludes(new_model);
  add_platform_options(command, *options);
  command.add_flag("-y,--yes", options->yes, "Ask nothing and take the defaults.");
  command.callback([=] {
    if (options->new_model) return init_model(*options);
    options->new_platform ? init_platform(*options) : init_scenario(*options);
  });
  command.footer(
      "Example: stepcast init my.yaml --model resnet50 --platform dgx-a100 --batch 64 --workers 8..256");
}

}  // namespace stepcast
