#include "core/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "core/error.hpp"
#include "core/text.hpp"

namespace stepcast {
namespace {

/// One line about an invalid command line. CLI11's own message does not name the unknown word.
std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* command = app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const auto rest = command->remaining();
  const bool no_command = command->get_require_subcommand_min() > 0 && !rest.empty();
  std::string text = error.what();
  if (no_command) {
    std::vector<std::string> names;
    for (const CLI::App* one : command->get_subcommands({})) names.push_back(one->get_name());
    const bool option = rest.front().starts_with('-');
    const std::string nearest = option ? "" : nearest_word(rest.front(), names);
    text = fmt::format("there is no {} \"{}\"", option ? "option" : "command", printable(rest.front()));
    if (!nearest.empty()) text += fmt::format("; did you mean \"{}\"?", nearest);
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
  return Option(option_->check(CLI::IsMember(words)));
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

Command Command::add_option_group(const std::string& name) const {
  return Command(app_->add_option_group(name));
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

void Command::require_option() const {
  app_->require_option(1);
}

void Command::callback(const std::function<void()>& work) const {
  app_->callback(work);
}

CommandLine::CommandLine(const std::string& program, const std::string& version,
                         const std::string& description)
    : app_(std::make_unique<CLI::App>(description, program)) {
  app_->set_version_flag("--version", program + " " + version);
  app_->failure_message(usage_error);
}

CommandLine::~CommandLine() = default;

int CommandLine::run(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return static_cast<int>(ExitCode::done);
  } catch (const CLI::ParseError& error) {
    return static_cast<int>(app_->exit(error) == 0 ? ExitCode::done : ExitCode::bad_input);
  } catch (const std::exception& error) {
    return report_failure(app_->get_name(), error);
  }
}

}  // namespace stepcast
