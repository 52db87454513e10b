#pragma once

#include <compare>
#include <cstddef>

namespace stepcast {

/// The number of one kind of thing, such as a collective of a plan: its index among the things of this kind.
/// Numbers of different kinds do not convert into each other, nor into integers.
/// @tparam Tag  a type for each kind, which need not be defined
template <class Tag>
struct TypedId {
  int value = -1;  ///< negative: none

  constexpr TypedId() = default;
  constexpr explicit TypedId(int number) : value(number) {}
  constexpr explicit TypedId(std::size_t index) : value(static_cast<int>(index)) {}

  constexpr auto operator<=>(const TypedId&) const = default;

  constexpr bool exists() const { return value >= 0; }
  /// The number as an index of a vector; the number must exist.
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
};

}  // namespace stepcast
