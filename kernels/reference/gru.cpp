#include "kernels/reference/chain.hpp"

namespace stepcast::reference {
namespace {

// Gates in oneDNN's order: update u, reset r, candidate o. The reset gate acts after the recurrent product
// ("linear before reset"), the only variant that cuDNN has; its second bias of the candidate is left at zero.
//   u, r = sigmoid(W x + U h + b), o = tanh(W x + b + r (U h)), h' = u h + (1 - u) o
struct State {
  Array u, r, o, recurrent, h;  ///< recurrent: U h of the candidate
};

State next(const Case& c, const Chain& chain, std::size_t k, const State& last) {
  State s;
  for (std::size_t h = 0; h < chain.hidden; ++h) {
    const auto input = [&](std::size_t gate) { return from_input(c, chain, k, chain.unit(gate, h)); };
    const auto hidden = [&](std::size_t gate) { return from_hidden(c, chain, chain.unit(gate, h), last.h); };
    s.u.push_back(logistic(input(0) + hidden(0)));
    s.r.push_back(logistic(input(1) + hidden(1)));
    s.recurrent.push_back(hidden(2));
    s.o.push_back(std::tanh(input(2) + s.r[h] * s.recurrent[h]));
    s.h.push_back(s.u[h] * last.h[h] + (1 - s.u[h]) * s.o[h]);
  }
  return s;
}

std::vector<State> states(const Case& c, const Chain& chain) {
  State zero;
  zero.h.resize(chain.hidden);
  std::vector<State> all{zero};
  for (std::size_t k = 0; k < chain.steps; ++k) all.push_back(next(c, chain, k, all.back()));
  return all;
}

/// Turns `dh`, the gradient of the state after step k, into that of the state before it.
void step_back(const ChainGradients& to, std::size_t k, const std::vector<State>& all, Array& dh) {
  const State& s = all[k + 1];
  const State& last = all[k];
  Array dh_last(to.chain.hidden);
  for (std::size_t h = 0; h < to.chain.hidden; ++h) {
    const double candidate = dh[h] * (1 - s.u[h]) * (1 - s.o[h] * s.o[h]);
    const double from[3] = {dh[h] * (last.h[h] - s.o[h]) * s.u[h] * (1 - s.u[h]),
                            candidate * s.recurrent[h] * s.r[h] * (1 - s.r[h]), candidate};
    for (std::size_t gate = 0; gate < 3; ++gate) {
      const std::size_t unit = to.chain.unit(gate, h);
      to.spread_to_input(k, unit, from[gate]);
      to.spread_to_hidden(unit, gate == 2 ? from[gate] * s.r[h] : from[gate], last.h, dh_last);
    }
    dh_last[h] += dh[h] * s.u[h];
  }
  dh = dh_last;
}

}  // namespace

Array gru(const Case& c) {
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

void gru_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for_each_chain(c, [&](const Chain& chain) {
    const std::vector<State> all = states(c, chain);
    Array dh(chain.hidden);
    for (std::size_t k = chain.steps; k-- > 0;) {
      for (std::size_t h = 0; h < chain.hidden && chain.has_output(k); ++h) {
        dh[h] += output_gradient[chain.output(k) + h];
      }
      step_back({c, chain, gradients}, k, all, dh);
    }
  });
}

}  // namespace stepcast::reference
