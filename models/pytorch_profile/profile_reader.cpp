#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <istream>
#include <memory>
#include <nlohmann/json.hpp>
#include <streambuf>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/pytorch_profile/operators.hpp"
#include "models/pytorch_profile/profile.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kLargestText =
    4'000'000'000;                                 // bytes of JSON; 20 steps of a large network take some 1e9
constexpr std::int64_t kLargestToken = 4'000'000;  // bytes of one text of the file
constexpr std::size_t kMostEvents = 4'000'000;     // operators, kernels and launches: about 1 GB of memory
constexpr std::size_t kMostNames = 200'000;
constexpr std::size_t kLongestName = 2000;
constexpr int kDeepest = 64;
constexpr std::size_t kMostSizes = 4096;  // numbers in the shapes of one operator

/// A file as a stream of bytes, unpacked if it is gzip's.
class UnpackedFile : public std::streambuf {
 public:
  explicit UnpackedFile(const std::string& name) : name_(name), file_(gzopen(name.c_str(), "rb"), gzclose) {
    if (!file_) throw InputError(fmt::format("{}: cannot read this file", name));
    gzbuffer(file_.get(), 1 << 17);
  }
  void start_token() { token_start_ = position(); }

 protected:
  int_type underflow() override {
    read_ += egptr() - eback();
    if (read_ > kLargestText)
      refuse(fmt::format("holds more than {} GB of JSON; profile fewer steps", kLargestText / 1'000'000'000));
    if (read_ - token_start_ > kLargestToken) refuse("holds a text of more than 4 MB; it is not a profile");
    const int count = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int error = Z_OK;
    const char* text = gzerror(file_.get(), &error);
    if (error == Z_BUF_ERROR) refuse("the gzip data end too early: the file is truncated");
    if (count < 0 || error != Z_OK) refuse(fmt::format("cannot be unpacked: {}", text));
    if (count == 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(*gptr());
  }

 private:
  std::int64_t position() const { return read_ + (gptr() - eback()); }
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(fmt::format("{}: {}", name_, why));
  }

  std::string name_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::array<char, 1 << 16> buffer_{};
  std::int64_t read_ = 0, token_start_ = 0;
};

/// One event of the file while it is read.
struct RawEvent {
  std::string phase, category, name, process, thread;
  double start = -1, duration = -1;
  std::int64_t external_id = -1, correlation = -1, sequence = -1, forward_thread = -1, device = 0;
  std::vector<Shape> shapes;
  std::size_t sizes = 0;
};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

/// Collects the events as the parser meets them. Its functions are those that nlohmann's parser calls.
class EventCollector {
 public:
  EventCollector(Profile& profile, UnpackedFile& file) : profile_(profile), file_(file) {}

  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return token(); }
  bool boolean(bool) { return token(); }
  bool number_integer(number_integer_t value) { return number(static_cast<double>(value), value); }
  bool number_unsigned(number_unsigned_t value) {
    constexpr number_unsigned_t kMost = INT64_MAX;
    return number(static_cast<double>(value), static_cast<std::int64_t>(std::min(value, kMost)));
  }
  bool number_float(number_float_t value, const string_t&) {
    const bool fits = std::abs(value) < 9e18;
    return number(value, fits ? static_cast<std::int64_t>(value) : -1);
  }
  bool binary(binary_t&) { return token(); }
  bool string(string_t& text);
  bool start_object(std::size_t) { return open(); }
  bool start_array(std::size_t);
  bool end_object();
  bool end_array();
  bool key(string_t& text);
  template <class Error>
  bool parse_error(std::size_t, const std::string&, const Error& error) {
    std::string what = error.what();
    const std::size_t place = what.find("parse error");
    if (place != std::string::npos) what = what.substr(place);
    for (char& c : what) c = c < ' ' || c > '~' ? '?' : c;
    throw InputError(fmt::format("{}: is not complete JSON: {}", profile_.file, what.substr(0, 200)));
  }
  bool saw_events() const { return saw_events_; }

 private:
  bool token() {
    file_.start_token();
    return true;
  }
  bool open() {
    if (++depth_ > kDeepest)
      throw InputError(fmt::format("{}: JSON is nested more than {} levels deep", profile_.file, kDeepest));
    return token();
  }
  bool in_events() const { return top_key_ == "traceEvents"; }
  bool in_shapes() const {
    return depth_ >= 5 && in_events() && event_key_ == "args" &&
           (args_key_ == "Input Dims" || args_key_ == "Input dims");
  }
  bool number(double value, std::int64_t whole);
  void quoted_number(const std::string& text);
  void event_number(double value, std::int64_t whole);
  void argument(std::int64_t value);
  void finish_event();
  void add_operator(bool annotation);
  void add_kernel(ProfileKernel::Kind kind);
  int interned(const std::string& text);

  Profile& profile_;
  UnpackedFile& file_;
  RawEvent event_;
  std::string top_key_, event_key_, args_key_;
  std::unordered_map<std::string, int> name_of_, thread_of_;
  int depth_ = 0;
  bool saw_events_ = false;
  bool bare_ = false;  ///< the file is only a list of events, without categories
};

bool EventCollector::start_array(std::size_t) {
  if (depth_ == 0) {  // PyTorch without Kineto writes the list of events alone
    depth_ = 1;
    top_key_ = "traceEvents";
    bare_ = true;
  }
  open();
  if (depth_ == 2 && in_events()) saw_events_ = true;
  if (in_shapes() && depth_ >= 6 && event_.shapes.size() < kMostSizes) event_.shapes.emplace_back();
  return true;
}

bool EventCollector::end_array() {
  --depth_;
  return token();
}

bool EventCollector::end_object() {
  if (depth_ == 3 && in_events()) finish_event();
  --depth_;
  return token();
}

bool EventCollector::key(string_t& text) {
  if (depth_ == 1) top_key_ = text;
  if (depth_ == 2 || depth_ == 3) event_key_ = text;
  if (depth_ == 4) args_key_ = text;
  return token();
}

bool EventCollector::string(string_t& text) {
  if (text.size() > kLongestName) text.resize(kLongestName);
  for (char& c : text) c = c < ' ' || c == 127 ? '?' : c;  // names end in messages and files
  if (depth_ == 3 && in_events()) {
    if (event_key_ == "ph") event_.phase = text;
    if (event_key_ == "cat") event_.category = lower(text);
    if (event_key_ == "name") event_.name = text;
    if (event_key_ == "pid") event_.process = text;
    if (event_key_ == "tid") event_.thread = text;
  }
  quoted_number(text);
  if (depth_ == 3 && top_key_ == "deviceProperties" && event_key_ == "name" && profile_.device.empty())
    profile_.device = text.substr(0, 100);
  if (depth_ == 2 && top_key_ == "distributedInfo" && event_key_ == "nccl_version")
    profile_.software += (profile_.software.empty() ? "NCCL " : ", NCCL ") + text.substr(0, 40);
  return token();
}

/// Tools that rewrite profiles write times and ids as texts.
void EventCollector::quoted_number(const std::string& text) {
  const bool time = depth_ == 3 && (event_key_ == "ts" || event_key_ == "dur");
  const bool argument_value = depth_ == 4 && event_key_ == "args";
  if (!in_events() || !(time || argument_value)) return;
  const auto value = parse_number(text);
  if (!value || !(std::abs(*value) < 9e15)) return;
  const auto whole = static_cast<std::int64_t>(*value);
  time ? event_number(*value, whole) : argument(whole);
}

bool EventCollector::number(double value, std::int64_t whole) {
  if (in_shapes()) {
    if (!event_.shapes.empty() && depth_ >= 6 && event_.sizes++ < kMostSizes)
      event_.shapes.back().push_back(whole);
  } else if (depth_ == 3 && in_events()) {
    event_number(value, whole);
  } else if (depth_ == 4 && in_events() && event_key_ == "args") {
    argument(whole);
  } else if (depth_ == 1 && (top_key_ == "cuda_runtime_version" || top_key_ == "cuda_driver_version")) {
    profile_.software += fmt::format("{}{} {}.{}", profile_.software.empty() ? "" : ", ",
                                     top_key_ == "cuda_runtime_version" ? "CUDA" : "driver for CUDA",
                                     whole / 1000, whole % 1000 / 10);
  }
  return token();
}

void EventCollector::event_number(double value, std::int64_t whole) {
  if (event_key_ == "ts") event_.start = value;
  if (event_key_ == "dur") event_.duration = value;
  if (event_key_ == "pid") event_.process = std::to_string(whole);
  if (event_key_ == "tid") event_.thread = std::to_string(whole);
}

void EventCollector::argument(std::int64_t value) {
  if (args_key_ == "External id" || args_key_ == "external id") event_.external_id = value;
  if (args_key_ == "correlation") event_.correlation = value;
  if (args_key_ == "Sequence number") event_.sequence = value;
  if (args_key_ == "Fwd thread id") event_.forward_thread = value;
  if (args_key_ == "device") event_.device = std::clamp<std::int64_t>(value, -1, 1'000'000);
}

int EventCollector::interned(const std::string& text) {
  const auto [place, added] = name_of_.try_emplace(text, static_cast<int>(profile_.names.size()));
  if (added) profile_.names.push_back(text);
  if (profile_.names.size() > kMostNames)
    throw InputError(
        fmt::format("{}: more than {} names of operators and kernels", profile_.file, kMostNames));
  return place->second;
}

void EventCollector::add_operator(bool annotation) {
  const int thread =
      thread_of_.try_emplace(event_.process + " " + event_.thread, static_cast<int>(thread_of_.size()))
          .first->second;
  ProfileOperator one{.name = interned(event_.name),
                      .thread = thread,
                      .start = event_.start,
                      .end = event_.start + event_.duration,
                      .external_id = event_.external_id,
                      .sequence = event_.sequence,
                      .forward_thread = event_.forward_thread,
                      .annotation = annotation,
                      .shapes = std::move(event_.shapes)};
  one.shapes.shrink_to_fit();
  profile_.operators.push_back(std::move(one));
}

void EventCollector::add_kernel(ProfileKernel::Kind kind) {
  profile_.kernels.push_back({.name = interned(event_.name),
                              .kind = kind,
                              .device = static_cast<int>(event_.device),
                              .seconds = event_.duration * 1e-6,
                              .external_id = event_.external_id,
                              .correlation = event_.correlation});
}

/// Old profiles say "Operator" of annotations too. A program's range has neither a namespace nor a gradient.
bool is_annotation(const RawEvent& event) {
  return event.category == "user_annotation" ||
         (event.name.find("::") == std::string::npos && event.name.find("Backward") == std::string::npos &&
          event.sequence < 0 && event.shapes.empty());
}

void EventCollector::finish_event() {
  const std::string& category = event_.category;
  const bool timed = event_.phase == "X" && std::isfinite(event_.start) && event_.start >= 0 &&
                     event_.duration >= 0 && event_.duration < 1e12;
  const std::size_t before = profile_.operators.size() + profile_.kernels.size() + profile_.launches.size();
  if (before > kMostEvents)
    throw InputError(fmt::format("{}: more than {} operators and kernels; profile fewer steps", profile_.file,
                                 kMostEvents));
  if (timed) {
    if ((bare_ && category.empty()) || category == "operator" || category == "cpu_op" ||
        category == "user_annotation")
      add_operator(is_annotation(event_));
    if (category == "kernel") add_kernel(ProfileKernel::Kind::kernel);
    if (category == "memcpy" || category == "gpu_memcpy") add_kernel(ProfileKernel::Kind::copy);
    if (category == "memset" || category == "gpu_memset") add_kernel(ProfileKernel::Kind::fill);
    if ((category == "runtime" || category == "cuda_runtime" || category == "cuda_driver") &&
        event_.correlation >= 0) {
      const int thread =
          thread_of_.try_emplace(event_.process + " " + event_.thread, static_cast<int>(thread_of_.size()))
              .first->second;
      profile_.launches[event_.correlation] = {interned(event_.name), thread, event_.start};
    }
  }
  event_ = {};
}

/// In a profile without GPU work, an operator's time less that of its parts takes the place of a kernel.
void add_cpu_work(Profile& profile) {
  profile.cpu_only = true;
  std::vector<double> own(profile.operators.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    own[i] += one.end - one.start;
    if (one.parent >= 0) own[static_cast<std::size_t>(one.parent)] -= one.end - one.start;
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    if (one.annotation || own[i] <= 0) continue;
    profile.kernels.push_back({.name = one.name,
                               .kind = ProfileKernel::Kind::kernel,
                               .seconds = own[i] * 1e-6,
                               .host_operator = static_cast<int>(i),
                               .launched = one.start});
  }
}

/// The innermost operator of a thread at a time; -1 if there is none.
int operator_at(const std::vector<ProfileOperator>& operators, int thread, double time) {
  const auto after = std::upper_bound(operators.begin(), operators.end(), std::pair(thread, time),
                                      [](const std::pair<int, double>& at, const ProfileOperator& one) {
                                        return at < std::pair(one.thread, one.start);
                                      });
  int index = static_cast<int>(after - operators.begin()) - 1;
  if (index >= 0 && operators[static_cast<std::size_t>(index)].thread != thread) return -1;
  while (index >= 0 && operators[static_cast<std::size_t>(index)].end < time)
    index = operators[static_cast<std::size_t>(index)].parent;
  return index;
}

/// Joins kernels to operators by their external id; where there is none, by the time of the launch.
void join_kernels(Profile& profile) {
  std::unordered_map<std::int64_t, int> by_id;
  for (std::size_t i = 0; i < profile.operators.size(); ++i) {
    const ProfileOperator& one = profile.operators[i];
    if (one.external_id > 0) by_id.try_emplace(one.external_id, static_cast<int>(i));
  }
  for (ProfileKernel& kernel : profile.kernels) {
    const auto found = by_id.find(kernel.external_id);
    if (found != by_id.end()) kernel.host_operator = found->second;
    const auto launch = profile.launches.find(kernel.correlation);
    if (launch != profile.launches.end()) {
      kernel.launched = launch->second.start;
      if (kernel.host_operator < 0)
        kernel.host_operator = operator_at(profile.operators, launch->second.thread, launch->second.start);
    } else if (kernel.host_operator >= 0) {
      kernel.launched = profile.operators[static_cast<std::size_t>(kernel.host_operator)].start;
    }
  }
}

}  // namespace

Profile read_profile(const std::string& file) {
  Profile profile;
  profile.file = file;
  UnpackedFile bytes(file);
  std::istream stream(&bytes);
  stream.exceptions(std::ios::badbit);
  EventCollector collector(profile, bytes);
  nlohmann::json::sax_parse(stream, &collector);
  if (!collector.saw_events())
    throw InputError(fmt::format("{}: expected a profile of torch.profiler with \"traceEvents\"", file));
  find_parents(profile);
  number_operators(profile);
  if (profile.kernels.empty()) {
    add_cpu_work(profile);
  } else {
    join_kernels(profile);
  }
  return profile;
}

}  // namespace stepcast
