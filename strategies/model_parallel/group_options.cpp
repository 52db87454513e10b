#include "core/fields.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"

namespace stepcast {
namespace {

const Fields<GroupOptions>& group_fields() {
  static const Fields<GroupOptions> fields{
      details({field("bucket", &GroupOptions::bucket, bucket_size(), kBucketMeaning),
               field("overlap", &GroupOptions::overlap, boolean(),
                     "whether gradients are summed during the rest of the backward pass"),
               field("halo_overlap", &GroupOptions::halo_overlap, boolean(),
                     "whether exchanges run during work that does not need their data")}),
      field("accumulation", &GroupOptions::micro_batches, integer(1, 1'000'000), "micro-batches in a step"),
      field("exchange_overhead", &GroupOptions::exchange_overhead, duration(),
            "device time of every exchange inside a pass")};
  return fields;
}

}  // namespace

const Keys& group_keys() {
  static const Keys keys = joined_keys({training_keys(), communication_keys(), group_fields().keys()});
  return keys;
}

Key part_trace_key() {
  return renamed({"part_trace", Allowed({KeyType::name, KeyType::path}), "none",
                  "trace that was captured at the shapes of a device's part"},
                 "cut_trace");
}

GroupOptions read_group_options(const YamlMap& map) {
  GroupOptions options;
  options.training = read_training_options(map);
  refuse_compression(map, "not supported where devices share a network or its state");
  options.communication = read_communication(map);
  read_fields(map, group_fields(), options);
  return options;
}

}  // namespace stepcast
