#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/pytorch_profile/operators.hpp"
#include "models/pytorch_profile/profile.hpp"
#include "models/pytorch_profile/unpacked_file.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostEvents = 4'000'000;  // operators, kernels and launches: about 1 GB of memory
constexpr std::size_t kMostNames = 200'000;
constexpr std::size_t kLongestName = 2000;
constexpr int kDeepest = 64;
constexpr std::size_t kMostSizes = 4096;  // numbers in the shapes of one operator

/// The keys of a profile that are read.
enum class KnownKey {
  other,
  trace_events,
  device_properties,
  nccl_of_run,
  runtime_version,
  driver_version,
  phase,
  category,
  name,
  process,
  thread,
  start,
  duration,
  arguments,
  external_id,
  correlation,
  sequence,
  forward_thread,
  device,
  shapes,
  nccl_version,
};

/// The value of a word in a table of pairs; the first value of its type if the word is not there.
template <class Table>
auto value_of(std::string_view text, const Table& table) {
  for (const auto& [word, value] : table) {
    if (word.size() == text.size() && word.front() == text.front() && word == text) return value;
  }
  return typename Table::value_type::second_type{};
}

KnownKey key_of(std::string_view text) {
  using namespace std::string_view_literals;
  static constexpr std::array kKeys{
      std::pair("ph"sv, KnownKey::phase),
      std::pair("cat"sv, KnownKey::category),
      std::pair("name"sv, KnownKey::name),
      std::pair("pid"sv, KnownKey::process),
      std::pair("tid"sv, KnownKey::thread),
      std::pair("ts"sv, KnownKey::start),
      std::pair("dur"sv, KnownKey::duration),
      std::pair("args"sv, KnownKey::arguments),
      std::pair("External id"sv, KnownKey::external_id),
      std::pair("external id"sv, KnownKey::external_id),
      std::pair("correlation"sv, KnownKey::correlation),
      std::pair("Sequence number"sv, KnownKey::sequence),
      std::pair("Fwd thread id"sv, KnownKey::forward_thread),
      std::pair("device"sv, KnownKey::device),
      std::pair("Input Dims"sv, KnownKey::shapes),
      std::pair("Input dims"sv, KnownKey::shapes),
      std::pair("traceEvents"sv, KnownKey::trace_events),
      std::pair("deviceProperties"sv, KnownKey::device_properties),
      std::pair("distributedInfo"sv, KnownKey::nccl_of_run),
      std::pair("nccl_version"sv, KnownKey::nccl_version),
      std::pair("cuda_runtime_version"sv, KnownKey::runtime_version),
      std::pair("cuda_driver_version"sv, KnownKey::driver_version),
  };
  return value_of(text, kKeys);
}

/// The kind of an event. Versions of PyTorch name categories differently.
enum class Category { other, missing, host_operator, annotation, kernel, copy, fill, launch };

Category category_of(std::string text) {
  using namespace std::string_view_literals;
  static constexpr std::array kCategories{
      std::pair("operator"sv, Category::host_operator),
      std::pair("cpu_op"sv, Category::host_operator),
      std::pair("user_annotation"sv, Category::annotation),
      std::pair("kernel"sv, Category::kernel),
      std::pair("memcpy"sv, Category::copy),
      std::pair("gpu_memcpy"sv, Category::copy),
      std::pair("memset"sv, Category::fill),
      std::pair("gpu_memset"sv, Category::fill),
      std::pair("runtime"sv, Category::launch),
      std::pair("cuda_runtime"sv, Category::launch),
      std::pair("cuda_driver"sv, Category::launch),
  };
  if (text.empty()) return Category::missing;
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return value_of(text, kCategories);
}

/// One event of the file while it is read.
struct RawEvent {
  Category category = Category::missing;
  bool has_duration = false;  ///< its phase is "X"
  std::string name, process, thread;
  double start = -1, duration = -1;
  std::int64_t external_id = -1, correlation = -1, sequence = -1, forward_thread = -1, device = 0;
  std::vector<Shape> shapes;
  std::size_t sizes = 0;
};

/// Collects the events as the parser meets them. Its functions are those that RapidJSON's reader calls.
/// Numbers come as text, and only those that a profile needs are converted.
class EventCollector : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, EventCollector> {
 public:
  EventCollector(Profile& profile, UnpackedFile& file) : profile_(profile), file_(file) {}

  bool Default() { return token(); }
  bool String(const char* text, rapidjson::SizeType length, bool) { return value({text, length}); }
  bool RawNumber(const char* text, rapidjson::SizeType length, bool) { return value({text, length}); }
  bool StartObject() { return open(); }
  bool StartArray();
  bool EndObject(rapidjson::SizeType);
  bool EndArray(rapidjson::SizeType) { return close(); }
  bool Key(const char* text, rapidjson::SizeType length, bool);
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
  bool close() {
    --depth_;
    return token();
  }
  bool in_events() const { return top_key_ == KnownKey::trace_events; }
  bool in_arguments() const {
    return depth_ == 4 && in_events() && event_key_ == KnownKey::arguments && args_key_ != KnownKey::other;
  }
  bool in_shapes() const {
    return depth_ >= 5 && in_events() && event_key_ == KnownKey::arguments && args_key_ == KnownKey::shapes;
  }
  bool value(std::string_view text);
  void event_value(std::string_view text);
  void argument(std::int64_t value);
  void size(std::string_view text);
  void add_software(const std::string& version);
  void finish_event();
  void add_event();
  void add_operator(bool annotation);
  void add_kernel(ProfileKernel::Kind kind);
  int interned(const std::string& text);
  int thread();

  Profile& profile_;
  UnpackedFile& file_;
  RawEvent event_;
  KnownKey top_key_{}, event_key_{}, args_key_{};
  std::unordered_map<std::string, int> name_of_, thread_of_;
  int depth_ = 0;
  bool saw_events_ = false;
  bool bare_ = false;  ///< the file is only a list of events, without categories
};

bool EventCollector::StartArray() {
  if (depth_ == 0) {  // PyTorch without Kineto writes the list of events alone
    depth_ = 1;
    top_key_ = KnownKey::trace_events;
    bare_ = true;
  }
  open();
  if (depth_ == 2 && in_events()) saw_events_ = true;
  if (in_shapes() && depth_ >= 6 && event_.shapes.size() < kMostSizes) event_.shapes.emplace_back();
  return true;
}

bool EventCollector::EndObject(rapidjson::SizeType) {
  if (depth_ == 3 && in_events()) finish_event();
  return close();
}

bool EventCollector::Key(const char* text, rapidjson::SizeType length, bool) {
  const KnownKey key = depth_ <= 4 ? key_of({text, length}) : KnownKey::other;
  if (depth_ == 1) top_key_ = key;
  if (depth_ == 2 || depth_ == 3) event_key_ = key;
  if (depth_ == 4) args_key_ = key;
  return token();
}

/// Names end in messages and files: control characters and bytes that are no UTF-8 text become "?".
std::string display_name(std::string_view text) {
  std::string name(text);
  for (char& c : name) c = (c >= 0 && c < ' ') || c == 127 ? '?' : c;
  if (first_bad_byte(name))
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c < 0; }, '?');
  return name;
}

/// An integer, or a number without its fraction; -1 for any other text.
std::int64_t whole_number(std::string_view text) {
  if (const auto whole = parse_integer(text)) return *whole;
  const auto number = parse_number(text);
  return number && std::abs(*number) < 9e15 ? static_cast<std::int64_t>(*number) : -1;
}

std::string cuda_version(std::string_view text) {
  const std::int64_t version = whole_number(text);
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// A text or a number. Tools that rewrite profiles write times and ids as texts.
bool EventCollector::value(std::string_view text) {
  if (depth_ == 3 && in_events()) {
    event_value(text);
  } else if (in_arguments()) {
    argument(whole_number(text));
  } else if (in_shapes()) {
    size(text);
  } else if (depth_ == 3 && top_key_ == KnownKey::device_properties && event_key_ == KnownKey::name) {
    if (profile_.device.empty()) profile_.device = display_name(text.substr(0, 100));
  } else if (depth_ == 2 && top_key_ == KnownKey::nccl_of_run && event_key_ == KnownKey::nccl_version) {
    add_software("NCCL " + display_name(text.substr(0, 40)));
  } else if (depth_ == 1 && top_key_ == KnownKey::runtime_version) {
    add_software("CUDA " + cuda_version(text));
  } else if (depth_ == 1 && top_key_ == KnownKey::driver_version) {
    add_software("driver for CUDA " + cuda_version(text));
  }
  return token();
}

void EventCollector::event_value(std::string_view text) {
  const std::string_view name = text.substr(0, kLongestName);
  if (event_key_ == KnownKey::phase) event_.has_duration = text == "X";
  if (event_key_ == KnownKey::category) event_.category = category_of(std::string(name));
  if (event_key_ == KnownKey::name) event_.name = name;
  if (event_key_ == KnownKey::process) event_.process = name;
  if (event_key_ == KnownKey::thread) event_.thread = name;
  if (event_key_ == KnownKey::start) event_.start = parse_number(text).value_or(-1);
  if (event_key_ == KnownKey::duration) event_.duration = parse_number(text).value_or(-1);
}

void EventCollector::size(std::string_view text) {
  if (event_.shapes.empty() || depth_ < 6 || event_.sizes++ >= kMostSizes) return;
  if (const auto whole = parse_integer(text)) event_.shapes.back().push_back(*whole);
}

void EventCollector::argument(std::int64_t value) {
  if (args_key_ == KnownKey::external_id) event_.external_id = value;
  if (args_key_ == KnownKey::correlation) event_.correlation = value;
  if (args_key_ == KnownKey::sequence) event_.sequence = value;
  if (args_key_ == KnownKey::forward_thread) event_.forward_thread = value;
  if (args_key_ == KnownKey::device) event_.device = std::clamp<std::int64_t>(value, -1, 1'000'000);
}

void EventCollector::add_software(const std::string& version) {
  profile_.software += (profile_.software.empty() ? "" : ", ") + version;
}

int EventCollector::interned(const std::string& text) {
  const auto [place, added] = name_of_.try_emplace(text, static_cast<int>(profile_.names.size()));
  if (added) profile_.names.push_back(display_name(text));
  if (profile_.names.size() > kMostNames)
    throw InputError(
        fmt::format("{}: more than {} names of operators and kernels", profile_.file, kMostNames));
  return place->second;
}

int EventCollector::thread() {
  const auto next = static_cast<int>(thread_of_.size());
  return thread_of_.try_emplace(event_.process + " " + event_.thread, next).first->second;
}

void EventCollector::add_operator(bool annotation) {
  ProfileOperator one{.name = interned(event_.name),
                      .thread = thread(),
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
  return event.category == Category::annotation ||
         (event.name.find("::") == std::string::npos && event.name.find("Backward") == std::string::npos &&
          event.sequence < 0 && event.shapes.empty());
}

void EventCollector::finish_event() {
  const std::size_t before = profile_.operators.size() + profile_.kernels.size() + profile_.launches.size();
  if (before > kMostEvents)
    throw InputError(fmt::format("{}: more than {} operators and kernels; profile fewer steps", profile_.file,
                                 kMostEvents));
  const bool timed = event_.has_duration && std::isfinite(event_.start) && event_.start >= 0 &&
                     event_.duration >= 0 && event_.duration < 1e12;
  if (timed) add_event();
  event_ = {};
}

void EventCollector::add_event() {
  switch (event_.category) {
    case Category::other:
      return;
    case Category::missing:
      if (!bare_) return;
      [[fallthrough]];
    case Category::host_operator:
    case Category::annotation:
      return add_operator(is_annotation(event_));
    case Category::kernel:
      return add_kernel(ProfileKernel::Kind::kernel);
    case Category::copy:
      return add_kernel(ProfileKernel::Kind::copy);
    case Category::fill:
      return add_kernel(ProfileKernel::Kind::fill);
    case Category::launch:
      if (event_.correlation >= 0)
        profile_.launches[event_.correlation] = {interned(event_.name), thread(), event_.start};
  }
}

void read_json(UnpackedFile& bytes, EventCollector& collector, const std::string& file) {
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<rapidjson::kParseNumbersAsStringsFlag>(bytes, collector);
  if (result.IsError()) {
    throw InputError(fmt::format("{}: is not complete JSON: byte {}: {}", file, result.Offset(),
                                 rapidjson::GetParseError_En(result.Code())));
  }
  if (!bytes.at_end())
    throw InputError(fmt::format("{}: is not complete JSON: byte {}: 0", file, bytes.Tell()));
}

}  // namespace

Profile read_profile(const std::string& file) {
  Profile profile;
  profile.file = file;
  UnpackedFile bytes(file);
  EventCollector collector(profile, bytes);
  read_json(bytes, collector, file);
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
