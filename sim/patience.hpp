#pragma once

namespace stepcast {

/// How long the processor may take to play every message of every worker.
enum class Patience {
  little,  ///< kLittleAStep: then nothing cheaper is looked for
  much,    ///< kMuchARun, where nothing cheaper is known to be close
};
constexpr double kLittleAStep = 0.5, kMuchARun = 60;  ///< seconds

}  // namespace stepcast
