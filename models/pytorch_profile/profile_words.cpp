#include "models/pytorch_profile/profile_words.hpp"

#include <array>
#include <utility>

namespace stepcast {
namespace {

/// The value of a word in a table of pairs; the first value of its type if the word is not there.
template <class Table>
auto value_of(std::string_view text, const Table& table) {
  for (const auto& [word, value] : table) {
    if (word.size() == text.size() && word.front() == text.front() && word == text) return value;
  }
  return typename Table::value_type::second_type{};
}

}  // namespace

ProfileKey key_of(std::string_view text) {
  using namespace std::string_view_literals;
  static constexpr std::array kKeys{
      std::pair("ph"sv, ProfileKey::phase),
      std::pair("cat"sv, ProfileKey::category),
      std::pair("name"sv, ProfileKey::name),
      std::pair("pid"sv, ProfileKey::process),
      std::pair("tid"sv, ProfileKey::thread),
      std::pair("ts"sv, ProfileKey::start),
      std::pair("dur"sv, ProfileKey::duration),
      std::pair("args"sv, ProfileKey::arguments),
      std::pair("External id"sv, ProfileKey::external_id),
      std::pair("external id"sv, ProfileKey::external_id),
      std::pair("correlation"sv, ProfileKey::correlation),
      std::pair("Sequence number"sv, ProfileKey::sequence),
      std::pair("Fwd thread id"sv, ProfileKey::forward_thread),
      std::pair("device"sv, ProfileKey::device),
      std::pair("Input Dims"sv, ProfileKey::shapes),
      std::pair("Input dims"sv, ProfileKey::shapes),
      std::pair("traceEvents"sv, ProfileKey::trace_events),
      std::pair("deviceProperties"sv, ProfileKey::device_properties),
      std::pair("distributedInfo"sv, ProfileKey::nccl_of_run),
      std::pair("pg_config"sv, ProfileKey::groups),
      std::pair("pg_desc"sv, ProfileKey::group_name),
      std::pair("pg_size"sv, ProfileKey::group_size),
      std::pair("nccl_version"sv, ProfileKey::nccl_version),
      std::pair("cuda_runtime_version"sv, ProfileKey::runtime_version),
      std::pair("cuda_driver_version"sv, ProfileKey::driver_version),
  };
  return value_of(text, kKeys);
}

EventCategory category_of(std::string text) {
  using namespace std::string_view_literals;
  static constexpr std::array kCategories{
      std::pair("operator"sv, EventCategory::host_operator),
      std::pair("cpu_op"sv, EventCategory::host_operator),
      std::pair("user_annotation"sv, EventCategory::annotation),
      std::pair("kernel"sv, EventCategory::kernel),
      std::pair("memcpy"sv, EventCategory::copy),
      std::pair("gpu_memcpy"sv, EventCategory::copy),
      std::pair("memset"sv, EventCategory::fill),
      std::pair("gpu_memset"sv, EventCategory::fill),
      std::pair("runtime"sv, EventCategory::launch),
      std::pair("cuda_runtime"sv, EventCategory::launch),
      std::pair("cuda_driver"sv, EventCategory::launch),
      std::pair("hip_runtime"sv, EventCategory::launch),
  };
  if (text.empty()) return EventCategory::missing;
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
  return value_of(text, kCategories);
}

}  // namespace stepcast
