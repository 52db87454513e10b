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
  double scale() const { return 1 / std::sqrt(size); }
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
  const std::size_t tokens = c.layer.input.front();
  const std::size_t width = c.layer.output.back();
  const std::size_t heads = c.layer.heads;
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

namespace {

double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// One sample's sequence in one direction of a recurrent layer: steps k = 0, 1, ... in the order in which
/// they are computed. Parameters are weight_input {directions, gates, hidden, features}, weight_hidden
/// {directions, gates, hidden, hidden} and bias {directions, gates, hidden}.
struct Sequence {
  const Case& c;
  std::size_t sample, direction, steps, features, hidden, directions, gates;
  bool whole_sequence;

  std::size_t time(std::size_t k) const { return direction == 0 ? k : steps - 1 - k; }
  std::size_t input(std::size_t k) const { return (sample * steps + time(k)) * features; }
  std::size_t unit(std::size_t gate, std::size_t h) const { return (direction * gates + gate) * hidden + h; }

  /// Only the last step has outputs if the layer returns its last state.
  bool has_output(std::size_t k) const { return whole_sequence || k + 1 == steps; }

  /// Index of the first output of step k.
  std::size_t output(std::size_t k) const {
    const std::size_t row = whole_sequence ? sample * steps + time(k) : sample;
    return (row * directions + direction) * hidden;
  }

  /// W x + b of one unit at step k, without the recurrent product.
  double input_product(std::size_t k, std::size_t unit) const {
    double sum = c.parameters[2][unit];
    for (std::size_t i = 0; i < features; ++i) {
      sum += c.parameters[0][unit * features + i] * c.inputs[0][input(k) + i];
    }
    return sum;
  }

  /// U h of one unit.
  double recurrent_product(std::size_t unit, const Array& h) const {
    double sum = 0;
    for (std::size_t j = 0; j < hidden; ++j) sum += c.parameters[1][unit * hidden + j] * h[j];
    return sum;
  }
};

Sequence sequence(const Case& c, std::size_t sample, std::size_t direction) {
  const Layer& layer = c.layer;
  return {.c = c,
          .sample = sample,
          .direction = direction,
          .steps = static_cast<std::size_t>(layer.input.front()),
          .features = static_cast<std::size_t>(layer.input.back()),
          .hidden = static_cast<std::size_t>(layer.hidden),
          .directions = layer.bidirectional ? std::size_t{2} : std::size_t{1},
          .gates = layer.kind == LayerKind::lstm ? std::size_t{4} : std::size_t{3},
          .whole_sequence = layer.output.size() == 2};
}

/// Adds the gradients of products to the gradients of their factors.
struct ProductGradients {
  const Sequence& s;
  Gradients& gradients;

  /// Gradients of the factors of `input_product` at step k.
  void add_input(std::size_t k, std::size_t unit, double gradient) const {
    gradients.parameters[2][unit] += gradient;
    for (std::size_t i = 0; i < s.features; ++i) {
      gradients.parameters[0][unit * s.features + i] += gradient * s.c.inputs[0][s.input(k) + i];
      gradients.inputs[0][s.input(k) + i] += gradient * s.c.parameters[0][unit * s.features + i];
    }
  }

  /// Gradients of the factors of `recurrent_product`; the gradient of `h` is added to `h_gradient`.
  void add_recurrent(std::size_t unit, double gradient, const Array& h, Array& h_gradient) const {
    for (std::size_t j = 0; j < s.hidden; ++j) {
      gradients.parameters[1][unit * s.hidden + j] += gradient * h[j];
      h_gradient[j] += gradient * s.c.parameters[1][unit * s.hidden + j];
    }
  }
};

/// State after a step and the values of the gates in it. A GRU has no cell state and leaves `cell` at zero.
struct State {
  Array h, cell;
  Array i, f, g, o;                  ///< gates of an LSTM
  Array u, r, candidate, recurrent;  ///< gates of a GRU, and U h of its candidate
};

struct StateGradient {
  Array h, cell;
};

/// Gates in the order of oneDNN and of cuDNN: input i, forget f, candidate g, output o.
///   i, f, o = sigmoid(W x + U h + b), g = tanh(W x + U h + b), c' = f c + i g, h' = o tanh(c')
struct Lstm {
  static State next(const Sequence& sequence, std::size_t k, const State& last) {
    State s;
    for (std::size_t h = 0; h < sequence.hidden; ++h) {
      const auto sum = [&](std::size_t gate) {
        const std::size_t unit = sequence.unit(gate, h);
        return sequence.input_product(k, unit) + sequence.recurrent_product(unit, last.h);
      };
      s.i.push_back(logistic(sum(0)));
      s.f.push_back(logistic(sum(1)));
      s.g.push_back(std::tanh(sum(2)));
      s.o.push_back(logistic(sum(3)));
      s.cell.push_back(s.f[h] * last.cell[h] + s.i[h] * s.g[h]);
      s.h.push_back(s.o[h] * std::tanh(s.cell[h]));
    }
    return s;
  }

  /// Replaces `d`, the gradient of state `s` after step k, by the gradient of the state before it.
  static void step_back(const ProductGradients& to, std::size_t k, const State& s, const State& last,
                        StateGradient& d) {
    Array dh_last(to.s.hidden);
    for (std::size_t h = 0; h < to.s.hidden; ++h) {
      const double squashed = std::tanh(s.cell[h]);
      const double dc = d.cell[h] + d.h[h] * s.o[h] * (1 - squashed * squashed);
      const double gates[4] = {dc * s.g[h] * s.i[h] * (1 - s.i[h]), dc * last.cell[h] * s.f[h] * (1 - s.f[h]),
                               dc * s.i[h] * (1 - s.g[h] * s.g[h]),
                               d.h[h] * squashed * s.o[h] * (1 - s.o[h])};
      for (std::size_t gate = 0; gate < 4; ++gate) {
        const std::size_t unit = to.s.unit(gate, h);
        to.add_input(k, unit, gates[gate]);
        to.add_recurrent(unit, gates[gate], last.h, dh_last);
      }
      d.cell[h] = dc * s.f[h];
    }
    d.h = dh_last;
  }
};

/// Gates in oneDNN's order: update u, reset r, candidate o. The reset gate acts after the recurrent product
/// ("linear before reset"), the only variant that cuDNN has; its second bias of the candidate stays zero.
///   u, r = sigmoid(W x + U h + b), o = tanh(W x + b + r (U h)), h' = u h + (1 - u) o
struct Gru {
  static State next(const Sequence& sequence, std::size_t k, const State& last) {
    State s;
    for (std::size_t h = 0; h < sequence.hidden; ++h) {
      const auto input = [&](std::size_t gate) { return sequence.input_product(k, sequence.unit(gate, h)); };
      const auto recurrent = [&](std::size_t gate) {
        return sequence.recurrent_product(sequence.unit(gate, h), last.h);
      };
      s.u.push_back(logistic(input(0) + recurrent(0)));
      s.r.push_back(logistic(input(1) + recurrent(1)));
      s.recurrent.push_back(recurrent(2));
      s.candidate.push_back(std::tanh(input(2) + s.r[h] * s.recurrent[h]));
      s.h.push_back(s.u[h] * last.h[h] + (1 - s.u[h]) * s.candidate[h]);
    }
    return s;
  }

  /// Replaces `d`, the gradient of state `s` after step k, by the gradient of the state before it.
  static void step_back(const ProductGradients& to, std::size_t k, const State& s, const State& last,
                        StateGradient& d) {
    Array dh_last(to.s.hidden);
    for (std::size_t h = 0; h < to.s.hidden; ++h) {
      const double candidate = d.h[h] * (1 - s.u[h]) * (1 - s.candidate[h] * s.candidate[h]);
      const double gates[3] = {d.h[h] * (last.h[h] - s.candidate[h]) * s.u[h] * (1 - s.u[h]),
                               candidate * s.recurrent[h] * s.r[h] * (1 - s.r[h]), candidate};
      for (std::size_t gate = 0; gate < 3; ++gate) {
        const std::size_t unit = to.s.unit(gate, h);
        to.add_input(k, unit, gates[gate]);
        to.add_recurrent(unit, gate == 2 ? gates[gate] * s.r[h] : gates[gate], last.h, dh_last);
      }
      dh_last[h] += d.h[h] * s.u[h];
    }
    d.h = dh_last;
  }
};

/// States 0 (all zero) to `steps`.
template <class Cell>
std::vector<State> states(const Sequence& sequence) {
  State zero;
  zero.h.resize(sequence.hidden);
  zero.cell.resize(sequence.hidden);
  std::vector<State> all{zero};
  for (std::size_t k = 0; k < sequence.steps; ++k) all.push_back(Cell::next(sequence, k, all.back()));
  return all;
}

template <class Cell>
void forward(const Sequence& sequence, Array& y) {
  const std::vector<State> all = states<Cell>(sequence);
  for (std::size_t k = 0; k < sequence.steps; ++k) {
    if (!sequence.has_output(k)) continue;
    for (std::size_t h = 0; h < sequence.hidden; ++h) y[sequence.output(k) + h] = all[k + 1].h[h];
  }
}

template <class Cell>
void backward(const Sequence& sequence, const Array& output_gradient, Gradients& gradients) {
  const std::vector<State> all = states<Cell>(sequence);
  StateGradient d{Array(sequence.hidden), Array(sequence.hidden)};
  for (std::size_t k = sequence.steps; k-- > 0;) {
    for (std::size_t h = 0; h < sequence.hidden && sequence.has_output(k); ++h) {
      d.h[h] += output_gradient[sequence.output(k) + h];
    }
    Cell::step_back({sequence, gradients}, k, all[k + 1], all[k], d);
  }
}

template <class Visit>
void for_each_sequence(const Case& c, const Visit& visit) {
  for (std::size_t sample = 0; sample < static_cast<std::size_t>(c.batch); ++sample) {
    visit(sequence(c, sample, 0));
    if (c.layer.bidirectional) visit(sequence(c, sample, 1));
  }
}

}  // namespace

Array recurrent(const Case& c) {
  Array y(output_elements(c));
  for_each_sequence(c, [&](const Sequence& sequence) {
    c.layer.kind == LayerKind::lstm ? forward<Lstm>(sequence, y) : forward<Gru>(sequence, y);
  });
  return y;
}

void recurrent_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for_each_sequence(c, [&](const Sequence& sequence) {
    c.layer.kind == LayerKind::lstm ? backward<Lstm>(sequence, output_gradient, gradients)
                                    : backward<Gru>(sequence, output_gradient, gradients);
  });
}

}  // namespace stepcast::reference
