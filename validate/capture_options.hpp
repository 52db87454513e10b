#pragma once

#include "kernels/capture.hpp"
#include "validate/rank_capture.hpp"
#include "validate/sum_times.hpp"

namespace stepcast {

/// What every capture of a rank shares; it outlives the captures.
struct CaptureShared {
  const RankRun& run;
  const Validation& validation;
  const ValidationOptions& options;
  const CapturePlace& place;
  SumTimes& sums;
};

/// Of a network, or of a part of one, that a point needs.
CaptureOptions capture_options(const CaptureShared& shared, const Need& need);

/// Of layers that all ranks share: the copies of a sum push what a pass has left out of the caches.
StepExchange sums_within_passes(const CaptureShared& shared);

}  // namespace stepcast
