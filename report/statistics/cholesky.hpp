#pragma once

#include <vector>

namespace stepcast {

/// The lower triangle L with L L^T = matrix, which is symmetric and positive definite.
std::vector<std::vector<double>> cholesky(std::vector<std::vector<double>> matrix);

/// x with L x = right.
std::vector<double> forward_solved(const std::vector<std::vector<double>>& factor, std::vector<double> x);

/// x with L L^T x = right.
std::vector<double> solved(const std::vector<std::vector<double>>& factor, const std::vector<double>& right);

}  // namespace stepcast
