#pragma once

#include <compare>

namespace stepcast {

/// A number with its unit as its type, so that seconds cannot be passed where bytes are expected.
///
/// All values are SI base units: s, B, flop, B/s, flop/s. Prefixes exist only in YAML and in printed tables.
template <class Unit>
struct Quantity {
  double value = 0;

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(double k, Quantity q) { return {k * q.value}; }
  friend constexpr Quantity operator/(Quantity q, double k) { return {q.value / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value / b.value; }
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
};

using Seconds = Quantity<struct SecondUnit>;
using Bytes = Quantity<struct ByteUnit>;
using Flops = Quantity<struct FlopUnit>;
using BytesPerSecond = Quantity<struct BytePerSecondUnit>;
using FlopsPerSecond = Quantity<struct FlopPerSecondUnit>;

constexpr Seconds operator/(Bytes b, BytesPerSecond rate) {
  return {b.value / rate.value};
}
constexpr Seconds operator/(Flops f, FlopsPerSecond rate) {
  return {f.value / rate.value};
}

}  // namespace stepcast
