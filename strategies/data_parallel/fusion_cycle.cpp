#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "core/fields.hpp"
#include "platforms/topology.hpp"
#include "strategies/data_parallel/synchronous.hpp"
#include "strategies/options/strategy.hpp"

namespace stepcast {
namespace {

/// Time from the start of the backward pass to the gradients of every layer.
std::vector<double> ready_seconds(const std::vector<LayerSeconds>& times) {
  std::vector<double> ready(times.size());
  double now = 0;
  for (std::size_t i = times.size(); i-- > 0;) ready[i] = now += times[i].backward;
  return ready;
}

/// A bucket for each array, from the end of the gradients to their beginning, so that neighbours can be
/// joined. The first of a layer includes its compute.
std::vector<Bucket> arrays_from_the_end(const std::vector<LayerGradients>& layers, Bytes element) {
  std::vector<Bucket> arrays = gradient_buckets(layers, element, kEachArray);
  for (std::size_t begin = 0; begin < arrays.size();) {
    std::size_t end = begin + 1;
    while (end < arrays.size() && arrays[end].layers.empty() && arrays[end].gradient.value > 0) ++end;
    std::reverse(arrays.begin() + begin, arrays.begin() + end);
    std::swap(arrays[begin].layers, arrays[end - 1].layers);
    begin = end;
  }
  return arrays;
}

/// Adds a bucket to one that comes before it: their layers and elements are neighbours.
void append(const Bucket& later, Bucket& bucket) {
  bucket.layers.first = std::min(bucket.layers.first, later.layers.first);
  bucket.elements = {std::min(bucket.elements.begin, later.elements.begin),
                     std::max(bucket.elements.end, later.elements.end)};
  bucket.gradient += later.gradient;
}

/// True if the elements are adjacent to those of the bucket. The rest of a layer whose first arrays filled a
/// buffer does not, and begins a bucket of its own, so that a bucket is one piece of the gradients.
bool adjoins(const Bucket& later, const Bucket& bucket) {
  return later.gradient.value > 0 && bucket.gradient.value > 0 &&
         (bucket.elements.begin == later.elements.end || bucket.elements.end == later.elements.begin);
}

int levels(int ranks) {
  return std::bit_width(static_cast<unsigned>(std::max(ranks, 1)) - 1);
}

double small_message(const Topology& topology, const std::vector<MessageCost>& costs, int from, int to) {
  return topology.route_latency(from, to).value + (costs.empty() ? 0 : costs.front().overhead.value);
}

}  // namespace

std::vector<Bucket> buckets_of_cycles(const std::vector<LayerGradients>& layers,
                                      const std::vector<LayerSeconds>& times, Bytes element,
                                      const FusionCycle& cycle) {
  const std::vector<double> ready_at = ready_seconds(times);
  const std::vector<Bucket> arrays = arrays_from_the_end(layers, element);
  const auto ready = [&](std::size_t i) { return ready_at[arrays[i].layers.first]; };
  const auto announced = [&](std::size_t i) { return std::max(0.0, ready(i) - cycle.host_lead.value); };
  const auto fits = [&threshold = cycle.threshold](Bytes gradients) {
    using Holds = BucketSize::Holds;
    return threshold.holds == Holds::model ||
           (threshold.holds == Holds::bytes && gradients <= threshold.least);
  };
  std::vector<Bucket> buckets;
  double look = 0;  // time of the next look
  for (std::size_t i = 0; i < arrays.size();) {
    if (announced(i) > look)
      look += std::ceil((announced(i) - look) / cycle.period.value) * cycle.period.value;
    Bucket bucket = arrays[i];
    std::size_t next = i + 1;
    while (next < arrays.size() && announced(next) <= look && adjoins(arrays[next], bucket) &&
           fits(bucket.gradient + arrays[next].gradient))
      append(arrays[next++], bucket);
    const double start = std::max(look + cycle.negotiation.value, ready(next - 1));
    bucket.wait = {start - ready(next - 1)};
    buckets.push_back(bucket);
    // Gradients that this look has seen need no other look. The thread waits for the data of a buffer.
    const bool seen = next < arrays.size() && announced(next) <= look;
    if (!seen) look = std::max(look + cycle.period.value, start);
    i = next;
  }
  return buckets;
}

Seconds negotiation_seconds(const Platform& platform, const std::vector<int>& endpoints, int collectives) {
  std::map<int, std::vector<int>> devices;  // by server
  for (const int endpoint : endpoints) devices[platform.node_of(endpoint)].push_back(endpoint);
  const Topology topology(platform);
  const std::vector<int>& first = devices.begin()->second;
  double seconds = 0;
  if (first.size() > 1)
    seconds +=
        levels(first.size()) * small_message(topology, platform.local_message_costs, first[0], first[1]);
  if (devices.size() > 1) {
    const int from = platform.host_endpoint(devices.begin()->first);
    const int to = platform.host_endpoint(devices.rbegin()->first);
    seconds += levels(devices.size()) * small_message(topology, platform.message_costs, from, to);
  }
  return {collectives * seconds};
}

namespace {

struct GradientBucketKeys {
  BucketSize bucket;
  std::optional<Bytes> first_bucket;
  Seconds cycle;
  int negotiation = 0;
  Seconds host_lead;
};

const Fields<GradientBucketKeys>& gradient_bucket_fields() {
  using Buckets = GradientBucketKeys;
  static const Fields<Buckets> fields{details(
      {field("bucket", &Buckets::bucket, bucket_size(), kBucketMeaning),
       field("first_bucket", &Buckets::first_bucket, bytes(1), otherwise("bucket"),
             "size of the first bucket, of the last layers"),
       field(
           "cycle", &Buckets::cycle, duration(),
           "time between two checks for gradients that are ready; the gradients found by one check are sent "
           "together"),
       field("negotiation", &Buckets::negotiation, integer(0, 100),
             "cycle: small collectives after each check, in which the hosts of all workers agree on the "
             "gradients that are ready"),
       field("host_lead", &Buckets::host_lead, duration(),
             "cycle: time from the announcement of a gradient by the host to the end of its computation on "
             "the device")})};
  return fields;
}

}  // namespace

const Keys& gradient_bucket_keys() {
  return gradient_bucket_fields().keys();
}

std::vector<Bucket> read_gradient_buckets(const YamlMap& map, const Setting& setting, Bytes element,
                                          const Workload& workload) {
  GradientBucketKeys keys;
  read_fields(map, gradient_bucket_fields(), keys);
  const std::vector<LayerGradients> arrays = gradient_arrays(setting.model);
  if (keys.cycle.value == 0) return gradient_buckets(arrays, element, keys.bucket, keys.first_bucket);
  FusionCycle cycle{keys.cycle, keys.bucket, {}, keys.host_lead};
  if (setting.workers() > 1)
    cycle.negotiation = negotiation_seconds(setting.platform, setting.devices, keys.negotiation);
  return buckets_of_cycles(arrays, workload.median, element, cycle);
}

}  // namespace stepcast
