#pragma once

#include <vector>

namespace stepcast {

/// Coefficients c that minimise sum over rows of (rows[i] . c - y[i])^2, by normal equations and Cholesky's
/// method: for well-conditioned columns, such as orthogonal polynomials. A column that depends on earlier
/// ones gets 0.
/// @param rows  rows[i][j], all of one length
std::vector<double> least_squares(const std::vector<std::vector<double>>& rows, const std::vector<double>& y);

}  // namespace stepcast
