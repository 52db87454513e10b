#pragma once

#include <cstdint>
#include <span>

namespace stepcast {

/// IEEE 754 binary16 of a number, rounded to nearest, ties to even. Beyond 65,504 rounding gives infinity
/// from 65,520 on; a NaN stays one.
std::uint16_t to_half(float value);
float from_half(std::uint16_t half);  ///< exact

/// Each element; a loop without branches that a compiler vectorizes.
/// @throws std::invalid_argument if lengths differ
void from_halves(std::span<const std::uint16_t> halves, std::span<float> values);

/// With error feedback: owed += gradient; sent = owed, rounded; owed -= sent.
/// @throws std::invalid_argument if lengths differ
void to_halves_with_feedback(std::span<const float> gradient, std::span<float> owed,
                             std::span<std::uint16_t> sent);

}  // namespace stepcast
