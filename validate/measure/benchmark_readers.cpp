#include "validate/measure/benchmark_readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"

namespace stepcast {

namespace {

constexpr double kLargest = 1e18;                    // largest number accepted in a file
constexpr double kShortest = 1e-12, kLongest = 1e6;  // accepted times of a message [s]
constexpr double kSlowest = 1, kFastest = 1e17;  // accepted bytes a second: a platform file must hold the fit

enum class Kind { unknown, message, bandwidth, all_reduce };

/// Pairs of bytes and microseconds (bandwidth tests: MB/s) as a file states them.
struct BenchmarkFigures {
  Kind kind = Kind::unknown;
  std::string what;
  int ranks = 0;
  std::vector<std::pair<double, double>> rows;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Kind kind_of(std::string_view name) {
  if (contains(name, "all_reduce") || contains(name, "Allreduce")) return Kind::all_reduce;
  if (contains(name, "Bandwidth")) return Kind::bandwidth;
  if (contains(name, "sendrecv") || contains(name, "Latency")) return Kind::message;
  return Kind::unknown;
}

[[noreturn]] void refuse(const std::string& file, int line, const std::string& what) {
  throw InputError(fmt::format("{}:{}:1: {}", file, line, what));
}

/// Reads `# Rank  3 Group ...` of nccl-tests, `# OSU MPI ... Test`, or `# Collective test starting: NAME`.
void read_comment(const std::string& line, BenchmarkFigures& figures) {
  if (contains(line, " Rank ") && contains(line, " on ")) ++figures.ranks;
  if (contains(line, "Collective test starting") || (contains(line, "OSU ") && contains(line, "Test"))) {
    figures.kind = kind_of(line);
    figures.what = line.substr(line.find_first_not_of("# "));
  }
  if (figures.kind == Kind::unknown && contains(line, "_perf")) figures.kind = kind_of(line);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

double number_in(const std::string& word, const std::string& file, int line) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(word, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != word.size() || !(value >= 0) || value > kLargest) {
    refuse(file, line, fmt::format("expected a number, got \"{}\"", word.substr(0, 40)));
  }
  return value;
}

BenchmarkFigures read_text(std::string_view text, const std::string& file) {
  BenchmarkFigures figures;
  std::istringstream lines{std::string(text)};
  std::size_t time_column = 5;  // of nccl-tests, unless its header says another one
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (words.front().front() == '#') {
      read_comment(line, figures);
      const auto columns = nccl_tests_time_columns(line);
      if (!columns.empty()) time_column = columns.front();
    } else if (std::isdigit(static_cast<unsigned char>(words.front().front())) != 0) {
      // nccl-tests: size count type redop root time ...; OSU: size time ...
      const std::size_t column =
          words.size() >= 9 && words[2].find_first_of("0123456789") != 0 ? time_column : 1;
      if (words.size() <= column) refuse(file, number, "expected a size and a time");
      figures.rows.emplace_back(number_in(words.front(), file, number),
                                number_in(words[column], file, number));
    }
  }
  return figures;
}

BenchmarkFigures read_json(std::string_view text, const std::string& file) {
  BenchmarkFigures figures;
  const auto root = nlohmann::json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object()) refuse(file, 1, "expected the JSON of nccl-tests");
  try {
    figures.what = root.at("args").at(0).get<std::string>();
    figures.kind = kind_of(figures.what);
    if (root.contains("config")) figures.ranks = static_cast<int>(root.at("config").at("devices").size());
    for (const auto& row : root.at("results")) {
      const auto& times = row.at("out_of_place").is_null() ? row.at("in_place") : row.at("out_of_place");
      const double size = row.at("size").get<double>(), time = times.at("time").get<double>();
      for (const double one : {size, time}) {
        if (!(one >= 0 && one <= kLargest))
          refuse(file, 1, fmt::format("expected a size and a time, got {:.6g}", one));
      }
      figures.rows.emplace_back(size, time);
    }
  } catch (const nlohmann::json::exception&) {
    refuse(file, 1,
           "expected the JSON of nccl-tests: args, config.devices, results of size and out_of_place.time");
  }
  return figures;
}

MessageTime message_of(const BenchmarkFigures& figures, double bytes, double value) {
  if (figures.kind == Kind::bandwidth) return {{bytes}, {bytes / (1e6 * value)}};
  if (figures.kind == Kind::message) return {{bytes}, {1e-6 * value}};
  return {{bytes / figures.ranks}, {1e-6 * value / (2 * (figures.ranks - 1))}};
}

void check_message(const MessageTime& message, const std::string& file) {
  const double bytes = message.size.value, seconds = message.time.value;
  if (!(seconds > kShortest && seconds < kLongest)) {
    refuse(file, 1,
           fmt::format("expected a time between 1e-12 and 1e6 s for a message, got {:.6g} s for {:.6g} bytes",
                       seconds, bytes));
  }
  if (!(bytes >= kSlowest * seconds && bytes <= kFastest * seconds)) {
    refuse(
        file, 1,
        fmt::format("expected between 1 and 1e17 bytes a second, got {:.6g} s for a message of {:.6g} bytes",
                    seconds, bytes));
  }
}

}  // namespace

BenchmarkTimes read_benchmark(std::string_view text, const std::string& file_name, int ranks) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != std::string_view::npos && text[begin] == '{';
  BenchmarkFigures figures = json ? read_json(text, file_name) : read_text(text, file_name);
  if (figures.kind == Kind::unknown)
    figures.kind = kind_of(file_name);  // older nccl-tests do not name the test
  if (figures.kind == Kind::unknown) {
    refuse(file_name, 1,
           "expected output of nccl-tests (sendrecv_perf, all_reduce_perf) or OSU (osu_latency, osu_bw, "
           "osu_allreduce) with its header");
  }
  if (figures.ranks == 0) figures.ranks = ranks;
  if (figures.kind == Kind::all_reduce && figures.ranks < 2) {
    refuse(file_name, 1,
           "the file does not say how many ranks this all-reduce had: give --ranks N (2 or more)");
  }
  BenchmarkTimes benchmark{figures.what, figures.ranks, {}};
  std::set<double> sizes;
  for (const auto& [bytes, value] : figures.rows) {
    if (!(bytes > 0 && value > 0)) continue;
    benchmark.times.push_back(message_of(figures, bytes, value));
    sizes.insert(bytes);
    check_message(benchmark.times.back(), file_name);
  }
  if (sizes.size() < 2) refuse(file_name, 1, "expected rows of at least two sizes");
  return benchmark;
}

namespace {

constexpr double kLargestFigure = 1e15;  // bytes and microseconds that a file may state
constexpr std::size_t kMostRows = 100'000;

[[noreturn]] void refuse_line(const std::string& file, int line, const std::string& what) {
  throw InputError(fmt::format("{}:{}:1: {}", file, line, what));
}

std::vector<std::string> words_of_table(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// "all_reduce" of a text with "all_reduce_perf"; empty if there is no such program.
std::string operation_in(const std::string& line) {
  const auto end = line.find("_perf");
  if (end == std::string::npos) return "";
  auto begin = end;
  while (begin > 0 &&
         (std::islower(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_'))
    --begin;
  return line.substr(begin, end - begin);
}

bool is_rank(const std::vector<std::string>& words) {
  return words.size() > 3 && words[0] == "#" && words[1] == "Rank" && parse_integer(words[2]).has_value();
}

/// A time in microseconds; nothing for "N/A".
std::optional<Seconds> time_of(const std::string& word, const std::string& file, int line) {
  if (word == "N/A") return std::nullopt;
  const auto number = parse_number(word);
  if (!number || *number < 0 || *number > kLargestFigure)
    refuse_line(file, line, fmt::format("expected a time in us, got \"{}\"", word.substr(0, 40)));
  return Seconds{1e-6 * *number};
}

/// The columns of times in a row without a header before it, by its number of words: 13 with a root, 12
/// without it, 11 without a redop too. Rows without in-place times have 9, 8 and 7 words.
std::vector<std::size_t> usual_columns(std::size_t words) {
  if (words >= 13) return {5, 9};
  if (words == 12) return {4, 8};
  if (words == 11) return {3, 7};
  return {words == 9 ? std::size_t{5} : words == 8 ? std::size_t{4} : std::size_t{3}};
}

/// Keeps the bandwidths beside the first time, if they are the greatest so far.
void read_bandwidths(const std::vector<std::string>& words, std::size_t time, NcclTests& tests) {
  if (words.size() <= time + 2) return;
  const auto algorithm = parse_number(words[time + 1]), bus = parse_number(words[time + 2]);
  if (!algorithm || !bus || *algorithm <= tests.algorithm_bandwidth || *algorithm > kLargestFigure) return;
  tests.algorithm_bandwidth = *algorithm;
  tests.bus_bandwidth = *bus;
}

void read_row(const std::vector<std::string>& words, const std::vector<std::size_t>& header, NcclTests& tests,
              const std::string& file, int line) {
  const auto size = parse_integer(words.front());
  if (!size || static_cast<double>(*size) > kLargestFigure)
    return;  // a line of a log that begins with a digit
  const std::vector<std::size_t> columns = header.empty() ? usual_columns(words.size()) : header;
  if (words.size() <= columns.front()) refuse_line(file, line, "expected a size and a time");
  NcclTestsRow row{{static_cast<double>(*size)}, time_of(words[columns.front()], file, line), {}};
  if (columns.size() > 1 && words.size() > columns[1]) row.in_place = time_of(words[columns[1]], file, line);
  if (row.size.value <= 0 || (!row.out_of_place && !row.in_place)) return;
  if (row.time().value <= 0) refuse_line(file, line, "expected a time above 0");
  if (tests.rows.size() == kMostRows) refuse_line(file, line, fmt::format("more than {} rows", kMostRows));
  tests.rows.push_back(row);
  read_bandwidths(words, columns.front(), tests);
}

NcclTests read_nccl_text(std::string_view text, const std::string& file) {
  NcclTests tests;
  std::vector<std::size_t> columns;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> words = words_of_table(line);
    if (words.empty()) continue;
    if (is_rank(words)) ++tests.ranks;
    if (words.front().front() == '#') {
      if (tests.operation.empty()) tests.operation = operation_in(line);
      const auto header = nccl_tests_time_columns(line);
      if (!header.empty()) columns = header;
    } else if (std::isdigit(static_cast<unsigned char>(words.front().front())) != 0 && words.size() > 3) {
      read_row(words, columns, tests, file, number);
    }
  }
  return tests;
}

std::optional<Seconds> json_time(const nlohmann::json& row, const char* key, const std::string& file) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return std::nullopt;
  const double time = found->at("time").get<double>();
  if (!(time > 0 && time <= kLargestFigure))
    refuse_line(file, 1, fmt::format("expected a time in us, got {:.6g}", time));
  return Seconds{1e-6 * time};
}

NcclTests read_nccl_json(std::string_view text, const std::string& file) {
  NcclTests tests;
  const auto root = nlohmann::json::parse(text, nullptr, false);
  if (root.is_discarded() || !root.is_object()) refuse_line(file, 1, "expected the JSON of nccl-tests");
  try {
    tests.operation = operation_in(root.at("args").at(0).get<std::string>());
    if (root.contains("config")) tests.ranks = static_cast<int>(root.at("config").at("devices").size());
    for (const auto& row : root.at("results")) {
      const double size = row.at("size").get<double>();
      if (!(size >= 0 && size <= kLargestFigure))
        refuse_line(file, 1, fmt::format("expected a size, got {:.6g}", size));
      const NcclTestsRow read{{size}, json_time(row, "out_of_place", file), json_time(row, "in_place", file)};
      if (size > 0 && (read.out_of_place || read.in_place)) tests.rows.push_back(read);
    }
  } catch (const nlohmann::json::exception&) {
    refuse_line(
        file, 1,
        "expected the JSON of nccl-tests: args, config.devices, results of size and out_of_place.time");
  }
  return tests;
}

}  // namespace

Seconds NcclTestsRow::time() const {
  if (!in_place) return *out_of_place;
  return out_of_place ? std::min(*out_of_place, *in_place) : *in_place;
}

std::vector<std::size_t> nccl_tests_time_columns(const std::string& line) {
  const std::vector<std::string> words = words_of_table(line);
  if (words.size() < 4 || words[0] != "#" || words[1] != "size" || words[2] != "count") return {};
  std::vector<std::size_t> columns;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "time") columns.push_back(i - 1);
  }
  return columns;
}

NcclTests read_nccl_tests(std::string_view text, const std::string& file_name) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != std::string_view::npos && text[begin] == '{';
  NcclTests tests = json ? read_nccl_json(text, file_name) : read_nccl_text(text, file_name);
  if (tests.rows.empty())
    refuse_line(file_name, 1, "expected a table of nccl-tests: no row has a size and a time");
  return tests;
}

}  // namespace stepcast
