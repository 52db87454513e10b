#include "models/cost/device.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/fields.hpp"

namespace stepcast {

namespace {

constexpr auto kSourced = "{value: ..., source: ...}";

const Fields<DeviceRate>& rate_fields() {
  using Use = DeviceRate::Use;
  static const Fields<DeviceRate> fields{
      field("model", &DeviceRate::model, text(), required("the name of a model"), "network"),
      field("batch", &DeviceRate::batch, integer(1, 1'000'000'000), required("an integer >= 1"),
            "samples of a step"),
      field("samples_per_second", &DeviceRate::samples_per_second, number(1e-9), required("a number > 0"),
            "published rate"),
      field("use", &DeviceRate::use, choice<Use>({{"calibrate", Use::calibrate}, {"check", Use::check}}),
            "`calibrate`: the efficiency is fitted to the rate; `check`: the rate is only compared"),
      field("source", &DeviceRate::source, text(), required("where the rate comes from"),
            "origin of the rate")};
  return fields;
}

/// A share of a rate that the device must name.
Field<KernelShares> share(std::string_view name, double KernelShares::*member, std::string_view meaning) {
  return field(name, member, number(0.01, 1), required(kSourced), meaning);
}

/// A share with a default in words.
Field<KernelShares> share(std::string_view name, double KernelShares::*member, const Default& instead,
                          std::string_view meaning) {
  return field(name, member, number(0.01, 1), instead, meaning);
}

Fields<KernelShares> share_fields() {
  using Shares = KernelShares;
  return Fields<Shares>{
      field("gap", &Shares::gap, duration(), required(kSourced), "time between two kernels"),
      field("tile", &Shares::tile, duration(), "fixed time of each tile of a product"),
      share("streaming", &Shares::streaming, "share of the memory bandwidth: ReLU, additions, updates"),
      share("max_pool", &Shares::max_pool, otherwise("that of `streaming`"),
            "share of the memory bandwidth: max pools"),
      share("batch_norm", &Shares::batch_norm, "share of the memory bandwidth: batch norm"),
      share("layer_norm", &Shares::layer_norm, "share of the memory bandwidth: layer norm"),
      share("cast", &Shares::cast, otherwise("that of `streaming`"),
            "share of the memory bandwidth: autocast's casts to fp32, and sums of two precisions"),
      share("dense", &Shares::dense,
            "share of the peak rate in a tile without end: dense layers and attention"),
      field("unaligned", &Shares::unaligned, number(0.01, 1),
            "dense layers of which a size is no multiple of 16 bytes: factor on `dense`, half of it for an "
            "odd size"),
      share("flash", &Shares::flash, otherwise("none"),
            "share of the peak rate: a flash kernel of attention"),
      share("pointwise", &Shares::pointwise, "as `dense`: convolutions with a window of 1"),
      share("window", &Shares::window, "as `dense`: other convolutions"),
      field("winograd", &Shares::winograd, number(1, 10), required(kSourced),
            "factor by which Winograd's algorithm reduces the work of 2-D windows of 3 at stride 1"),
      field("fft", &Shares::fft, number(1, 10),
            "factor by which a fast Fourier transform reduces the work of larger 2-D windows at stride 1"),
      field("recurrent_step", &Shares::recurrent_step, duration(), required(kSourced),
            "time of the small kernels in one time step of an LSTM or GRU"),
      field("weights", &Shares::weights, number(0.01, 1),
            "gradients of filters, and with TF32 of all weights: factor on the shares of the peak"),
      field("cache", &Shares::cache, bytes(),
            "largest output that the next layer reads from the second-level cache"),
      field("channel_multiple", &Shares::channel_multiple, integer(1, 1024), otherwise("none"),
            "convolutions with a window of 2 and more, or a stride, copy inputs and outputs to another "
            "layout, and pad input channels to a multiple of this")}
      .sourced(Key::Source::must);
}

const Fields<KernelShares>& kernel_share_fields() {
  static const Fields<KernelShares> fields = share_fields();
  return fields;
}

/// The peak of a precision, and the shares that differ from those of a key.
Fields<PrecisionKernels> fields_of_precision(const Default& peak, std::string_view shares) {
  return Fields<PrecisionKernels>{
      field("peak", &PrecisionKernels::peak, work_rate(), peak, "peak rate in this precision"),
      part(&PrecisionKernels::kernels, share_fields().optional(shares))}
      .sourced(Key::Source::must);
}

const Fields<PrecisionKernels>& precision_fields() {
  static const Fields<PrecisionKernels> fields = fields_of_precision(required(kSourced), "as in `kernels`");
  return fields;
}

const Fields<PrecisionKernels>& bf16_fields() {
  static const Fields<PrecisionKernels> fields = fields_of_precision(otherwise("as in `f16`"), "as in `f16`");
  return fields;
}

const Fields<PrecisionKernels>& fp8_fields() {
  static const Fields<PrecisionKernels> fields =
      Fields<PrecisionKernels>{
          field("peak", &PrecisionKernels::peak, work_rate(), required(kSourced), "peak rate in fp8"),
          part(&PrecisionKernels::kernels, share("dense", &KernelShares::dense, otherwise("as in bf16"),
                                                 "share of the peak rate in a tile without end"))}
          .sourced(Key::Source::must);
  return fields;
}

/// The shares of a precision of tensor cores; nullptr: the device has none. Devices with TF32 have bf16, too.
const PrecisionKernels* kernels_in(const Device& device, KernelChoice::Precision precision) {
  using Precision = KernelChoice::Precision;
  const auto found = device.precisions.find(precision);
  if (found != device.precisions.end()) return &found->second;
  const bool as_half = precision == Precision::bf16 && device.precisions.contains(Precision::tf32);
  return as_half ? kernels_in(device, Precision::f16) : nullptr;
}

void read_bf16(const YamlValue& value, Device& device) {
  using Precision = KernelChoice::Precision;
  const auto half = device.precisions.find(Precision::f16);
  const bool alone = half == device.precisions.end();
  PrecisionKernels own = alone ? PrecisionKernels{{}, *device.kernels} : half->second;
  const YamlMap map = read_mapping(value, bf16_fields(), own);
  if (alone) map.at("peak", "{value: ..., source: ...}, as there is no key f16");
  device.precisions[Precision::bf16] = own;
}

void read_fp8(const YamlValue& value, Device& device) {
  const PrecisionKernels* bf16 = kernels_in(device, KernelChoice::Precision::bf16);
  PrecisionKernels own = bf16 == nullptr ? PrecisionKernels{{}, *device.kernels} : *bf16;
  read_mapping(value, fp8_fields(), own);
  device.precisions[KernelChoice::Precision::fp8] = own;
}

/// Reads `precisions:`. Shares that a precision does not name are those of fp32; of bf16, those of f16.
void read_precisions(const YamlValue& value, Device& device) {
  using Precision = KernelChoice::Precision;
  if (!device.kernels) value.refuse("needs the key kernels");
  const YamlMap yaml = read_map(value, precisions_keys());
  for (const auto& [word, precision] : {std::pair{"tf32", Precision::tf32}, {"f16", Precision::f16}}) {
    const auto one = yaml.maybe(word);
    if (!one) continue;
    PrecisionKernels& own = device.precisions[precision];
    own.kernels = *device.kernels;
    read_mapping(*one, precision_fields(), own);
  }
  if (const auto bf16 = yaml.maybe("bf16")) read_bf16(*bf16, device);
  if (const auto fp8 = yaml.maybe("fp8")) read_fp8(*fp8, device);
}

void check_device(const YamlMap& map, Device& device) {
  if (device.usable_memory > device.memory) map.at("usable_memory").refuse("more than the device's memory");
  if (map.has("kernels_of"))
    device.kernels_assumed = map.at("kernels_of").any_map().at("source").text().starts_with("assumed");
  if (map.has("nvlink")) device.nvlink_source = map.at("nvlink").any_map().at("source").text();
  const double capability = device.compute_capability;
  if (!map.has("pcie_generation") && capability > 0)
    device.pcie_generation = capability >= 9 ? 5 : capability >= 8 ? 4 : 3;
}

/// What communication and its libraries depend on, and the device's place among others.
std::vector<Field<Device>> server_fields() {
  return {field("compute_capability", &Device::compute_capability, number(3, 20), otherwise("none"),
                "CUDA's, for NCCL's constants"),
          field("pcie_generation", &Device::pcie_generation, integer(3, 6),
                otherwise("by capability: 5 from 9.0, 3 below 8.0, else 4"), "PCIe of its servers"),
          field("nvlink", &Device::nvlink, bandwidth(), otherwise("not known"),
                "effective bandwidth of one NVLink or xGMI link, one way"),
          with_source(field("peer_access", &Device::peer_access, boolean(),
                            "whether devices reach each other's memory over PCIe"),
                      Key::Source::must),
          field("successor", &Device::successor, text(), otherwise("not known"),
                "what its maker sold next, which advice tries"),
          checked<Device>("reported_as", texts(), otherwise("none"), "the last words of CUDA's name for it")};
}

const Fields<Device>& device_fields() {
  static const Fields<Device> fields =
      Fields<Device>{
          {field("name", &Device::name, text(), required("the device's name"), "name of the device"),
           field("peak", &Device::peak, work_rate(), required(kSourced),
                 "peak rate in fp32; a multiply-add counts as two"),
           field("memory_bandwidth", &Device::memory_bandwidth, bandwidth(), required(kSourced),
                 "bandwidth of the device's memory"),
           field("memory", &Device::memory, bytes(1), required(kSourced), "memory as sold"),
           field("usable_memory", &Device::usable_memory, bytes(1), required(kSourced),
                 "memory that a training process can allocate, at most `memory`"),
           field("launch_overhead", &Device::launch_overhead, duration(), required(kSourced),
                 "time to start one kernel; `0 s` means that the device is a CPU"),
           field("watts", &Device::watts, number(1e-3, 1e6), otherwise("not known"),
                 "power limit of the device [W]: the energy of a training is this power over its hours"),
           field("multiprocessors", &Device::multiprocessors, integer(1, 1'000'000), otherwise("not known"),
                 "multiprocessors that work on one kernel"),
           server_fields(),
           field("rates", &Device::rates, list_of<rate_fields>(), "published training rates of one device"),
           field("kernels", &Device::kernels, mapping<kernel_share_fields>(),
                 "shares of bandwidth and peak for each kind of kernel"),
           field<Device>(
               {"precisions", KeyType::mapping, "none", "peaks and shares of tensor cores", precisions_keys}),
           with_source(field("efficiency_of", &Device::efficiency_of, text(),
                             "without `rates`: the device whose efficiency is assumed"),
                       Key::Source::must),
           with_source(field("kernels_of", &Device::kernels_of, text(),
                             "in place of `kernels`: the device whose shares are used, also those of "
                             "`precisions` that do not stand there; if the source begins with `assumed`, "
                             "derived times have the wider range of `kernels_...`"),
                       Key::Source::must),
           field("cudnn", &Device::cudnn, integer(1, 99),
                 "major version, for the older rule: from 3 on it has FFT, from 5 on Winograd")},
          check_device}
          .sourced(Key::Source::must);
  return fields;
}

}  // namespace

const YamlNode* kernels_of(const YamlNode& device) {
  const YamlNode* pair = device.find("kernels_of");
  return pair == nullptr ? nullptr : pair->find("value");
}

namespace {

/// Adds to each of `precisions` the shares that it lacks and `like` has there; null: nothing. A device with
/// bf16 and without f16 has those of f16, if `like` gives none for bf16.
void add_shares(YamlNode& precisions, const YamlNode* like) {
  for (auto& [name, shares] : precisions.entries) {
    const YamlNode* others = like == nullptr ? nullptr : like->find(name.text);
    if (like != nullptr && others == nullptr && name.text == "bf16" && precisions.find("f16") == nullptr)
      others = like->find("f16");
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
  Device device;
  const YamlMap map = read_mapping(value, device_fields(), device);
  if (const auto precisions = map.maybe("precisions")) read_precisions(*precisions, device);
  return device;
}

namespace {

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
    const bool fp8 = choice.precision == KernelChoice::Precision::fp8;
    const PrecisionKernels* chosen = kernels_in(device, choice.precision);
    const PrecisionKernels* others = fp8 ? kernels_in(device, KernelChoice::Precision::bf16) : chosen;
    if (chosen == nullptr || others == nullptr)
      throw InputError(fmt::format("device {}: precision: expected one of {}, got \"{}\"", device.name,
                                   known_precisions(device), precision_words().of(choice.precision)));
    if (fp8) device.fp8 = *chosen;
    device.peak = others->peak;
    device.kernels = others->kernels;
  }
  if (choice.autocast && (!choice.half() || choice.precision == KernelChoice::Precision::fp8))
    throw InputError(fmt::format("device {}: autocast: needs the precision f16 or bf16", device.name));
  if (is_flash(choice.attention) && device.kernels->flash == 0)
    throw InputError(fmt::format(
        "device {}: attention: flash: the device file gives no share of a flash kernel", device.name));
  device.kernels->choice = choice;
  return device;
}

const Keys& precisions_keys() {
  static const Keys keys{
      {"tf32", KeyType::mapping, "none", "products in TF32", keys_inside<precision_fields>},
      {"f16", KeyType::mapping, "none", "products in fp16 or bf16", keys_inside<precision_fields>},
      {"bf16", KeyType::mapping, "as `f16` on devices with `tf32`",
       "shares in bf16 that differ from those of `f16`", keys_inside<bf16_fields>},
      {"fp8", KeyType::mapping, "none", "products in fp8; the device has bf16, too",
       keys_inside<fp8_fields>}};
  return keys;
}

const Keys& device_keys() {
  return device_fields().keys();
}

}  // namespace stepcast
