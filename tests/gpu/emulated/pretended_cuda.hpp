#pragma once

namespace stepcast::pretended {

/// True if this thread captures a graph. Meanwhile calls that allocate, free or wait fail, as CUDA's do.
bool& capturing();

}  // namespace stepcast::pretended
