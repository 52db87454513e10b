#include "models/cost/device.hpp"

namespace stepcast {
namespace {

Key share_key(const std::string& name, const std::string& meaning,
              const std::string& default_value = "required") {
  return {name, "number", "0.01 to 1", default_value, meaning};
}

}  // namespace

const Keys& sourced_value_keys() {
  static const Keys keys{{"value", "value", "", "required", "the value"},
                         {"source", "text", "", "required", "where the value comes from"}};
  return keys;
}

const Keys& device_rate_keys() {
  static const Keys keys{
      {"model", "text", "", "required", "network"},
      {"batch", "integer", "1 to 1e9", "required", "samples of a step"},
      {"samples_per_second", "number", "1e-9 to 1e300", "required", "published rate"},
      {"use", "name", "calibrate, check", "calibrate",
       "`calibrate`: the efficiency is fitted to the rate; `check`: the rate is only compared"},
      {"source", "text", "", "required", "origin of the rate"}};
  return keys;
}

const Keys& kernel_share_keys() {
  static const Keys keys = with_sources(
      {{"gap", "time", ">= 0", "required", "time between two kernels"},
       share_key("streaming", "share of the memory bandwidth: ReLU, additions, updates"),
       share_key("max_pool", "share of the memory bandwidth: max pools", "that of `streaming`"),
       share_key("batch_norm", "share of the memory bandwidth: batch norm"),
       share_key("layer_norm", "share of the memory bandwidth: layer norm"),
       share_key("dense", "share of the peak rate: dense layers and attention"),
       share_key("flash", "share of the peak rate: a flash kernel of attention", "none"),
       share_key("pointwise", "share of the peak rate: convolutions with a window of 1"),
       share_key("window", "share of the peak rate: other convolutions"),
       {"winograd", "number", "1 to 10", "required", "work saved for 2-D windows of 3 at stride 1"},
       {"fft", "number", "1 to 10", "1", "work saved for larger 2-D windows at stride 1"},
       {"recurrent_step", "time", ">= 0", "required", "small kernels of one time step of an LSTM or GRU"},
       share_key("weights", "gradients of filters: factor on `pointwise` and `window`", "1"),
       {"batch_norm_channels", "number", "0 to 10,000", "0",
        "channels with which batch norm reaches half of its share"},
       {"cache", "bytes", ">= 0", "0 B",
        "size up to which the next layer reads an output from the second-level cache"},
       {"channel_multiple", "integer", "1 to 1024", "none",
        "convolutions with a window of 2 and more, or a stride, copy inputs and outputs to another layout, "
        "and pad input channels to a multiple of this"}},
      Key::Source::must);
  return keys;
}

const Keys& precision_keys() {
  static const Keys keys = [] {
    Keys all = with_sources({{"peak", "work rate", "> 0", "required", "peak rate in this precision"}},
                            Key::Source::must);
    for (Key key : kernel_share_keys()) {
      key.default_value = "as in `kernels`";
      all.push_back(key);
    }
    return all;
  }();
  return keys;
}

const Keys& precisions_keys() {
  static const Keys keys{{"tf32", "mapping", "", "none", "products in TF32", precision_keys},
                         {"f16", "mapping", "", "none", "products in fp16 or bf16", precision_keys}};
  return keys;
}

const Keys& device_keys() {
  static const Keys keys = joined_keys(
      {{{"name", "text", "", "required", "name of the device"}},
       with_sources(
           {{"peak", "work rate", "> 0", "required", "peak rate in fp32; a multiply-add counts as two"},
            {"memory_bandwidth", "bandwidth", "> 0", "required", "bandwidth of the device's memory"},
            {"memory", "bytes", ">= 1 B", "required", "memory as sold"},
            {"usable_memory", "bytes", ">= 1 B", "required",
             "memory that a training process can allocate, at most `memory`"},
            {"launch_overhead", "time", ">= 0", "required",
             "time of one kernel's start; `0 s` marks a processor"},
            {"multiprocessors", "integer", "1 to 1e6", "not known",
             "multiprocessors that work on one kernel"}},
           Key::Source::must),
       {{"rates", "list of mappings", "", "none", "published training rates of one device", device_rate_keys},
        {"kernels", "mapping", "", "none", "shares of bandwidth and peak for each kind of kernel",
         kernel_share_keys},
        {"precisions", "mapping", "", "none", "peaks and shares of tensor cores", precisions_keys}}});
  static const Keys all = [] {
    Keys with = keys;
    with.push_back(
        {"efficiency_of", "text", "", "none", "without `rates`: the device whose efficiency is assumed"});
    with.back().source = Key::Source::must;
    with.push_back({"cudnn", "integer", "1 to 99", "5",
                    "major version, for the older rule: from 3 on it has FFT, from 5 on Winograd"});
    with.back().source = Key::Source::must;
    return with;
  }();
  return all;
}

}  // namespace stepcast
