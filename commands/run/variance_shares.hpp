#pragma once

#include <string>
#include <vector>

#include "report/statistics/statistics.hpp"

namespace stepcast {

/// What a figure's interval consists of, in words: "Not known, as shares of the variance of the step time at
/// workers=64: host 60 %, network 30 %." Parts of less than 5 % are left out. Empty without shares.
/// @param figure  "step time at workers=64"
std::string variance_sentence(const std::vector<Sensitivity>& sensitivity, const std::string& figure);

}  // namespace stepcast
