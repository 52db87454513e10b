#pragma once

#include <span>

namespace stepcast {

/// p += force (towards - p): one side of an elastic link. In the asynchronous algorithm the worker is pulled
/// towards the center that it last saw, the center towards the worker that last wrote: with equal and
/// opposite force, so that worker + center stays what it was.
///
/// Where an exchange follows a step of plain SGD at rate r on a loss of curvature 1, x and y shrink for every
/// force in (0, 1] and r in (0, 2). Exchange and step at once, as the paper analyses them, ask for
/// force < (4 - 2 r) / (4 - r).
///
/// Source: S. Zhang, A. Choromanska, Y. LeCun, "Deep learning with elastic averaging SGD", NIPS 2015,
/// algorithm 1.
/// @throws std::invalid_argument if lengths differ
void elastic_move(double force, std::span<const float> towards, std::span<float> parameters);

}  // namespace stepcast
