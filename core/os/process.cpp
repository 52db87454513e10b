#include "core/os/process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "core/error.hpp"
#include "core/os/files.hpp"

namespace stepcast {

Bytes machine_memory() {
  return {static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)};
}

namespace {

constexpr const char* kErrors = "errors.txt";

/// Standard input, output and error of the child process, and its working folder.
class FileActions {
 public:
  explicit FileActions(const std::filesystem::path& folder) {
    check(::posix_spawn_file_actions_init(&actions_));
    check(::posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str()));
    check(::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
    check(::posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0));
    check(::posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, kErrors, O_WRONLY | O_CREAT | O_TRUNC,
                                             0666));
  }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }

  const posix_spawn_file_actions_t& actions() const { return actions_; }

 private:
  static void check(int error) {
    if (error != 0) throw std::system_error(error, std::generic_category());
  }
  posix_spawn_file_actions_t actions_;
};

/// The caller's environment with LC_ALL=C.UTF-8.
std::vector<std::string> environment() {
  std::vector<std::string> variables{"LC_ALL=C.UTF-8"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("LC_ALL=")) variables.emplace_back(*variable);
  }
  return variables;
}

/// The null-terminated array of pointers into `texts` that exec takes.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category());
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

FinishedChild run_child(const std::vector<std::string>& arguments, const std::filesystem::path& folder) {
  const FileActions files(folder);
  auto texts = arguments;
  auto variables = environment();
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, texts.front().c_str(), &files.actions(), nullptr,
                                   pointers(texts).data(), pointers(variables).data());
  if (error == ENOENT || error == EACCES) return {};
  if (error != 0) throw std::system_error(error, std::generic_category());
  const int status = wait_for(child);
  return {true, status, read_file(folder / kErrors)};
}

namespace {

// A signal handler has no argument for user data, so its result must be a global variable.
volatile sig_atomic_t seen = 0;
int guards = 0;  // number of nested guards

void on_signal(int) {
  seen = 1;
}

}  // namespace

SignalGuard::SignalGuard() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART, so that poll returns
  if (guards++ == 0) seen = 0;
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
  sigaction(SIGHUP, &action, &old_hup_);
  if (old_hup_.sa_handler == SIG_IGN) sigaction(SIGHUP, &old_hup_, nullptr);
}

SignalGuard::~SignalGuard() {
  --guards;
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGHUP, &old_hup_, nullptr);
}

bool SignalGuard::interrupted() {
  return seen != 0;
}

void SignalGuard::stop_if_interrupted() {
  if (interrupted()) throw Interrupted("interrupted");
}

}  // namespace stepcast
