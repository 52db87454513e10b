#include "core/random.hpp"

#include <Random123/philox.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace stepcast {
namespace {

double to_unit(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32 | low) >> 11;
  return bits * 0x1p-53;
}

}  // namespace

UniformPair uniform_pair(const RandomKey& key) {
  const r123::Philox4x32::ctr_type counter{
      {key.worker, key.step, key.item, static_cast<std::uint32_t>(key.purpose)}};
  const r123::Philox4x32::key_type seed{
      {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)}};
  const auto words = r123::Philox4x32{}(counter, seed);
  return {to_unit(words[0], words[1]), to_unit(words[2], words[3])};
}

namespace {

double radius_of(double uniform) {
  return std::sqrt(-2 * std::log1p(-uniform));
}

double cosine_of(double uniform) {
  return std::cos(2 * std::numbers::pi * uniform);
}

}  // namespace

double normal(const RandomKey& key) {
  const auto [radius, angle] = uniform_pair(key);
  return radius_of(radius) * cosine_of(angle);
}

void normal_numbers(const RandomKey& key, std::span<const std::uint32_t> items, std::span<double> numbers) {
  if (items.size() > kNormalBlock || items.size() != numbers.size())
    throw std::invalid_argument("normal_numbers: too many items, or not a number for each");
  std::array<UniformPair, kNormalBlock> uniform{};
  RandomKey own = key;
  for (std::size_t i = 0; i < items.size(); ++i) {
    own.item = items[i];
    uniform[i] = uniform_pair(own);
  }
  for (std::size_t i = 0; i < items.size(); ++i) numbers[i] = radius_of(uniform[i].first);
  for (std::size_t i = 0; i < items.size(); ++i) numbers[i] *= cosine_of(uniform[i].second);
}

std::size_t uniform_index(const RandomKey& key, std::size_t count) {
  const auto index = static_cast<std::size_t>(uniform(key) * count);
  return std::min(index, count - 1);
}

std::vector<int> permutation(RandomKey key, int count) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    key.item = i;
    std::swap(order[i - 1], order[uniform_index(key, i)]);
  }
  return order;
}

}  // namespace stepcast
