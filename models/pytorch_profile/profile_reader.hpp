#pragma once

#include <string>

#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

/// Reads a profile, `.json` or `.json.gz`, as a stream: memory grows with the number of operators and
/// kernels, which is limited, and not with the size of the file.
/// @throws InputError if it is damaged, too large, or not a profile
Profile read_profile(const std::string& file);

}  // namespace stepcast
