#include <cmath>

#include "check/reference/reference.hpp"

namespace stepcast::reference {
namespace {

/// One head of one sample. The features of a token are queries, keys and values side by side, each divided
/// into heads.
struct Head {
  std::size_t tokens, width, size, sample, head;
  bool causal;

  std::size_t feature(std::size_t part, std::size_t token, std::size_t i) const {
    return ((sample * tokens + token) * 3 + part) * width + head * size + i;
  }
  std::size_t output(std::size_t token, std::size_t i) const {
    return (sample * tokens + token) * width + head * size + i;
  }
  std::size_t attended(std::size_t token) const { return causal ? token + 1 : tokens; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(size)); }
};

constexpr std::size_t kQuery = 0, kKey = 1, kValue = 2;

double score(const Array& x, const Head& a, std::size_t query, std::size_t key) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size; ++i) sum += x[a.feature(kQuery, query, i)] * x[a.feature(kKey, key, i)];
  return sum * a.scale();
}

/// Softmax of one query's scores over the tokens that it attends to.
Array weights(const Array& x, const Head& a, std::size_t query) {
  Array w(a.attended(query));
  double total = 0;
  for (std::size_t key = 0; key < w.size(); ++key) total += w[key] = std::exp(score(x, a, query, key));
  for (double& value : w) value /= total;
  return w;
}

void query_back(const Array& x, const Head& a, std::size_t query, const Array& dy, Array& dx) {
  const Array w = weights(x, a, query);
  Array dw(w.size());
  double mean = 0;
  for (std::size_t key = 0; key < w.size(); ++key) {
    for (std::size_t i = 0; i < a.size; ++i) {
      dw[key] += dy[a.output(query, i)] * x[a.feature(kValue, key, i)];
      dx[a.feature(kValue, key, i)] += w[key] * dy[a.output(query, i)];
    }
    mean += w[key] * dw[key];
  }
  for (std::size_t key = 0; key < w.size(); ++key) {
    const double ds = w[key] * (dw[key] - mean) * a.scale();
    for (std::size_t i = 0; i < a.size; ++i) {
      dx[a.feature(kQuery, query, i)] += ds * x[a.feature(kKey, key, i)];
      dx[a.feature(kKey, key, i)] += ds * x[a.feature(kQuery, query, i)];
    }
  }
}

template <class Visit>
void for_each_query(const Case& c, const Visit& visit) {
  const auto tokens = static_cast<std::size_t>(c.layer.input.front());
  const auto width = static_cast<std::size_t>(c.layer.output.back());
  const auto heads = static_cast<std::size_t>(c.layer.heads);
  for (std::size_t n = 0; n < static_cast<std::size_t>(c.batch); ++n) {
    for (std::size_t head = 0; head < heads; ++head) {
      const Head a{tokens, width, width / heads, n, head, c.layer.causal};
      for (std::size_t query = 0; query < tokens; ++query) visit(a, query);
    }
  }
}

}  // namespace

Array attention(const Case& c) {
  const Array& x = c.inputs[0];
  Array y(output_elements(c));
  for_each_query(c, [&](const Head& a, std::size_t query) {
    const Array w = weights(x, a, query);
    for (std::size_t key = 0; key < w.size(); ++key) {
      for (std::size_t i = 0; i < a.size; ++i) y[a.output(query, i)] += w[key] * x[a.feature(kValue, key, i)];
    }
  });
  return y;
}

void attention_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for_each_query(c, [&](const Head& a, std::size_t query) {
    query_back(c.inputs[0], a, query, output_gradient, gradients.inputs[0]);
  });
}

}  // namespace stepcast::reference
