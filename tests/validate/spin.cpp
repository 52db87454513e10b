// spin PROCESS THREAD-NAME: makes a thread of a running process loop forever, as a bug would. It uses ptrace
// to set the thread's next instruction to one that jumps to itself, which it finds in the process's
// executable memory. Used by tests/faults.sh.
#include <elf.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

constexpr char kJumpToItself[] = "\xeb\xfe";  // x86-64

/// Address of the two bytes in executable memory of the process; 0: not found.
unsigned long jump_to_itself(int process) {
  const std::string folder = "/proc/" + std::to_string(process);
  std::ifstream maps(folder + "/maps");
  const int memory = open((folder + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  unsigned long found = 0;
  for (std::string line; found == 0 && std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    char may[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, may) != 3 || may[2] != 'x') continue;
    std::string code(end - begin, '\0');
    const ssize_t got = pread(memory, code.data(), code.size(), begin);
    if (got <= 0) continue;
    const auto at = code.substr(0, got).find(kJumpToItself);
    if (at != std::string::npos) found = begin + at;
  }
  close(memory);
  return found;
}

/// Finds a thread by its name; "" is the main thread.
int thread_named(int process, const std::string& name) {
  if (name.empty()) return process;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::string own;
    std::getline(std::ifstream(task.path() / "comm"), own);
    if (own == name) return std::atoi(task.path().filename().c_str());
  }
  return 0;
}

int complain(const char* what) {
  std::perror(what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: spin PROCESS THREAD-NAME\n"), 2;
  const int process = std::atoi(argv[1]), thread = thread_named(process, argv[2]);
  if (thread == 0) return std::fprintf(stderr, "spin: no thread of that name\n"), 3;
  const unsigned long jump = jump_to_itself(process);
  if (jump == 0) return std::fprintf(stderr, "spin: no jump to itself\n"), 1;
  if (ptrace(PTRACE_ATTACH, thread, nullptr, nullptr) != 0) return complain("spin: attach");
  waitpid(thread, nullptr, __WALL);
  user_regs_struct registers{};
  iovec all{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &all) != 0) return complain("spin: registers");
  registers.rip = jump;
  registers.orig_rax = ~0ul;  // do not restart a system call
  if (ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &all) != 0) return complain("spin: registers");
  ptrace(PTRACE_DETACH, thread, nullptr, nullptr);
  return 0;
}
