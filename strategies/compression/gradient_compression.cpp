#include "strategies/compression/gradient_compression.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/fields.hpp"
#include "strategies/arithmetic/compressed_values.hpp"
#include "strategies/arithmetic/model_updates.hpp"

namespace stepcast {

namespace {

void check_compression(const YamlMap& map, GradientCompression& compression) {
  if (map.has("density") && compression.kind != Compression::top_k)
    map.at("density").refuse("only valid with compression: top_k");
  if (map.has("error_feedback") && compression.kind == Compression::none)
    map.at("error_feedback").refuse("only valid with compression");
  if (map.has("compression_factor") && !map.has("compression"))
    map.at("compression_factor").refuse("only valid with compression");
}

const Fields<GradientCompression>& compression_fields() {
  static const Fields<GradientCompression> fields{
      {field("density", &GradientCompression::density, number(1e-9, 1),
             "compression: top_k: share of the elements that is sent"),
       field("error_feedback", &GradientCompression::feedback, boolean(),
             "the quantization error of a gradient is added to the next one; false: it is dropped"),
       field("compression_factor", &GradientCompression::factor, number(0, 1e6),
             "multiplies the times to quantize and to restore")},
      check_compression};
  return fields;
}

/// The method that the key `compression` of every strategy names.
Compression compression_of(const YamlMap& map) {
  const auto named = map.maybe("compression");
  return named ? compression_words().read(*named) : Compression::none;
}

}  // namespace

const Keys& compression_keys() {
  return compression_fields().keys();
}

GradientCompression read_compression_options(const YamlMap& map, const Setting& setting) {
  GradientCompression compression;
  compression.kind = compression_of(map);
  read_fields(map, compression_fields(), compression);
  if (compression.kind == Compression::none) return compression;
  if (const auto precision = map.maybe("precision"); precision && precision->text() == "mixed")
    map.at("compression").refuse("not supported with precision: mixed; set precision: f32");
  if (!setting.compression) return compression;
  const CompressionTimes times = setting.compression(compression.kind);
  compression.cost = {compression.factor * times.cost.quantize, compression.factor * times.cost.restore};
  compression.rows = times.rows;
  compression.flag = times.flag;
  return compression;
}

void note_ineffective_compression(const YamlMap& map, IneffectiveKeys& found) {
  if (compression_of(map) == Compression::none)
    note_ineffective(map, {"compression_factor"}, "with compression: none", found);
}

void refuse_compression(const YamlMap& map, const char* why) {
  if (compression_of(map) != Compression::none) map.at("compression").refuse(why);
}

Bytes wire_bytes(const GradientCompression& compression, std::int64_t elements) {
  switch (compression.kind) {
    case Compression::none:
      return {4.0 * elements};
    case Compression::one_bit:
      return one_bit_bytes(elements, compression.rows);
    case Compression::fp16:
      return {2.0 * elements};
    case Compression::top_k:
      return top_k_bytes(std::ceil(compression.density * elements));
  }
  return {};
}

Collective compressed_sum(const GradientCompression& compression, const Slice& elements, int workers) {
  const Bytes sent = wire_bytes(compression, elements.size());
  const Codec codec = compression.codec(workers);
  const CommunicatorId workers_of_plan{0};
  if (compression.kind == Compression::top_k)
    return {Collective::Kind::all_gather,
            workers_of_plan,
            {Array::gradients, elements, workers * sent, codec},
            nullptr};
  return {Collective::Kind::all_reduce, workers_of_plan, {Array::gradients, elements, sent, codec}, nullptr};
}

CompressionSeconds compression_seconds(const GradientCompression& compression, std::int64_t elements,
                                       int workers) {
  if (compression.kind == Compression::none || workers == 1) return {};
  const double bytes = 4.0 * elements, count = workers;
  double quantize = bytes * (1 + 1 / count), restore = 2 * bytes;
  if (compression.kind == Compression::top_k) {
    quantize = bytes;
    restore = bytes * (1 + count * compression.density);
  }
  return {{quantize * compression.cost.quantize}, {restore * compression.cost.restore}};
}

CompressionSeconds update_seconds(const GradientCompression& compression, const CompressionCost& server,
                                  double elements) {
  if (compression.kind == Compression::none) return {};
  const double bytes = 4 * elements;
  const double restored = compression.kind == Compression::top_k ? compression.density * bytes : bytes;
  return {{bytes * compression.cost.quantize}, {compression.factor * restored * server.restore}};
}

Figures compression_figures(Bytes sent, CompressionSeconds seconds) {
  return {{"gradient_bytes", sent.value},
          {"quantize_seconds", seconds.quantize.value},
          {"restore_seconds", seconds.restore.value}};
}

Figures compression_figures(const GradientCompression& compression, const std::vector<Bucket>& buckets,
                            int workers) {
  const bool whole = compression.kind == Compression::none;
  Bytes sent;
  CompressionSeconds sum;
  for (const Bucket& bucket : buckets) {
    sent += whole ? bucket.gradient : wire_bytes(compression, bucket.elements.size());
    const auto one = compression_seconds(compression, bucket.elements.size(), workers);
    sum.quantize += one.quantize;
    sum.restore += one.restore;
  }
  return compression_figures(workers > 1 ? sent : Bytes{}, sum);
}

namespace {

constexpr std::int64_t kHalves = 2048;  // fp16: elements compressed together; even

std::size_t index(std::int64_t place) {
  return place;
}

template <class Value>
std::span<Value> part_of(std::span<Value> all, const Slice& slice) {
  return all.subspan(index(slice.begin), index(slice.size()));
}

template <class Visit>
void for_each_block(std::int64_t elements, std::int64_t block, const Visit& visit) {
  for (std::int64_t begin = 0; begin < elements; begin += block) {
    visit(Slice{begin, std::min(begin + block, elements)});
  }
}

}  // namespace

WireLayout::WireLayout(const Codec& codec, std::int64_t elements)
    : codec_(codec), elements_(elements), block_(codec.kind == Compression::one_bit ? codec.rows : kHalves) {}

std::int64_t WireLayout::words_of(std::int64_t elements) const {
  if (elements == 0) return 0;
  if (codec_.kind == Compression::one_bit)
    return static_cast<std::int64_t>(one_bit_bytes(index(elements), index(codec_.rows)).value / 4);
  if (codec_.kind == Compression::top_k)
    return 2 * static_cast<std::int64_t>(std::ceil(codec_.density * elements));
  return (elements + 1) / 2;
}

Slice WireLayout::elements(int owner) const {
  if (codec_.kind == Compression::top_k) return {0, elements_};
  const std::int64_t unit = codec_.kind == Compression::one_bit ? codec_.rows : 2;
  const std::int64_t units = (elements_ + unit - 1) / unit;
  return {std::min(elements_, unit * part_begin(units, codec_.owners, owner)),
          std::min(elements_, unit * part_begin(units, codec_.owners, owner + 1))};
}

Slice WireLayout::share(int owner) const {
  if (codec_.kind == Compression::top_k)
    return {owner * words_of(elements_), (owner + 1) * words_of(elements_)};
  const Slice own = elements(owner);
  return {words_of(own.begin), words_of(own.begin) + words_of(own.size())};
}

Slice WireLayout::arrived(int from, int owner) const {
  const std::int64_t first = share(codec_.owners - 1).end, length = share(owner).size();
  return {first + from * length, first + (from + 1) * length};
}

std::int64_t WireLayout::words() const {
  std::int64_t words = share(codec_.owners - 1).end;
  if (codec_.kind == Compression::top_k || codec_.owners == 1) return words;
  for (int owner = 0; owner < codec_.owners; ++owner)
    words = std::max(words, arrived(codec_.owners - 1, owner).end);
  return words;
}

CompressedGradient::CompressedGradient(const Codec& codec, std::int64_t elements, int place)
    : codec_(codec),
      layout_(codec, elements),
      place_(place),
      wire_(index(layout_.words())),
      residual_(index(elements)),
      halves_(index(kHalves)) {
  if (codec.kind == Compression::top_k) return;
  residual_of_sum_.resize(index(layout_.elements(place).size()));
  sum_.resize(index(layout_.block()));
  part_.resize(index(layout_.block()));
}

void CompressedGradient::quantize(std::span<const float> gradient) {
  if (!codec_.feedback) std::ranges::fill(residual_, 0.0F);
  if (codec_.kind != Compression::top_k) {
    for (int owner = 0; owner < codec_.owners; ++owner) quantize_share(owner, gradient);
    return;
  }
  const Slice own = layout_.share(place_);
  const std::size_t count = index(own.size() / 2);
  select_top_k(gradient, count, residual_, candidates_, sparse_);
  float* words = wire_.data() + own.begin;
  std::memcpy(words, sparse_.indices.data(), count * sizeof(float));
  std::memcpy(words + count, sparse_.values.data(), count * sizeof(float));
}

void CompressedGradient::quantize_share(int owner, std::span<const float> gradient) {
  const Slice share = layout_.elements(owner);
  const auto values = part_of(gradient, share);
  const auto residual = part_of(std::span(residual_), share);
  float* words = wire_.data() + layout_.share(owner).begin;
  for_each_block(share.size(), layout_.block(), [&](const Slice& block) {
    const Slice elements{share.begin + block.begin, share.begin + block.end};
    quantize_block(elements, part_of(values, block), part_of(residual, block), words);
    words += layout_.words_of(block.size());
  });
}

void CompressedGradient::sum_share() {
  if (codec_.kind == Compression::top_k) return;
  if (!codec_.feedback) std::ranges::fill(residual_of_sum_, 0.0F);
  const Slice share = layout_.elements(place_);
  std::int64_t word = 0;
  for_each_block(share.size(), layout_.block(), [&](const Slice& block) {
    const auto sum = std::span(sum_).first(index(block.size())), part = std::span(part_).first(sum.size());
    float* own = wire_.data() + layout_.share(place_).begin + word;
    std::fill(sum.begin(), sum.end(), 0.0F);
    for (int from = 0; from < codec_.owners;
         ++from) {  // always in the same order, so that the sum has the same bits
      restore_block(from == place_ ? own : wire_.data() + layout_.arrived(from, place_).begin + word, part);
      accumulate(part, sum);
    }
    const Slice elements{share.begin + block.begin, share.begin + block.end};
    for (const std::size_t element : padding_in(elements)) sum[element] = 0;
    quantize_block(elements, sum, part_of(std::span(residual_of_sum_), block), own);
    word += layout_.words_of(block.size());
  });
}

void CompressedGradient::restore(std::span<float> gradient) {
  if (codec_.kind == Compression::top_k) {
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    for (int from = 0; from < codec_.owners; ++from) {
      const Slice share = layout_.share(from);
      const float *places = wire_.data() + share.begin, *values = places + share.size() / 2;
      for (std::int64_t i = 0; i < share.size() / 2; ++i)
        gradient[std::bit_cast<std::uint32_t>(places[i])] += values[i];
    }
    return;
  }
  for (int owner = 0; owner < codec_.owners; ++owner) {
    const auto values = part_of(gradient, layout_.elements(owner));
    const float* words = wire_.data() + layout_.share(owner).begin;
    for_each_block(layout_.elements(owner).size(), layout_.block(), [&](const Slice& block) {
      restore_block(words, part_of(values, block));
      words += layout_.words_of(block.size());
    });
  }
  for (const std::int64_t element : padding_) gradient[index(element)] = 0;
}

/// The padding among these elements, as indices from the first of them.
std::span<const std::size_t> CompressedGradient::padding_in(const Slice& elements) {
  padding_of_block_.clear();
  for (auto i = std::ranges::lower_bound(padding_, elements.begin); i != padding_.end() && *i < elements.end;
       ++i)
    padding_of_block_.push_back(index(*i - elements.begin));
  return padding_of_block_;
}

/// Words of a one_bit column: its two numbers, then its signs.
void CompressedGradient::quantize_block(const Slice& elements, std::span<const float> values,
                                        std::span<float> residual, float* words) {
  if (codec_.kind == Compression::fp16) {
    const auto halves = std::span(halves_).first(values.size());
    to_halves_with_feedback(values, residual, halves);
    std::memcpy(words, halves.data(), halves.size_bytes());
    return;
  }
  quantize_one_bit(values, index(codec_.rows), residual, bits_, padding_in(elements));
  words[0] = bits_.below.front();
  words[1] = bits_.above.front();
  std::memcpy(words + 2, bits_.signs.data(), bits_.signs.size() * sizeof(float));
}

void CompressedGradient::restore_block(const float* words, std::span<float> values) {
  if (codec_.kind == Compression::fp16) {
    const auto halves = std::span(halves_).first(values.size());
    std::memcpy(halves.data(), words, halves.size_bytes());
    from_halves(halves, values);
    return;
  }
  bits_.rows = index(codec_.rows);
  bits_.below.assign(1, words[0]);
  bits_.above.assign(1, words[1]);
  bits_.signs.resize((values.size() + 31) / 32);
  std::memcpy(bits_.signs.data(), words + 2, bits_.signs.size() * sizeof(float));
  restore_one_bit(bits_, values);
}

}  // namespace stepcast
