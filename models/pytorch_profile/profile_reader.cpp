#include <fmt/format.h>
#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_map>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/pytorch_profile/operators.hpp"
#include "models/pytorch_profile/profile.hpp"
#include "models/pytorch_profile/profile_words.hpp"
#include "models/pytorch_profile/unpacked_file.hpp"

namespace stepcast {
namespace {

// What is kept of a file, and so its memory, is limited, however large the file is.
constexpr std::size_t kMostEvents = 4'000'000;  // operators, kernels and launches of 64 bytes and less
constexpr std::size_t kMostNameBytes = 64'000'000;
constexpr std::size_t kMostThreads = 10'000;
constexpr std::size_t kLongestName = 2000;
constexpr std::size_t kLongestSoftware = 1000;
constexpr std::size_t kMostGroups = 100;
constexpr int kDeepest = 64;
constexpr std::size_t kMostSizes = 4096;            // numbers in the shapes of one operator
constexpr std::size_t kMostSizesOfAll = 4'000'000;  // numbers in distinct lists of shapes

/// One event of the file while it is read.
struct RawEvent {
  EventCategory category = EventCategory::missing;
  bool has_duration = false;  ///< its phase is "X"
  bool unreadable = false;    ///< its time is no number
  std::string name, process, thread;
  double start = -1, duration = -1;
  std::int64_t external_id = -1, correlation = -1, sequence = -1, forward_thread = -1, device = 0;
  std::vector<Shape> shapes;
  std::size_t sizes = 0;
};

/// Numbers of all shapes, and after each shape a separator: a key of lists of shapes.
std::vector<std::int64_t> flat(const std::vector<Shape>& shapes) {
  std::vector<std::int64_t> numbers;
  for (const Shape& one : shapes) {
    numbers.insert(numbers.end(), one.begin(), one.end());
    numbers.push_back(std::numeric_limits<std::int64_t>::min());
  }
  return numbers;
}

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
  bool in_events() const { return top_key_ == ProfileKey::trace_events; }
  bool in_arguments() const {
    return depth_ == 4 && in_events() && event_key_ == ProfileKey::arguments &&
           args_key_ != ProfileKey::other;
  }
  bool in_shapes() const {
    return depth_ >= 5 && in_events() && event_key_ == ProfileKey::arguments &&
           args_key_ == ProfileKey::shapes;
  }
  bool value(std::string_view text);
  void event_value(std::string_view text);
  double time_of(std::string_view text);
  void argument(std::int64_t value);
  void group_value(std::string_view text);
  void size(std::string_view text);
  void add_software(const std::string& version);
  void finish_event();
  void add_event();
  void add_operator(bool annotation);
  void add_kernel(ProfileKernel::Kind kind);
  int interned(const std::string& text);
  int interned_shapes();
  int thread();

  Profile& profile_;
  UnpackedFile& file_;
  RawEvent event_;
  ProfileKey top_key_{}, event_key_{}, args_key_{};
  std::unordered_map<std::string, int> name_of_, thread_of_;
  std::map<std::vector<std::int64_t>, int> shapes_of_ = {{{}, 0}};
  std::size_t name_bytes_ = 0, sizes_ = 0;
  std::string group_;
  int depth_ = 0;
  bool saw_events_ = false;
  bool bare_ = false;  ///< the file is only a list of events, without categories
};

bool EventCollector::StartArray() {
  if (depth_ == 0) {  // PyTorch without Kineto writes the list of events alone
    depth_ = 1;
    top_key_ = ProfileKey::trace_events;
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
  const ProfileKey key = depth_ <= 4 ? key_of({text, length}) : ProfileKey::other;
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
  } else if (depth_ == 3 && top_key_ == ProfileKey::device_properties && event_key_ == ProfileKey::name) {
    if (profile_.device.empty()) profile_.device = display_name(text.substr(0, 100));
  } else if (depth_ == 4 && top_key_ == ProfileKey::nccl_of_run && event_key_ == ProfileKey::groups) {
    group_value(text);
  } else if (depth_ == 2 && top_key_ == ProfileKey::nccl_of_run && event_key_ == ProfileKey::nccl_version) {
    add_software("NCCL " + display_name(text.substr(0, 40)));
  } else if (depth_ == 1 && top_key_ == ProfileKey::runtime_version) {
    add_software("CUDA " + cuda_version(text));
  } else if (depth_ == 1 && top_key_ == ProfileKey::driver_version) {
    add_software("driver for CUDA " + cuda_version(text));
  }
  return token();
}

/// A time [us]; what is no number counts as none, and marks the event.
double EventCollector::time_of(std::string_view text) {
  const auto time = parse_number(text);
  event_.unreadable = event_.unreadable || !time;
  return time.value_or(-1);
}

void EventCollector::event_value(std::string_view text) {
  const std::string_view name = text.substr(0, kLongestName);
  if (event_key_ == ProfileKey::phase) event_.has_duration = text == "X";
  if (event_key_ == ProfileKey::category) event_.category = category_of(std::string(name));
  if (event_key_ == ProfileKey::name) event_.name = name;
  if (event_key_ == ProfileKey::process) event_.process = name;
  if (event_key_ == ProfileKey::thread) event_.thread = name;
  if (event_key_ == ProfileKey::start) event_.start = time_of(text);
  if (event_key_ == ProfileKey::duration) event_.duration = time_of(text);
}

/// A group of processes: its name, then its size.
void EventCollector::group_value(std::string_view text) {
  if (args_key_ == ProfileKey::group_name) group_ = display_name(text.substr(0, 40));
  if (args_key_ != ProfileKey::group_size || profile_.groups.size() >= kMostGroups) return;
  profile_.groups.push_back(
      fmt::format("{} of {} ranks", group_.empty() ? "one" : group_, whole_number(text)));
  group_.clear();
}

void EventCollector::size(std::string_view text) {
  if (event_.shapes.empty() || depth_ < 6 || event_.sizes++ >= kMostSizes) return;
  event_.shapes.back().push_back(parse_integer(text).value_or(-1));
}

void EventCollector::argument(std::int64_t value) {
  if (args_key_ == ProfileKey::external_id) event_.external_id = value;
  if (args_key_ == ProfileKey::correlation) event_.correlation = value;
  if (args_key_ == ProfileKey::sequence) event_.sequence = value;
  if (args_key_ == ProfileKey::forward_thread) event_.forward_thread = value;
  if (args_key_ == ProfileKey::device) event_.device = std::clamp<std::int64_t>(value, -1, 1'000'000);
}

void EventCollector::add_software(const std::string& version) {
  if (profile_.software.size() < kLongestSoftware)
    profile_.software += (profile_.software.empty() ? "" : ", ") + version;
}

int EventCollector::interned(const std::string& text) {
  const auto [place, added] = name_of_.try_emplace(text, profile_.names.size());
  if (!added) return place->second;
  profile_.names.push_back(display_name(text));
  name_bytes_ += text.size();
  if (name_bytes_ > kMostNameBytes)
    throw InputError(fmt::format("{}: names of operators and kernels have more than {} MB", profile_.file,
                                 kMostNameBytes / 1'000'000));
  return place->second;
}

int EventCollector::interned_shapes() {
  if (event_.shapes.empty()) return 0;
  const auto [place, added] = shapes_of_.try_emplace(flat(event_.shapes), profile_.shapes.size());
  if (!added) return place->second;
  profile_.shapes.push_back(event_.shapes);
  sizes_ += place->first.size();
  if (sizes_ > kMostSizesOfAll)
    throw InputError(fmt::format("{}: distinct shapes of operators have more than {} sizes", profile_.file,
                                 kMostSizesOfAll));
  return place->second;
}

int EventCollector::thread() {
  const int next = thread_of_.size();
  if (thread_of_.size() > kMostThreads)
    throw InputError(fmt::format("{}: more than {} threads", profile_.file, kMostThreads));
  return thread_of_.try_emplace(event_.process + " " + event_.thread, next).first->second;
}

/// A range has no node of the backward pass, whatever number its event holds.
void EventCollector::add_operator(bool annotation) {
  profile_.operators.push_back({.name = interned(event_.name),
                                .thread = thread(),
                                .start = event_.start,
                                .end = event_.start + event_.duration,
                                .external_id = event_.external_id,
                                .sequence = annotation ? -1 : event_.sequence,
                                .forward_thread = event_.forward_thread,
                                .annotation = annotation,
                                .shapes = interned_shapes()});
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
  return event.category == EventCategory::annotation ||
         (event.name.find("::") == std::string::npos && event.name.find("Backward") == std::string::npos &&
          event.sequence < 0 && event.shapes.empty());
}

void EventCollector::finish_event() {
  const std::size_t before = profile_.operators.size() + profile_.kernels.size() + profile_.launches.size();
  if (before > kMostEvents)
    throw InputError(fmt::format("{}: more than {} operators and kernels; profile fewer steps", profile_.file,
                                 kMostEvents));
  if (event_.has_duration && event_.unreadable && event_.category != EventCategory::other &&
      event_.category != EventCategory::missing)
    throw InputError(fmt::format("{}: byte {}: expected a time in us of the event {}, got no number",
                                 profile_.file, file_.Tell(), display_name(event_.name).substr(0, 60)));
  const bool timed = event_.has_duration && std::isfinite(event_.start) && event_.start >= 0 &&
                     event_.duration >= 0 && event_.duration < 1e12;
  if (timed) add_event();
  event_ = {};
}

void EventCollector::add_event() {
  switch (event_.category) {
    case EventCategory::other:
      return;
    case EventCategory::missing:
      if (!bare_) return;
      [[fallthrough]];
    case EventCategory::host_operator:
    case EventCategory::annotation:
      return add_operator(is_annotation(event_));
    case EventCategory::kernel:
      return add_kernel(ProfileKernel::Kind::kernel);
    case EventCategory::copy:
      return add_kernel(ProfileKernel::Kind::copy);
    case EventCategory::fill:
      return add_kernel(ProfileKernel::Kind::fill);
    case EventCategory::launch:
      if (event_.correlation >= 0)
        profile_.launches.push_back(
            {event_.correlation, interned(event_.name), thread(), event_.start, event_.duration});
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
  std::stable_sort(
      profile.launches.begin(), profile.launches.end(),
      [](const ProfileLaunch& a, const ProfileLaunch& b) { return a.correlation < b.correlation; });
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
