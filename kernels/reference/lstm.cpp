#include "kernels/reference/chain.hpp"

namespace stepcast::reference {
namespace {

// Gates in the order of oneDNN and of cuDNN: input i, forget f, candidate g, output o.
//   i, f, o = sigmoid(W x + U h + b), g = tanh(W x + U h + b), c' = f c + i g, h' = o tanh(c')
struct State {
  Array i, f, g, o, cell, h;
};

State next(const Case& c, const Chain& chain, std::size_t k, const State& last) {
  State s;
  for (std::size_t h = 0; h < chain.hidden; ++h) {
    const auto sum = [&](std::size_t gate) {
      const std::size_t unit = chain.unit(gate, h);
      return from_input(c, chain, k, unit) + from_hidden(c, chain, unit, last.h);
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

/// States 0 (all zero) to `steps`.
std::vector<State> states(const Case& c, const Chain& chain) {
  State zero;
  zero.cell.resize(chain.hidden);
  zero.h.resize(chain.hidden);
  std::vector<State> all{zero};
  for (std::size_t k = 0; k < chain.steps; ++k) all.push_back(next(c, chain, k, all.back()));
  return all;
}

/// Gradients of the state after the step at hand.
struct StateGradient {
  Array h, cell;
};

/// From the state after step k to the one before it.
void step_back(const ChainGradients& to, std::size_t k, const std::vector<State>& all, StateGradient& d) {
  const State& s = all[k + 1];
  const State& last = all[k];
  Array dh_last(to.chain.hidden);
  for (std::size_t h = 0; h < to.chain.hidden; ++h) {
    const double squashed = std::tanh(s.cell[h]);
    const double dc = d.cell[h] + d.h[h] * s.o[h] * (1 - squashed * squashed);
    const double gates[4] = {dc * s.g[h] * s.i[h] * (1 - s.i[h]), dc * last.cell[h] * s.f[h] * (1 - s.f[h]),
                             dc * s.i[h] * (1 - s.g[h] * s.g[h]), d.h[h] * squashed * s.o[h] * (1 - s.o[h])};
    for (std::size_t gate = 0; gate < 4; ++gate) {
      const std::size_t unit = to.chain.unit(gate, h);
      to.spread_to_input(k, unit, gates[gate]);
      to.spread_to_hidden(unit, gates[gate], last.h, dh_last);
    }
    d.cell[h] = dc * s.f[h];
  }
  d.h = dh_last;
}

}  // namespace

Array lstm(const Case& c) {
  Array y(output_elements(c));
  for_each_chain(c, [&](const Chain& chain) {
    const std::vector<State> all = states(c, chain);
    for (std::size_t k = 0; k < chain.steps; ++k) {
      if (!chain.has_output(k)) continue;
      for (std::size_t h = 0; h < chain.hidden; ++h) y[chain.output(k) + h] = all[k + 1].h[h];
    }
  });
  return y;
}

void lstm_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for_each_chain(c, [&](const Chain& chain) {
    const std::vector<State> all = states(c, chain);
    StateGradient d{Array(chain.hidden), Array(chain.hidden)};
    for (std::size_t k = chain.steps; k-- > 0;) {
      for (std::size_t h = 0; h < chain.hidden && chain.has_output(k); ++h) {
        d.h[h] += output_gradient[chain.output(k) + h];
      }
      step_back({c, chain, gradients}, k, all, d);
    }
  });
}

}  // namespace stepcast::reference
