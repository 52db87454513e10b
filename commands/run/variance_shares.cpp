#include "commands/run/variance_shares.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace stepcast {
namespace {

/// What the assumptions about keys that begin so are about.
constexpr std::array<std::pair<const char*, const char*>, 21> kSubjects{{
    {"discrepancy of the model", "the model itself"},
    {"factors.between_servers_bandwidth", "network"},
    {"factors.inside_server_bandwidth", "links inside servers"},
    {"factors.message_overhead", "overhead of messages"},
    {"factors.compute_slowdown", "computation beside communication"},
    {"factors.kernel_start", "layer times"},
    {"factors.layer_times", "layer times"},
    {"factors.memory_bound_kernels", "layer times"},
    {"factors.flash_attention", "layer times"},
    {"factors.fp8_products", "layer times"},
    {"factors.host_work", "host"},
    {"strategy.compute_factor", "layer times"},
    {"strategy.compute_slowdown", "computation beside communication"},
    {"strategy.host", "host"},
    {"strategy.step_overhead", "host"},
    {"platform.network.latency", "overhead of messages"},
    {"platform.messages", "overhead of messages"},
    {"platform.network", "network"},
    {"platform.node", "links inside servers"},
    {"noise.device_spread", "spread of devices"},
    {"noise", "spread of steps"},
}};

std::string subject_of(const std::string& key) {
  for (const auto& [begin, subject] : kSubjects) {
    if (key.starts_with(begin)) return subject;
  }
  return key;
}

}  // namespace

std::string variance_sentence(const std::vector<Sensitivity>& sensitivity, const std::string& figure) {
  constexpr double kLeastShare = 0.05;
  std::vector<Sensitivity> subjects;
  for (const Sensitivity& one : sensitivity) {
    const std::string subject = subject_of(one.name);
    const auto known = std::ranges::find(subjects, subject, &Sensitivity::name);
    if (known == subjects.end()) {
      subjects.push_back({subject, one.share});
    } else {
      known->share += one.share;
    }
  }
  std::ranges::stable_sort(subjects, [](const auto& a, const auto& b) { return a.share > b.share; });
  std::string parts;
  for (const Sensitivity& one : subjects) {
    if (one.share < kLeastShare) break;
    parts += fmt::format("{}{} {:.0f} %", parts.empty() ? "" : ", ", one.name, 100 * one.share);
  }
  if (parts.empty()) return "";
  return fmt::format("Not known, as shares of the variance of {}: {}.", figure, parts);
}

}  // namespace stepcast
