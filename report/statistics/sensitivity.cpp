#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "report/statistics/statistics.hpp"

namespace stepcast {
namespace {

/// Pivot, relative to the largest one, below which the QR decomposition takes a column as linearly dependent
/// on the columns before it.
constexpr double kDependent = 1e-6;

}  // namespace

std::vector<double> least_squares(const std::vector<std::vector<double>>& rows,
                                  const std::vector<double>& y) {
  const Eigen::Index count = rows.size();
  const Eigen::Index unknowns = rows.empty() ? 0 : rows.front().size();
  Eigen::MatrixXd matrix(count, unknowns);
  for (Eigen::Index i = 0; i < count; ++i) {
    const std::vector<double>& row = rows[i];
    matrix.row(i) = Eigen::Map<const Eigen::RowVectorXd>(row.data(), unknowns);
  }
  Eigen::ColPivHouseholderQR<Eigen::MatrixXd> decomposition;
  decomposition.setThreshold(kDependent);
  decomposition.compute(matrix);
  std::vector<double> coefficients(unknowns);
  Eigen::Map<Eigen::VectorXd>(coefficients.data(), unknowns) =
      decomposition.solve(Eigen::Map<const Eigen::VectorXd>(y.data(), count));
  return coefficients;
}

namespace {

constexpr std::size_t kLargestDegree = 10;

/// Appends the Legendre polynomials of degree 1 .. `degree`, shifted to [0, 1] and scaled to a mean square of
/// 1, at u.
void append_legendre(std::vector<double>& row, double u, std::size_t degree) {
  const double x = 2 * u - 1;
  double before = 1;
  double current = x;
  for (std::size_t n = 1; n <= degree; ++n) {
    const double order = n;
    row.push_back(std::sqrt(2 * order + 1) * current);
    const double next = ((2 * order + 1) * x * current - order * before) / (order + 1);
    before = current;
    current = next;
  }
}

double sum_of_squares(const std::vector<double>& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

}  // namespace

std::vector<double> first_order_indices(const std::vector<std::vector<double>>& inputs,
                                        const std::vector<double>& y) {
  if (inputs.size() != y.size()) throw std::invalid_argument("first_order_indices: one result a draw");
  const std::size_t count = inputs.empty() ? 0 : inputs.front().size();
  if (y.size() < 3 * std::max<std::size_t>(count, 1)) {
    throw std::invalid_argument("first_order_indices: at least 3 draws an input");
  }
  std::vector<double> indices(count);
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  if (count == 0 || *least == *most) return indices;

  const std::size_t degree = std::clamp<std::size_t>(y.size() / (6 * count), 1, kLargestDegree);
  std::vector<std::vector<double>> rows;
  for (const auto& draw : inputs) {
    std::vector<double> row{1};
    for (std::size_t i = 0; i < count; ++i) append_legendre(row, draw.at(i), degree);
    rows.push_back(std::move(row));
  }
  // Centred and scaled by the spread, so that neither the size nor the unit of the result matters.
  const double centre = mean(y);
  std::vector<double> scaled;
  for (const double value : y) scaled.push_back((value - centre) / (*most - *least));
  const auto coefficients = least_squares(rows, scaled);

  std::vector<double> residuals;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    residuals.push_back(scaled[i] -
                        std::inner_product(rows[i].begin(), rows[i].end(), coefficients.begin(), 0.0));
  }
  const double draws = y.size();
  const double unexplained = sum_of_squares(residuals) / (draws - coefficients.size());
  double total = unexplained;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 1 + i * degree; k < 1 + (i + 1) * degree; ++k) {
      indices[i] += coefficients[k] * coefficients[k] - unexplained / draws;
    }
    indices[i] = std::max(indices[i], 0.0);
    total += indices[i];
  }
  for (double& index : indices) index /= total;
  return indices;
}

std::vector<Sensitivity> sensitivities(const std::vector<std::string>& names,
                                       const std::vector<std::vector<double>>& inputs,
                                       const std::vector<double>& y) {
  const auto indices = first_order_indices(inputs, y);
  std::vector<Sensitivity> out;
  for (std::size_t i = 0; i < indices.size(); ++i) out.push_back({names.at(i), indices[i]});
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return out;
}

}  // namespace stepcast
