#include "core/cli/command_line.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "core/text.hpp"

namespace stepcast {

namespace {

constexpr const char* kOutput = "standard output";

using JsonTable = std::pair<std::string, std::vector<std::string>>;

std::vector<JsonTable>& json_tables() {
  static std::vector<JsonTable> tables;
  return tables;
}

/// The text of a file that a command has written for standard output.
std::string& printed_file() {
  static std::string text;
  return text;
}

bool& quiet() {
  static bool is_quiet = false;
  return is_quiet;
}

double seconds(const timeval& time) {
  return time.tv_sec + 1e-6 * time.tv_usec;
}

}  // namespace

bool output_is_quiet() {
  return quiet();
}

CommandOutput::CommandOutput(const OutputOptions& options) {
  quiet() = options.quiet;
  if (!options.quiet && !options.json) return;
  std::fflush(stdout);
  json_tables().clear();
  real_ = dup(STDOUT_FILENO);
  const int other = options.quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : STDERR_FILENO;
  if (real_ < 0 || other < 0 || dup2(other, STDOUT_FILENO) < 0)
    throw InputError("standard output cannot be replaced: " + std::generic_category().message(errno));
  if (options.quiet) close(other);
}

CommandOutput::~CommandOutput() {
  quiet() = false;
  if (real_ < 0) return;
  std::fflush(stdout);
  dup2(real_, STDOUT_FILENO);
  close(real_);
}

void CommandOutput::write_json() const {
  std::vector<std::string> members;
  for (const auto& [table, rows] : json_tables())
    members.push_back(fmt::format("\"{}\":[{}]", table, fmt::join(rows, ",")));
  write(fmt::format("{{{}}}\n", fmt::join(members, ",")));
}

void CommandOutput::write(const std::string& text) const {
  std::fflush(stdout);
  const int output = real_ < 0 ? STDOUT_FILENO : real_;
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(output, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_unwritable(kOutput, "cannot write", errno);
    written += count;
  }
}

void add_json_row(const std::string& table, const std::string& row) {
  auto& tables = json_tables();
  auto found = std::ranges::find(tables, table, &JsonTable::first);
  if (found == tables.end()) found = tables.insert(tables.end(), {table, {}});
  std::string line = row;
  while (line.ends_with('\n')) line.pop_back();
  found->second.push_back(std::move(line));
}

std::string resources_used() {
  double cpu = 0;
  long most = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    cpu += seconds(usage.ru_utime) + seconds(usage.ru_stime);
    most = std::max(most, usage.ru_maxrss);  // KiB
  }
  return fmt::format("{:.1f} CPU s, at most {:.0f} MB a process", cpu, 1024e-6 * most);
}

namespace {

std::vector<std::string> command_names(const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::App* one : command->get_subcommands({})) names.push_back(one->get_name());
  return names;
}

/// "--draws", "-j" and so on: all options of a command.
std::vector<std::string> option_names(const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// One line about an invalid command line. CLI11's own message does not name the nearest word.
std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* command = app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const auto rest = command->remaining();
  const auto option =
      std::ranges::find_if(rest, [](const std::string& word) { return word.starts_with('-'); });
  const bool no_command = command->get_require_subcommand_min() > 0 && !rest.empty();
  std::string text = error.what();
  if (option != rest.end() || no_command) {
    const bool is_option = option != rest.end();
    const std::string word = is_option ? option->substr(0, option->find('=')) : rest.front();
    text = fmt::format("there is no {} \"{}\"", is_option ? "option" : "command", printable(word));
    const bool letter = is_option && !word.starts_with("--");  // no letter is nearer than another
    if (!letter) text += word_advice(word, is_option ? option_names(command) : command_names(command));
  }
  return fmt::format("{}: {} (see --help)\n", app->get_name(), text);
}

}  // namespace

Option Option::required() const {
  return Option(option_->required());
}

Option Option::type_name(const std::string& name) const {
  return Option(option_->type_name(name));
}

Option Option::range(int least, int most) const {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::range(double least, double most) const {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::one_of(const std::vector<std::string>& words) const {
  const auto check = [words](const std::string& text) -> std::string {
    if (std::ranges::find(words, text) != words.end()) return "";
    return fmt::format("expected one of {}, got \"{}\"{}", fmt::join(words, ", "), printable(text),
                       word_advice(text, words));
  };
  if (option_->get_type_name() == "TEXT") option_->type_name("NAME");
  return Option(option_->check(CLI::Validator(check, fmt::format("{{{}}}", fmt::join(words, ",")))));
}

Option Option::show_default() const {
  return Option(option_->capture_default_str());
}

Option Option::one_value() const {
  return Option(option_->allow_extra_args(false));
}

Option Option::values(int count) const {
  return Option(option_->expected(count));
}

Option Option::transform(const std::function<std::string(const std::string&)>& read) const {
  return Option(option_->transform(read, ""));
}

Option Option::delimiter(char separator) const {
  return Option(option_->delimiter(separator));
}

Option Option::excludes(const Option& other) const {
  return Option(option_->excludes(other.option_));
}

bool Option::given() const {
  return option_->count() > 0;
}

Command Command::add_subcommand(const std::string& name, const std::string& description) const {
  return Command(app_->add_subcommand(name, description));
}

template <class Value>
Option Command::add_option(const std::string& names, Value& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

template Option Command::add_option(const std::string&, int&, const std::string&) const;
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&) const;
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Command::add_option(const std::string&, double&, const std::string&) const;
template Option Command::add_option(const std::string&, std::string&, const std::string&) const;
template Option Command::add_option(const std::string&, std::filesystem::path&, const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<int>&, const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::int64_t>&, const std::string&) const;
template Option Command::add_option(const std::string&, std::vector<std::string>&, const std::string&) const;

Option Command::add_flag(const std::string& names, bool& value, const std::string& help) const {
  return Option(app_->add_flag(names, value, help));
}

void Command::footer(const std::string& text) const {
  app_->footer(text);
}

void Command::require_subcommand() const {
  app_->require_subcommand(1);
}

void Command::callback(const std::function<void()>& work, Json json) const {
  const auto options = std::make_shared<OutputOptions>();
  app_->add_flag("-q,--quiet", options->quiet, "Print nothing but errors.");
  app_->add_flag("-v,--verbose", options->verbose,
                 "Also print the version, and processor time and memory at the end.");
  if (json == Json::yes)
    app_->add_flag("--json", options->json,
                   "Print the tables as one JSON object on standard output, and all else on standard error.");
  app_->callback([work, options, app = app_] {
    const CLI::App* program = app;
    while (program->get_parent() != nullptr) program = program->get_parent();
    if (options->verbose) fmt::print(stderr, "{}\n", program->version());
    const CommandOutput output(*options);
    try {
      work();
    } catch (const std::exception&) {  // such as PointsFailed: the rows of all other points are results
      if (options->json && !json_tables().empty()) output.write_json();
      throw;
    }
    if (options->json) output.write_json();
    output.write(std::exchange(printed_file(), {}));
    if (options->verbose) fmt::print(stderr, "{}\n", resources_used());
  });
}

void Command::callback_with_file(const std::function<void()>& work, std::string& file,
                                 const std::string& stem) const {
  callback([work, name = &file, stem] {
    if (*name != "-") return work();
    const WorkFolder folder;
    *name = (folder.path() / (stem + ".yaml")).string();
    const CommandOutput silent({.quiet = true});
    work();
    printed_file() = read_file(*name);
  });
}

namespace {

std::string first_sentence(const std::string& text) {
  return text.substr(0, text.find(". "));
}

CommandOption description_of(const CLI::Option& option) {
  CommandOption described{.help = first_sentence(option.get_description())};
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  if (option.get_expected_max() == 0) return described;  // a flag
  described.type = option.get_type_name();               // "NAME:{one,other}" where only these are allowed
  const auto begin = described.type.find(":{");
  if (begin == std::string::npos) return described;
  std::istringstream words(described.type.substr(begin + 2, described.type.rfind('}') - begin - 2));
  for (std::string word; std::getline(words, word, ',');) described.words.push_back(word);
  return described;
}

void add_options(const CLI::App& command, std::vector<CommandOption>& options) {
  for (const CLI::Option* option : command.get_options()) options.push_back(description_of(*option));
}

void add_descriptions(const CLI::App& command, const std::string& path,
                      std::vector<CommandDescription>& all) {
  CommandDescription described{.path = path};
  add_options(command, described.options);
  const std::vector<const CLI::App*> inner = command.get_subcommands({});
  for (const CLI::App* one : inner)
    described.subcommands.emplace_back(one->get_name(), first_sentence(one->get_description()));
  all.push_back(std::move(described));
  for (const CLI::App* one : inner)
    add_descriptions(*one, (path.empty() ? "" : path + " ") + one->get_name(), all);
}

}  // namespace

std::vector<CommandDescription> Command::descriptions() const {
  std::vector<CommandDescription> all;
  add_descriptions(*app_, "", all);
  return all;
}

CommandLine::CommandLine(const std::string& program, const std::string& version,
                         const std::string& description)
    : app_(std::make_unique<CLI::App>(description, program)) {
  app_->set_version_flag("--version", program + " " + version);
  app_->failure_message(usage_error);
}

CommandLine::~CommandLine() = default;

namespace {

/// Runs the command. Standard output is buffered, so only its last flush tells whether all was written.
ExitCode parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // or --help, which CLI11 prints here
    std::ostringstream help;
    if (app.exit(error, help) != 0) return ExitCode::bad_input;
    std::fputs(help.str().c_str(), stdout);
  }
  if (std::fflush(stdout) != 0) throw_unwritable(kOutput, "cannot write", errno);
  if (std::ferror(stdout) != 0)  // of an earlier flush, whose reason is not known any more
    throw DiskFull(std::string(kOutput) + ": not all of it could be written");
  return ExitCode::done;
}

}  // namespace

int CommandLine::run(int argc, const char* const* argv) {
  try {
    try {
      return static_cast<int>(parse(*app_, argc, argv));
    } catch (const std::system_error& error) {
      if (std::ferror(stdout) != 0) throw_unwritable(kOutput, "cannot write", error.code().value());
      throw;
    }
  } catch (const std::exception& error) {
    return report_failure(app_->get_name(), error);
  }
}

}  // namespace stepcast
