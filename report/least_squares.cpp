#include "report/least_squares.hpp"

#include <cmath>

namespace stepcast {
namespace {

using Matrix = std::vector<std::vector<double>>;

/// Relative size of a pivot below which its column is taken as dependent on the earlier ones.
constexpr double kDependent = 1e-12;

/// Lower triangle of the factor L of `matrix` = L L^T, in place; a dependent column becomes 0 with pivot 0.
void factorize(Matrix& matrix) {
  for (std::size_t j = 0; j < matrix.size(); ++j) {
    const double before = matrix[j][j];
    for (std::size_t k = 0; k < j; ++k) matrix[j][j] -= matrix[j][k] * matrix[j][k];
    const double pivot = matrix[j][j] > kDependent * before ? std::sqrt(matrix[j][j]) : 0;
    matrix[j][j] = pivot;
    for (std::size_t i = j + 1; i < matrix.size(); ++i) {
      for (std::size_t k = 0; k < j; ++k) matrix[i][j] -= matrix[i][k] * matrix[j][k];
      matrix[i][j] = pivot > 0 ? matrix[i][j] / pivot : 0;
    }
  }
}

/// Solves L L^T x = b.
std::vector<double> solved(const Matrix& factor, std::vector<double> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) x[i] -= factor[i][k] * x[k];
    x[i] = factor[i][i] > 0 ? x[i] / factor[i][i] : 0;
  }
  for (std::size_t i = x.size(); i-- > 0;) {
    for (std::size_t k = i + 1; k < x.size(); ++k) x[i] -= factor[k][i] * x[k];
    x[i] = factor[i][i] > 0 ? x[i] / factor[i][i] : 0;
  }
  return x;
}

}  // namespace

std::vector<double> least_squares(const std::vector<std::vector<double>>& rows,
                                  const std::vector<double>& y) {
  const std::size_t unknowns = rows.empty() ? 0 : rows.front().size();
  Matrix normal(unknowns, std::vector<double>(unknowns));
  std::vector<double> right(unknowns);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = 0; i < unknowns; ++i) {
      right[i] += rows[row][i] * y[row];
      for (std::size_t j = 0; j <= i; ++j) normal[i][j] += rows[row][i] * rows[row][j];
    }
  }
  factorize(normal);
  return solved(normal, std::move(right));
}

}  // namespace stepcast
