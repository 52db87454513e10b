#include "kernels/cudnn/capture/gpu_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

extern char** environ;

namespace stepcast {
namespace {

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got; (got = read(file, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

/// The first line of a text, without blanks at its ends.
std::string one_line(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string::npos) return "";
  const std::string line = text.substr(begin, text.find('\n', begin) - begin);
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

}  // namespace

ProgramOutput output_of(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool started = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ProgramOutput output;
  if (started) output.text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  if (!started || waitpid(child, &status, 0) != child) return {};
  output.ran = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return output;
}

std::string gpu_state(const std::string& pci_bus) {
  for (const char* reasons :
       {"clocks_event_reasons.active", "clocks_throttle_reasons.active"}) {  // names in new and old drivers
    const ProgramOutput smi =
        output_of({"nvidia-smi", "--id=" + pci_bus,
                   fmt::format("--query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw,{}", reasons),
                   "--format=csv,noheader"});
    if (smi.ran)
      return fmt::format("SM clock, memory clock, degrees Celsius, power, throttle reasons: {}",
                         one_line(smi.text));
  }
  return "nvidia-smi failed: clocks and temperature are unknown";
}

}  // namespace stepcast
