#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

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

/// The number of one kind of thing, such as a collective of a plan: its index among the things of this kind.
/// Numbers of different kinds do not convert into each other, nor into integers.
/// @tparam Tag  a type for each kind, which need not be defined
template <class Tag>
struct TypedId {
  int value = -1;  ///< negative: none

  constexpr TypedId() = default;
  constexpr explicit TypedId(std::integral auto number) : value(number) {}

  constexpr auto operator<=>(const TypedId&) const = default;

  constexpr bool exists() const { return value >= 0; }
  /// The number as an index of a vector; the number must exist.
  constexpr std::size_t index() const { return value; }
};

/// The place of a value in its enumeration: the index of its entry in a table with one entry for each value.
template <class Enumeration>
constexpr std::size_t ordinal(Enumeration value) {
  return static_cast<std::size_t>(value);
}

/// A vector whose index is a number of one kind. As a vector it is iterated, sized and filled.
template <class Id, class T>
struct IdTable : std::vector<T> {
  using std::vector<T>::vector;
  IdTable(std::vector<T> values) : std::vector<T>(std::move(values)) {}

  decltype(auto) operator[](Id id) { return std::vector<T>::operator[](id.index()); }
  decltype(auto) operator[](Id id) const { return std::vector<T>::operator[](id.index()); }

  /// Appends a value. @return its number
  Id add(T value) {
    this->push_back(std::move(value));
    return Id(this->size() - 1);
  }
};

}  // namespace stepcast
