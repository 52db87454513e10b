#include "commands/scenario_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

namespace stepcast {

void add_results_folder(const Command& command, std::string& folder, const std::string& help) {
  command.add_option("-o,--output", folder, help).type_name("DIR");
}

void add_jobs(const Command& command, int& jobs, const std::string& tasks) {
  const std::string help =
      fmt::format("Number of {} that run at the same time. Default: the number of cores.", tasks);
  command.add_option("-j,--jobs", jobs, help).range(1, 4096);
}

int jobs_or_cores(int jobs) {
  return jobs > 0 ? jobs : std::max<int>(1, std::thread::hardware_concurrency());
}

void add_settings(const Command& command, std::vector<std::string>& settings) {
  command
      .add_option("--set", settings,
                  "Replace a value of the scenario, such as strategy.bucket=\"25 MiB\". KEY=null removes the "
                  "key. The option can be given several times.")
      .type_name("KEY=VALUE")
      .one_value();
}

void add_memory_limit(const Command& command, std::string& limit, const std::string& consequence) {
  const std::string help = fmt::format(
      "{} if all processes together would need more memory than this, such as \"8 GiB\". Default: 80 % of "
      "the machine's memory.",
      consequence);
  command.add_option("--memory-limit", limit, help).type_name("SIZE");
}

void add_no_advice(const Command& command, bool& no_advice) {
  command.add_flag("--no-advice", no_advice,
                   "Skip the simulations of what a user can change, which take some 15 % of the time.");
}

std::string how_to_resume(const std::string& kept) {
  return "continue with --resume (" + kept + ")";
}

void add_time_limit(const Command& command, std::string& limit, const std::string& condition) {
  const std::string help =
      fmt::format("{} would take longer than this, such as \"2 h\". Default: 1 h.", condition);
  command.add_option("--time-limit", limit, help).type_name("TIME");
}

}  // namespace stepcast
