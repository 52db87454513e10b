#include "validate/measure/benchmark_readers.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "core/error.hpp"

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

}  // namespace stepcast
