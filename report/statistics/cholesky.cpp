#include "report/statistics/cholesky.hpp"

#include <cmath>

namespace stepcast {

std::vector<std::vector<double>> cholesky(std::vector<std::vector<double>> matrix) {
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = matrix[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= matrix[i][k] * matrix[j][k];
      matrix[i][j] = i == j ? std::sqrt(sum) : sum / matrix[j][j];
    }
  }
  return matrix;
}

std::vector<double> forward_solved(const std::vector<std::vector<double>>& factor, std::vector<double> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) x[i] -= factor[i][k] * x[k];
    x[i] /= factor[i][i];
  }
  return x;
}

std::vector<double> solved(const std::vector<std::vector<double>>& factor, const std::vector<double>& right) {
  auto x = forward_solved(factor, right);
  for (std::size_t i = x.size(); i-- > 0;) {
    for (std::size_t k = i + 1; k < x.size(); ++k) x[i] -= factor[k][i] * x[k];
    x[i] /= factor[i][i];
  }
  return x;
}

}  // namespace stepcast
