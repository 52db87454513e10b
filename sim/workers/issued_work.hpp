#pragma once

#include <algorithm>

namespace stepcast {

/// Kernels that a host issues to its device one after another. The device executes them in this order; each
/// starts when it has been issued and the one before has ended.
///
/// If the device has done all earlier work at D and the host has issued it at H, it has done this work at
///
///   max(D + device, H + lag), and the host has issued it at H + host
struct IssuedWork {
  double device = 0;  ///< sum over the kernels [s]
  double host = 0;    ///< sum over the kernels of the time to issue one [s]
  /// Largest, over the kernels, of the time to issue all up to it plus the device's time from it on [s].
  double lag = 0;
};

/// A layer. Its kernels are taken to be equal and short beside it; true kernels lag by at most one of them
/// more.
inline IssuedWork issued_layer(double device, double host) {
  return {device, host, std::max(device, host)};
}

/// Work that is issued one after the other.
inline IssuedWork then(const IssuedWork& first, const IssuedWork& second) {
  return {first.device + second.device, first.host + second.host,
          std::max(first.lag + second.device, first.host + second.lag)};
}

}  // namespace stepcast
