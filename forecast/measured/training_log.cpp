#include "forecast/measured/training_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"

namespace stepcast {
namespace {

/// The relation of the number that a trainer prints to the column.
enum class Printed { as_it_is, milliseconds, steps_per_second, of_one_worker };

/// A trainer's line of a step: it has the word `needs`, and a number right after or right before `mark`.
struct LogFormat {
  const char* needs;
  const char* mark;
  bool before = false;
  const char* column;
  Printed printed = Printed::as_it_is;
};

constexpr std::array<LogFormat, 7> kFormats{
    {{"elapsed time per iteration", "elapsed time per iteration (ms):", false, "step_seconds",
      Printed::milliseconds},
     {"step:", "tps:", false, "tokens_per_second_per_device"},
     {"CurrSamplesPerSec=", "CurrSamplesPerSec=", false, "samples_per_second"},
     {"Epoch: [", "Time", false, "step_seconds"},
     {"Epoch ", "it/s", true, "step_seconds", Printed::steps_per_second},
     {"Epoch ", "s/it", true, "step_seconds"},
     {"Iter #", "img/sec per", true, "samples_per_second", Printed::of_one_worker}}};

bool is_of_number(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == ',';
}

/// "7,212" is 7212.
std::optional<double> number_of(std::string text) {
  std::erase(text, ',');
  return parse_number(text);
}

/// The number right after a place in a line, behind blanks.
std::optional<double> number_after(std::string_view line, std::size_t place) {
  const auto begin = line.find_first_not_of(" \t", place);
  if (begin == std::string_view::npos) return std::nullopt;
  auto end = begin;
  while (end < line.size() && is_of_number(line[end])) ++end;
  while (end > begin && line[end - 1] == ',') --end;
  return number_of(std::string(line.substr(begin, end - begin)));
}

std::optional<double> number_before(std::string_view line, std::size_t place) {
  while (place > 0 && line[place - 1] == ' ') --place;
  auto begin = place;
  while (begin > 0 && is_of_number(line[begin - 1])) --begin;
  return number_of(std::string(line.substr(begin, place - begin)));
}

std::optional<double> number_in(std::string_view line, const LogFormat& format) {
  const auto place = line.find(format.mark);
  if (place == std::string_view::npos || line.find(format.needs) == std::string_view::npos)
    return std::nullopt;
  const auto number = format.before ? number_before(line, place)
                                    : number_after(line, place + std::string_view(format.mark).size());
  return number && *number > 0 ? number : std::nullopt;
}

/// Progress bars end their lines with carriage returns.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\n\r"), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<double> workers_in(const std::vector<std::string_view>& lines) {
  for (const std::string_view line : lines) {
    for (const std::string_view mark : {"using world size:", "Number of GPUs:"}) {
      const auto place = line.find(mark);
      if (place == std::string_view::npos) continue;
      if (const auto number = number_after(line, place + mark.size())) return number;
    }
  }
  return std::nullopt;
}

double in_column(double number, Printed printed, double workers) {
  switch (printed) {
    case Printed::as_it_is:
      return number;
    case Printed::milliseconds:
      return number / 1000;
    case Printed::steps_per_second:
      return 1 / number;
    case Printed::of_one_worker:
      return workers * number;
  }
  return number;
}

/// The numbers of the first format that a line of the text has.
std::pair<const LogFormat*, std::vector<double>> printed_steps(const std::vector<std::string_view>& lines) {
  for (const LogFormat& format : kFormats) {
    std::vector<double> numbers;
    for (const std::string_view line : lines) {
      if (const auto number = number_in(line, format)) numbers.push_back(*number);
    }
    if (!numbers.empty()) return {&format, numbers};
  }
  return {nullptr, {}};
}

}  // namespace

RunFile parse_run_file(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || !parse_integer(text.substr(0, equals))) return {"", text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Results read_runs(const RunFile& file) {
  constexpr std::size_t kWarmUpShare = 10;
  const std::string text = read_file(file.file);
  const auto lines = lines_of(text);
  const auto [format, numbers] = printed_steps(lines);
  if (format == nullptr) return read_csv(text, file.file);
  const auto workers = file.workers.empty() ? workers_in(lines) : parse_number(file.workers);
  if (!workers)
    throw InputError(fmt::format(
        "{0}: the log does not say of how many workers it is; write their number before it, such as 8={0}",
        file.file));
  const std::size_t warm_up =
      std::min(std::max<std::size_t>(1, numbers.size() / kWarmUpShare), numbers.size() - 1);
  Results runs;
  for (std::size_t i = warm_up; i < numbers.size(); ++i) {
    Row row;
    row.set("workers", static_cast<std::int64_t>(*workers));
    row.set(format->column, in_column(numbers[i], format->printed, *workers));
    row.set("source", file.file);
    runs.rows.push_back(std::move(row));
  }
  return runs;
}

}  // namespace stepcast
