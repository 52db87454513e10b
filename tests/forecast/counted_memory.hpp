#pragma once

namespace stepcast {

/// Bytes that `new` has handed out and not got back, in the whole program.
double counted_bytes();
double peak_bytes();  ///< the most of them at once, since they were last forgotten
void forget_peak();

}  // namespace stepcast
