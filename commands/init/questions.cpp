#include "commands/init/questions.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "core/error.hpp"
#include "core/text.hpp"

namespace stepcast {

Questions::Questions(bool yes) : asks_(!yes && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0) {}

std::string Questions::answer(const std::string& given, const std::string& question,
                              const std::string& otherwise,
                              const std::function<void(const std::string&)>& check) const {
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

int Questions::number(const std::string& given, const std::string& option, const std::string& question,
                      int otherwise, int most) const {
  const auto check = [&](const std::string& text) { whole_number(option, text, 1, most); };
  return whole_number(option, answer(given, question, std::to_string(otherwise), check), 1, most);
}

std::string Questions::rate(const std::string& given, const std::string& option, const std::string& question,
                            const std::string& otherwise) const {
  return answer(given, question, otherwise, [&](const std::string& text) {
    if (text != "none" && !parse_quantity(text, Dimension::bytes_per_second))
      throw InputError(fmt::format("{}: expected a bandwidth such as \"200 Gbit/s\", got \"{}\"{}", option,
                                   printable(text), quantity_advice(text, Dimension::bytes_per_second)));
  });
}

int whole_number(const std::string& what, const std::string& text, int least, int most) {
  const auto number = parse_integer(text);
  if (!number || *number < least || *number > most)
    throw InputError(
        fmt::format("{}: expected an integer from {} to {}, got \"{}\"", what, least, most, printable(text)));
  return *number;
}

}  // namespace stepcast
