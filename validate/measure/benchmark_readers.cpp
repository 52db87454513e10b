#include "validate/measure/benchmark_readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>
#include <sstream>

#include "core/error.hpp"
#include "core/text.hpp"

namespace stepcast {

namespace {

constexpr double kShortest = 1e-12, kLongest = 1e6;  // accepted times of a message [s]
constexpr double kSlowest = 1, kFastest = 1e17;  // accepted bytes a second: a platform file must hold the fit
constexpr double kLargestFigure = 1e15;          // bytes and microseconds that a file may state
constexpr std::size_t kMostRows = 100'000;

[[noreturn]] void refuse(const std::string& file, int line, const std::string& what) {
  throw InputError(fmt::format("{}:{}:1: {}", file, line, what));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool begins_with_digit(const std::string& word) {
  return std::isdigit(static_cast<unsigned char>(word.front())) != 0;
}

/// The line without the rank that `mpirun --tag-output` ("[1,0]<stdout>:") or `srun -l` ("0: ") puts before
/// it.
std::string without_rank(const std::string& line) {
  const auto first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return line;
  if (line[first] == '[') {
    const auto end = line.find(">:");
    const bool tag = end != std::string::npos && line.rfind("]<std", end) != std::string::npos;
    return tag ? line.substr(end + 2) : line;
  }
  const auto end = line.find_first_not_of("0123456789", first);
  const bool label = end != std::string::npos && end > first && line[end] == ':';
  return label ? line.substr(end + 1) : line;
}

/// Calls `read(line, words, number)` for each line that has words.
template <class Read>
void for_each_line(std::string_view text, const Read& read) {
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line = without_rank(line);
    if (const auto words = split_words(line); !words.empty()) read(line, words, number);
  }
}

/// The same of a command that a log repeats, such as "+ mpirun -np 16 ./build/all_gather_perf -b 8".
std::string operation_of_command(const std::string& line) {
  static const std::set<std::string> known{"all_reduce", "all_gather", "reduce_scatter",
                                           "alltoall",   "broadcast",  "reduce",
                                           "gather",     "scatter",    "sendrecv"};
  const std::string operation = nccl_operation_in(line);
  return known.contains(operation) ? operation : "";
}

/// What the lines before a table say of its rows.
struct NcclHeader {
  bool counts_wrong = false;            ///< the error is a number of wrong results
  std::size_t in_place = 4;             ///< columns from the first time to the second
  std::set<std::string> hosts, groups;  ///< of the ranks
};

/// Counts a line "# Rank  0 Group  0 Pid 1 on HOST device  0 [0x07] GPU".
void read_rank(const std::vector<std::string>& words, NcclTests& tests, NcclHeader& header) {
  if (words.size() < 4 || words[0] != "#" || words[1] != "Rank" || !parse_integer(words[2])) return;
  ++tests.ranks;
  const auto on = std::ranges::find(words, "on");
  if (on != words.end() && on + 1 != words.end()) header.hosts.insert(*(on + 1));
  if (words[3] == "Group" && words.size() > 4) header.groups.insert(words[4]);
}

/// Reads "# size count type redop root time algbw busbw #wrong ...". Source: writeResultHeader in
/// src/util.cu of nccl-tests.
/// @throws InputError for a second table, and for times of the host
void read_columns(const std::string& line, const NcclTests& tests, const std::string& file, int number,
                  NcclHeader& header) {
  constexpr std::size_t kPerIteration = 4;  // columns that -I puts between the two
  if (!tests.rows.empty()) refuse(file, number, "a second table begins here: give one table in a file");
  if (contains(line, "cputime"))
    refuse(file, number, "cputime is the time of the host's calls: run nccl-tests without -C");
  header.counts_wrong = contains(line, "#wrong");
  if (contains(line, "i_min")) header.in_place += kPerIteration;
}

std::optional<double> figure(const std::string& word) {
  const auto number = parse_number(word);
  return number && *number >= 0 && *number <= kLargestFigure ? number : std::nullopt;
}

/// True if a word of a row is a time in microseconds and the next one the bandwidth that follows from it.
/// Both are rounded.
bool is_time(const std::vector<std::string>& words, std::size_t column, double size) {
  if (words.size() < column + 2) return false;
  const auto time = figure(words[column]), bandwidth = figure(words[column + 1]);
  if (!time || !bandwidth || *time <= 0) return false;
  return std::abs(size / (1e3 * *time) - *bandwidth) <= 0.006 + *bandwidth * (0.01 + 0.006 / *time);
}

/// True if a column of a row counts wrong results.
bool is_wrong(const std::vector<std::string>& words, std::size_t column) {
  const auto wrong = words.size() > column ? figure(words[column]) : std::nullopt;
  return wrong && *wrong > 0;
}

/// Reads "size count type redop root time algbw busbw error time algbw busbw error". Versions of nccl-tests
/// leave out `root`, also `redop`, or leave `redop` blank: the columns of times are those that agree with
/// algbw.
void read_row(const std::vector<std::string>& words, const NcclHeader& header, NcclTests& tests,
              const std::string& file, int line) {
  const auto bytes = parse_integer(words.front());
  if (!bytes || (*bytes) > kLargestFigure) return;  // a line of a log that begins with a digit
  const double size = *bytes;
  if (size <= 0) return;
  for (std::size_t column = 3; column <= 5; ++column) {
    const std::size_t in_place = column + header.in_place;
    const bool first = is_time(words, column, size), second = is_time(words, in_place, size);
    const bool none = words.size() > column && words[column] == "N/A";
    if (!first && !(none && second)) continue;
    NcclTestsRow row{{size}, {}, {}};
    if (first) row.out_of_place = Seconds{1e-6 * *figure(words[column])};
    if (second) row.in_place = Seconds{1e-6 * *figure(words[in_place])};
    if (tests.rows.size() == kMostRows) refuse(file, line, fmt::format("more than {} rows", kMostRows));
    tests.rows.push_back(row);
    tests.types.insert(words[2]);
    constexpr std::size_t kWrong = 3;  // columns from a time to its #wrong
    const bool wrong =
        (first && is_wrong(words, column + kWrong)) || (second && is_wrong(words, in_place + kWrong));
    if (header.counts_wrong && wrong) ++tests.wrong_rows;
    const std::size_t known = first ? column : in_place;
    const double algorithm = *figure(words[known + 1]);
    const auto bus = words.size() > known + 2 ? figure(words[known + 2]) : std::nullopt;
    if (bus && algorithm > tests.algorithm_bandwidth)
      tests.algorithm_bandwidth = algorithm, tests.bus_bandwidth = *bus;
    return;
  }
  refuse(file, line, "expected size, count, type, a time in us and algbw = size / time in GB/s");
}

NcclTests read_nccl_text(std::string_view text, const std::string& file) {
  NcclTests tests;
  NcclHeader header;
  for_each_line(text, [&](const std::string& line, const std::vector<std::string>& words, int number) {
    if (words.front().front() == '#') {
      read_rank(words, tests, header);
      if (words.size() > 2 && words[1] == "size" && words[2] == "count")
        read_columns(line, tests, file, number, header);
      if (tests.operation.empty()) tests.operation = nccl_operation_in(line);
    } else if (begins_with_digit(words.front()) && words.size() > 3) {
      read_row(words, header, tests, file, number);
    } else if (tests.operation.empty()) {
      tests.operation = operation_of_command(line);
    }
  });
  if (header.groups.size() > 1)
    refuse(file, 1,
           fmt::format("its ranks run in {} groups at once (NCCL_TESTS_SPLIT): expected one",
                       header.groups.size()));
  tests.nodes = header.hosts.size();
  return tests;
}

}  // namespace

NcclTests read_nccl_tests(std::string_view text, const std::string& file_name) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  const bool json = begin != std::string_view::npos && text[begin] == '{';
  NcclTests tests = json ? read_nccl_json(text, file_name) : read_nccl_text(text, file_name);
  if (tests.operation.empty()) tests.operation = nccl_operation_in(file_name);
  if (tests.rows.empty())
    refuse(file_name, 1, "expected a table of nccl-tests: no row has a size and a time");
  return tests;
}

namespace {

/// Pairs of bytes and microseconds (bandwidth tests: MB/s) as the OSU micro-benchmarks print them.
struct OsuFigures {
  enum class Kind { unknown, message, bandwidth, all_reduce };
  Kind kind = Kind::unknown;
  std::string what;
  std::vector<std::pair<double, double>> rows;
  int failed = 0;  ///< rows whose validation failed
};

double number_in(const std::string& word, const std::string& file, int line) {
  const auto value = figure(word);
  if (!value) refuse(file, line, fmt::format("expected a number, got \"{}\"", word.substr(0, 40)));
  return *value;
}

/// The kind of "OSU MPI Latency Test" or "OSU MPI-CUDA Latency Test". Other tests, such as "MPI Alltoall
/// Latency" and "MPI Bi-Directional Bandwidth", are of no kind.
OsuFigures::Kind kind_of(const std::vector<std::string>& words) {
  using Kind = OsuFigures::Kind;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "MPI" && !words[i].starts_with("MPI-")) continue;
    if (words[i + 1] == "Allreduce") return Kind::all_reduce;
    if (words[i + 1] == "Bandwidth") return Kind::bandwidth;
    if (words[i + 1] == "Latency") return Kind::message;
  }
  return Kind::unknown;
}

OsuFigures read_osu(std::string_view text, const std::string& file) {
  OsuFigures figures;
  for_each_line(text, [&](const std::string& line, const std::vector<std::string>& words, int number) {
    if (words.front().front() == '#') {
      if (!contains(line, "OSU ") || !contains(line, "Test")) return;
      if (!figures.rows.empty()) refuse(file, number, "a second table begins here: give one table in a file");
      figures.kind = kind_of(words);
      figures.what = line.substr(line.find_first_not_of("# "));
    } else if (begins_with_digit(words.front())) {
      if (words.size() < 2) refuse(file, number, "expected a size and a time");
      figures.rows.emplace_back(number_in(words[0], file, number), number_in(words[1], file, number));
      if (words.back() == "Fail") ++figures.failed;
    }
  });
  return figures;
}

/// One message of the ring of a collective of `bytes`. @param steps  messages that a rank sends one after the
/// other
MessageTime ring_message(double bytes, double seconds, int ranks, int steps) {
  return {{bytes / ranks}, {seconds / steps}};
}

BenchmarkTimes osu_times(std::string_view text, const std::string& file, int ranks) {
  using Kind = OsuFigures::Kind;
  const OsuFigures figures = read_osu(text, file);
  if (figures.kind == Kind::unknown)
    refuse(file, 1, "expected the output of osu_latency, osu_bw or osu_allreduce with its header");
  if (figures.kind == Kind::all_reduce && ranks < 2)
    refuse(file, 1, "the file does not say how many ranks this all-reduce had: give --ranks N (2 or more)");
  const std::string doubts = figures.failed == 0 ? ""
                                                 : fmt::format("{} of {} rows failed their validation",
                                                               figures.failed, figures.rows.size());
  BenchmarkTimes benchmark{figures.what + (doubts.empty() ? "" : "; " + doubts), ranks, {}, doubts};
  for (const auto& [bytes, value] : figures.rows) {
    if (!(bytes > 0 && value > 0)) continue;
    const double seconds = figures.kind == Kind::bandwidth ? bytes / (1e6 * value) : 1e-6 * value;
    benchmark.times.push_back(figures.kind == Kind::all_reduce
                                  ? ring_message(bytes, seconds, ranks, 2 * (ranks - 1))
                                  : MessageTime{{bytes}, {seconds}});
  }
  return benchmark;
}

BenchmarkTimes nccl_times(std::string_view text, const std::string& file, const std::string& operation,
                          int ranks) {
  const NcclTests tests = read_nccl_tests(text, file);
  const std::string name = collective_of(tests, operation, file);
  const std::vector<std::string> known{"sendrecv", "all_reduce", "all_gather", "reduce_scatter"};
  if (std::ranges::find(known, name) == known.end())
    refuse(
        file, 1,
        fmt::format("expected a table of sendrecv, all_reduce, all_gather or reduce_scatter, got {}", name));
  if (tests.ranks > 0 && ranks > 0 && tests.ranks != ranks)
    refuse(file, 1,
           fmt::format("--ranks: the table lists {} ranks, got {}; take the list out if it is cut",
                       tests.ranks, ranks));
  if (tests.ranks > 0) ranks = tests.ranks;
  if (name != "sendrecv" && ranks < 2)
    refuse(file, 1,
           fmt::format("the file does not say how many ranks this {} had: give --ranks N (2 or more)", name));
  const std::string doubts = tests.doubts();
  BenchmarkTimes benchmark{
      name + "_perf of nccl-tests" + (doubts.empty() ? "" : "; " + doubts), ranks, {}, doubts};
  for (const NcclTestsRow& row : tests.rows) {
    const double bytes = row.size.value, seconds = row.time().value;
    benchmark.times.push_back(
        name == "sendrecv"
            ? MessageTime{row.size, row.time()}
            : ring_message(bytes, seconds, ranks, (name == "all_reduce" ? 2 : 1) * (ranks - 1)));
  }
  return benchmark;
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

std::string collective_of(const NcclTests& tests, const std::string& asked, const std::string& file) {
  if (tests.operation.empty() && asked.empty())
    refuse(file, 1, "the table does not name its collective: give --collective");
  if (!tests.operation.empty() && !asked.empty() && tests.operation != asked)
    refuse(file, 1, fmt::format("--collective: the table is of {}_perf, got {}", tests.operation, asked));
  return asked.empty() ? tests.operation : asked;
}

BenchmarkTimes read_benchmark(std::string_view text, const std::string& file_name, int ranks,
                              const std::string& operation) {
  BenchmarkTimes benchmark = contains(text, "# OSU ") ? osu_times(text, file_name, ranks)
                                                      : nccl_times(text, file_name, operation, ranks);
  std::set<double> sizes;
  for (const MessageTime& one : benchmark.times) {
    sizes.insert(one.size.value);
    check_message(one, file_name);
  }
  if (sizes.size() < 2) refuse(file_name, 1, "expected rows of at least two sizes");
  return benchmark;
}

}  // namespace stepcast
