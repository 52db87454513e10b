#include "models/cost/device.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace stepcast {

namespace {

/// The value of `{value: ..., source: ...}`; a number without a source is refused.
YamlValue sourced(const YamlMap& yaml, std::string_view key) {
  const YamlMap pair = read_map(yaml.at(key, "{value: ..., source: ...}"), sourced_value_keys());
  pair.at("source", "where the value comes from").text();
  return pair.at("value");
}

DeviceRate read_rate(const YamlValue& value) {
  const YamlMap yaml = read_map(value, device_rate_keys());
  const auto use = yaml.maybe("use");
  const bool check = use && use->one_of({"calibrate", "check"}) == 1;
  return {.model = yaml.at("model", "the name of a model").text(),
          .batch = yaml.at("batch", "an integer >= 1").integer(1, 1'000'000'000),
          .samples_per_second = yaml.at("samples_per_second", "a number > 0").number(1e-9),
          .use = check ? DeviceRate::Use::check : DeviceRate::Use::calibrate,
          .source = yaml.at("source", "where the rate comes from").text()};
}

/// Sets the shares that the mapping names.
void read_kernels(const YamlMap& yaml, KernelShares& kernels) {
  const auto share = [&](std::string_view key, double& into) {
    if (yaml.has(key)) into = sourced(yaml, key).number(0.01, 1);
  };
  const auto number = [&](std::string_view key, double low, double high, double& into) {
    if (yaml.has(key)) into = sourced(yaml, key).number(low, high);
  };
  if (yaml.has("gap")) kernels.gap = sourced(yaml, "gap").seconds();
  if (yaml.has("tile")) kernels.tile = sourced(yaml, "tile").seconds();
  share("streaming", kernels.streaming);
  share("max_pool", kernels.max_pool);
  share("batch_norm", kernels.batch_norm);
  share("layer_norm", kernels.layer_norm);
  share("cast", kernels.cast);
  share("dense", kernels.dense);
  share("unaligned", kernels.unaligned);
  share("flash", kernels.flash);
  share("pointwise", kernels.pointwise);
  share("window", kernels.window);
  share("weights", kernels.weights);
  number("winograd", 1, 10, kernels.winograd);
  number("fft", 1, 10, kernels.fft);
  if (yaml.has("recurrent_step")) kernels.recurrent_step = sourced(yaml, "recurrent_step").seconds();
  if (yaml.has("cache")) kernels.cache = sourced(yaml, "cache").bytes(0);
  if (yaml.has("channel_multiple"))
    kernels.channel_multiple = static_cast<double>(sourced(yaml, "channel_multiple").integer(1, 1024));
}

KernelShares read_own_kernels(const YamlValue& value) {
  const YamlMap yaml = read_map(value, kernel_share_keys());
  for (const char* key : {"gap", "streaming", "batch_norm", "layer_norm", "dense", "pointwise", "window",
                          "winograd", "recurrent_step"}) {
    yaml.at(key, "{value: ..., source: ...}");
  }
  KernelShares kernels;
  read_kernels(yaml, kernels);
  return kernels;
}

/// Reads one of `precisions`. @param own  the shares that it does not name
PrecisionKernels read_precision(const YamlMap& yaml, PrecisionKernels own) {
  if (yaml.has("peak")) own.peak = sourced(yaml, "peak").flops_per_second();
  read_kernels(yaml, own.kernels);
  return own;
}

/// Reads `precisions:`. Shares that a precision does not name are those of fp32; of bf16, those of f16.
void read_precisions(const YamlValue& value, Device& device) {
  using Precision = KernelChoice::Precision;
  if (!device.kernels) value.refuse("needs the key kernels");
  const YamlMap yaml = read_map(value, precisions_keys());
  for (const auto& [word, precision] : {std::pair{"tf32", Precision::tf32}, {"f16", Precision::f16}}) {
    const auto one = yaml.maybe(word);
    if (!one) continue;
    const YamlMap map = read_map(*one, precision_keys());
    map.at("peak", "{value: ..., source: ...}");
    device.precisions[precision] = read_precision(map, {{}, *device.kernels});
  }
  const auto bf16 = yaml.maybe("bf16");
  if (!bf16) return;
  const YamlMap map = read_map(*bf16, bf16_keys());
  const auto half = device.precisions.find(Precision::f16);
  if (half == device.precisions.end()) map.at("peak", "{value: ..., source: ...}, as there is no key f16");
  device.precisions[Precision::bf16] = read_precision(
      map, half == device.precisions.end() ? PrecisionKernels{{}, *device.kernels} : half->second);
}

}  // namespace

const YamlNode* kernels_of(const YamlNode& device) {
  const YamlNode* pair = device.find("kernels_of");
  return pair == nullptr ? nullptr : pair->find("value");
}

namespace {

/// Adds to each of `precisions` the shares that it lacks and `like` has there; null: nothing.
void add_shares(YamlNode& precisions, const YamlNode* like) {
  for (auto& [name, shares] : precisions.entries) {
    const YamlNode* others = like == nullptr ? nullptr : like->find(name.text);
    if (others == nullptr) continue;
    for (const auto& [key, value] : others->entries) {
      if (key.text != "peak" && shares.find(key.text) == nullptr) shares.entries.emplace_back(key, value);
    }
  }
}

}  // namespace

YamlNode with_kernels_of(YamlNode device, const YamlNode& other) {
  const YamlNode* kernels = other.find("kernels");
  const YamlValue named(*device.find("kernels_of"), "kernels_of");
  if (kernels == nullptr) named.refuse("the device that it names has no key kernels");
  if (device.find("kernels") != nullptr) named.refuse("only valid without the key kernels");
  for (auto& [key, value] : device.entries) {
    if (key.text == "precisions") add_shares(value, other.find("precisions"));
  }
  YamlNode name = named.node();
  name.kind = YamlNode::Kind::scalar;
  name.text = "kernels";
  device.entries.emplace_back(std::move(name), *kernels);
  return device;
}

Device read_device(const YamlValue& value) {
  const YamlMap yaml = read_map(value, device_keys());
  Device device;
  device.name = yaml.at("name", "the device's name").text();
  device.peak = sourced(yaml, "peak").flops_per_second();
  device.memory_bandwidth = sourced(yaml, "memory_bandwidth").bytes_per_second();
  device.memory = sourced(yaml, "memory").bytes(1);
  device.usable_memory = sourced(yaml, "usable_memory").bytes(1);
  device.launch_overhead = sourced(yaml, "launch_overhead").seconds();
  if (yaml.has("multiprocessors")) {
    device.multiprocessors = static_cast<int>(sourced(yaml, "multiprocessors").integer(1, 1'000'000));
  }
  if (device.usable_memory > device.memory) {
    yaml.at("usable_memory").refuse("more than the device's memory");
  }
  if (const auto rates = yaml.maybe("rates")) {
    for (const YamlValue& rate : rates->list()) device.rates.push_back(read_rate(rate));
  }
  if (yaml.has("kernels_of")) {
    device.kernels_of = sourced(yaml, "kernels_of").text();
    device.kernels_assumed = yaml.at("kernels_of").any_map().at("source").text().starts_with("assumed");
  }
  if (const auto kernels = yaml.maybe("kernels")) device.kernels = read_own_kernels(*kernels);
  if (const auto precisions = yaml.maybe("precisions")) read_precisions(*precisions, device);
  if (yaml.has("cudnn")) device.cudnn = static_cast<int>(sourced(yaml, "cudnn").integer(1, 99));
  if (yaml.has("efficiency_of")) device.efficiency_of = sourced(yaml, "efficiency_of").text();
  return device;
}

namespace {

/// The shares of a precision of tensor cores; nullptr: the device has none. Devices with TF32 have bf16, too.
const PrecisionKernels* kernels_in(const Device& device, KernelChoice::Precision precision) {
  using Precision = KernelChoice::Precision;
  const auto found = device.precisions.find(precision);
  if (found != device.precisions.end()) return &found->second;
  const bool as_half = precision == Precision::bf16 && device.precisions.contains(Precision::tf32);
  return as_half ? kernels_in(device, Precision::f16) : nullptr;
}

/// The words of the precisions that a device has.
std::string known_precisions(const Device& device) {
  std::string text = "f32";
  for (const std::string& word : precision_words().names()) {
    if (kernels_in(device, *precision_words().find(word)) != nullptr) text += ", " + word;
  }
  return text;
}

}  // namespace

Device with_kernels(Device device, const KernelChoice& choice) {
  if (choice == KernelChoice{}) return device;
  if (!device.kernels)
    throw InputError(
        fmt::format("device {}: has no shares by kind of kernel, so its kernels cannot be chosen ({})",
                    device.name, to_string(choice)));
  if (choice.precision != KernelChoice::Precision::f32) {
    const PrecisionKernels* chosen = kernels_in(device, choice.precision);
    if (chosen == nullptr)
      throw InputError(fmt::format("device {}: precision: expected one of {}, got \"{}\"", device.name,
                                   known_precisions(device), precision_words().of(choice.precision)));
    device.peak = chosen->peak;
    device.kernels = chosen->kernels;
  }
  if (choice.autocast && !choice.half())
    throw InputError(fmt::format("device {}: autocast: needs the precision f16 or bf16", device.name));
  if (choice.attention == KernelChoice::Attention::flash && device.kernels->flash == 0)
    throw InputError(fmt::format(
        "device {}: attention: flash: the device file gives no share of a flash kernel", device.name));
  device.kernels->choice = choice;
  return device;
}

namespace {

Key share_key(std::string_view name, std::string_view meaning, std::string_view default_value = "required") {
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
       {"tile", "time", ">= 0", "0 s", "fixed time of each tile of a product"},
       share_key("streaming", "share of the memory bandwidth: ReLU, additions, updates"),
       share_key("max_pool", "share of the memory bandwidth: max pools", "that of `streaming`"),
       share_key("batch_norm", "share of the memory bandwidth: batch norm"),
       share_key("layer_norm", "share of the memory bandwidth: layer norm"),
       share_key("cast",
                 "share of the memory bandwidth: autocast's casts to fp32, and sums of two precisions",
                 "that of `streaming`"),
       share_key("dense", "share of the peak rate in a tile without end: dense layers and attention"),
       share_key(
           "unaligned",
           "dense layers of which a size is no multiple of 16 bytes: factor on `dense`, half of it for an "
           "odd size",
           "1"),
       share_key("flash", "share of the peak rate: a flash kernel of attention", "none"),
       share_key("pointwise", "as `dense`: convolutions with a window of 1"),
       share_key("window", "as `dense`: other convolutions"),
       {"winograd", "number", "1 to 10", "required",
        "factor by which Winograd's algorithm reduces the work of 2-D windows of 3 at stride 1"},
       {"fft", "number", "1 to 10", "1",
        "factor by which a fast Fourier transform reduces the work of larger 2-D windows at stride 1"},
       {"recurrent_step", "time", ">= 0", "required",
        "time of the small kernels in one time step of an LSTM or GRU"},
       share_key("weights",
                 "gradients of filters, and with TF32 of all weights: factor on the shares of the peak", "1"),
       {"cache", "bytes", ">= 0", "0 B",
        "largest output that the next layer reads from the second-level cache"},
       {"channel_multiple", "integer", "1 to 1024", "none",
        "convolutions with a window of 2 and more, or a stride, copy inputs and outputs to another layout, "
        "and pad input channels to a multiple of this"}},
      Key::Source::must);
  return keys;
}

namespace {

/// The peak of a precision, and the shares that differ from those of a key.
Keys precision_keys_of(std::string_view peak_default, std::string_view share_default) {
  Keys all = with_sources({{"peak", "work rate", "> 0", peak_default, "peak rate in this precision"}},
                          Key::Source::must);
  for (Key key : kernel_share_keys()) {
    key.default_value = share_default;
    all.push_back(key);
  }
  return all;
}

}  // namespace

const Keys& precision_keys() {
  static const Keys keys = precision_keys_of("required", "as in `kernels`");
  return keys;
}

const Keys& bf16_keys() {
  static const Keys keys = precision_keys_of("as in `f16`", "as in `f16`");
  return keys;
}

const Keys& precisions_keys() {
  static const Keys keys{{"tf32", "mapping", "", "none", "products in TF32", precision_keys},
                         {"f16", "mapping", "", "none", "products in fp16 or bf16", precision_keys},
                         {"bf16", "mapping", "", "as `f16` on devices with `tf32`",
                          "shares in bf16 that differ from those of `f16`", bf16_keys}};
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
             "time to start one kernel; `0 s` means that the device is a CPU"},
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
    with.push_back(
        {"kernels_of", "text", "", "none",
         "in place of `kernels`: the device whose shares are used, also those of `precisions` that do "
         "not stand there; if the source begins with `assumed`, derived times have the wider range of "
         "`kernels_...`"});
    with.back().source = Key::Source::must;
    with.push_back({"cudnn", "integer", "1 to 99", "5",
                    "major version, for the older rule: from 3 on it has FFT, from 5 on Winograd"});
    with.back().source = Key::Source::must;
    return with;
  }();
  return all;
}

}  // namespace stepcast
