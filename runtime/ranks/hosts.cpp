#include "runtime/ranks/hosts.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "core/parse_number.hpp"

namespace stepcast {
namespace {

constexpr int kMaxSlots = 64;

/// True for the address of one interface.
bool is_address(const std::string& text) {
  in_addr address{};
  return inet_pton(AF_INET, text.c_str(), &address) == 1 && address.s_addr != INADDR_ANY;
}

/// A name that ssh cannot take for an option, nor a shell for anything but a word.
bool is_host_name(const std::string& text) {
  return !text.empty() && text.size() <= 253 && text.front() != '-' &&
         std::ranges::all_of(text, [](unsigned char c) {
           return (c < 128 && std::isalnum(c) != 0) || c == '.' || c == '-' || c == '_';
         });
}

/// One word of a line, with its place for messages.
struct Word {
  std::string text, place;
};

std::vector<Word> words_of(const std::string& line, const std::string& file, int number) {
  std::vector<Word> words;
  const std::string text = line.substr(0, line.find('#'));
  for (std::size_t at = text.find_first_not_of(" \t\r"); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \t\r", at), text.size());
    words.push_back({text.substr(at, end - at), fmt::format("{}:{}:{}", file, number, at + 1)});
    at = text.find_first_not_of(" \t\r", end);
  }
  return words;
}

[[noreturn]] void refuse(const Word& word, const std::string& what) {
  throw InputError(fmt::format("{}: expected {}, got \"{}\"", word.place, what, word.text));
}

Host host_of_words(const std::vector<Word>& words) {
  Host host{words.front().text};
  if (!is_host_name(host.name)) refuse(words.front(), "a host name of letters, digits, '.', '_' and '-'");
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    const std::string value = text.substr(std::min(text.find('='), text.size() - 1) + 1);
    if (text.starts_with("slots=")) {
      const auto slots = parse_integer(value);
      if (!slots || *slots < 1 || *slots > kMaxSlots) refuse(words[i], "slots=1 to slots=64");
      host.slots = static_cast<int>(*slots);
    } else if (text.starts_with("address=")) {
      if (!is_address(value)) refuse(words[i], "address=IPV4, the address of one interface");
      host.address = value;
    } else {
      refuse(words[i], "slots=N or address=IPV4");
    }
  }
  return host;
}

}  // namespace

std::vector<Host> read_hosts(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file));
  std::vector<Host> hosts;
  int number = 0, ranks = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<Word> words = words_of(line, file.string(), ++number);
    if (words.empty()) continue;
    hosts.push_back(host_of_words(words));
    ranks += hosts.back().slots;
    if (ranks > kMaxSlots) refuse(words.front(), "at most 64 slots in all, those of this host included");
  }
  if (hosts.empty())
    throw InputError(fmt::format("{}:1:1: expected a host, got an empty file", file.string()));
  return hosts;
}

BindAddress read_bind_address(const std::string& text) {
  BindAddress bind{text.substr(0, text.find(':'))};
  const bool has_port = bind.address.size() < text.size();
  const auto port = has_port ? parse_integer(text.substr(bind.address.size() + 1)) : 0;
  if (!is_address(bind.address) || !port || *port < (has_port ? 1 : 0) || *port > 65535)
    throw InputError(fmt::format(
        "--bind: expected ADDRESS or ADDRESS:PORT with the IPv4 address of one interface, got \"{}\"", text));
  bind.port = static_cast<int>(*port);
  return bind;
}

}  // namespace stepcast
