#pragma once

#include <functional>
#include <string>

namespace stepcast {

/// Asks on the terminal for what no option gave. Where there is none, or with --yes, the default is taken.
class Questions {
 public:
  /// @param yes  ask nothing
  explicit Questions(bool yes);

  /// The option's text, or the answer. `check` throws InputError for a bad one, which is asked again.
  std::string answer(const std::string& given, const std::string& question, const std::string& otherwise,
                     const std::function<void(const std::string&)>& check) const;

  /// An integer from 1 to `most`.
  int number(const std::string& given, const std::string& option, const std::string& question, int otherwise,
             int most) const;

  /// The text of a bandwidth, or "none".
  std::string rate(const std::string& given, const std::string& option, const std::string& question,
                   const std::string& otherwise) const;

 private:
  bool asks_;
};

/// @throws InputError `WHAT: expected an integer from LEAST to MOST, got "TEXT"`
int whole_number(const std::string& what, const std::string& text, int least, int most);

}  // namespace stepcast
