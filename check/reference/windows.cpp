#include <algorithm>
#include <array>

#include "check/reference/reference.hpp"

namespace stepcast::reference {
namespace {

using Triple = std::array<std::int64_t, 3>;

/// A window over 1 to 3 spatial dimensions, extended to 3.
struct Geometry {
  std::int64_t batch, in_channels, out_channels, groups;
  Triple in, out, kernel, stride, pad;
};

Triple last_three(const std::vector<std::int64_t>& sizes, std::int64_t fill) {
  Triple triple{fill, fill, fill};
  std::copy(sizes.begin(), sizes.end(), triple.end() - sizes.size());
  return triple;
}

Geometry geometry(const Case& c) {
  const Shape& in = c.layer.input;
  const Shape& out = c.layer.output;
  const Window& w = c.layer.window;
  return {c.batch,
          in[0],
          out[0],
          c.layer.groups,
          last_three({in.begin() + 1, in.end()}, 1),
          last_three({out.begin() + 1, out.end()}, 1),
          last_three(w.kernel, 1),
          last_three(w.stride, 1),
          last_three(w.pad_before, 0)};
}

std::size_t flat(const Triple& position, const Triple& size) {
  return (position[0] * size[1] + position[1]) * size[2] + position[2];
}

template <class Visit>
void for_each_position(const Triple& size, const Visit& visit) {
  for (std::int64_t i = 0; i < size[0]; ++i) {
    for (std::int64_t j = 0; j < size[1]; ++j) {
      for (std::int64_t k = 0; k < size[2]; ++k) visit(Triple{i, j, k});
    }
  }
}

std::size_t volume(const Triple& size) {
  return size[0] * size[1] * size[2];
}

/// Calls visit(position in the input, position in the kernel) for all elements of the window at one output
/// position that are not padding.
template <class Visit>
void for_each_tap(const Geometry& g, const Triple& out, const Visit& visit) {
  for_each_position(g.kernel, [&](const Triple& tap) {
    Triple in{};
    for (std::size_t d = 0; d < 3; ++d) {
      in[d] = out[d] * g.stride[d] + tap[d] - g.pad[d];
      if (in[d] < 0 || in[d] >= g.in[d]) return;
    }
    visit(flat(in, g.in), flat(tap, g.kernel));
  });
}

/// Calls visit(output, input, weight) with the indices of every product that a convolution sums.
template <class Visit>
void for_each_product(const Geometry& g, const Visit& visit) {
  const std::size_t channels = g.in_channels;
  const std::size_t filters = g.out_channels, groups = g.groups;
  const std::size_t read = channels / groups;  // by one filter
  for (std::size_t n = 0; n < static_cast<std::size_t>(g.batch); ++n) {
    for (std::size_t k = 0; k < filters; ++k) {
      const std::size_t first = n * channels + k / (filters / groups) * read;
      for_each_position(g.out, [&](const Triple& position) {
        const std::size_t output = (n * filters + k) * volume(g.out) + flat(position, g.out);
        for_each_tap(g, position, [&](std::size_t in, std::size_t tap) {
          for (std::size_t c = 0; c < read; ++c)
            visit(output, (first + c) * volume(g.in) + in, (k * read + c) * volume(g.kernel) + tap);
        });
      });
    }
  }
}

/// Calls visit(output, inputs in its window) with indices, for every output of a pooling layer.
template <class Visit>
void for_each_window(const Geometry& g, const Visit& visit) {
  for (std::size_t plane = 0; plane < static_cast<std::size_t>(g.batch * g.in_channels); ++plane) {
    for_each_position(g.out, [&](const Triple& position) {
      std::vector<std::size_t> inputs;
      for_each_tap(g, position,
                   [&](std::size_t in, std::size_t) { inputs.push_back(plane * volume(g.in) + in); });
      visit(plane * volume(g.out) + flat(position, g.out), inputs);
    });
  }
}

std::size_t filter_of(const Geometry& g, std::size_t output) {
  return output / volume(g.out) % g.out_channels;
}

std::size_t largest(const Array& x, const std::vector<std::size_t>& indices) {
  return *std::max_element(indices.begin(), indices.end(),
                           [&](std::size_t a, std::size_t b) { return x[a] < x[b]; });
}

}  // namespace

Array convolution(const Case& c) {
  const Geometry g = geometry(c);
  Array y(output_elements(c));
  if (c.parameters.size() > 1) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = c.parameters[1][filter_of(g, i)];
  }
  for_each_product(
      g, [&](std::size_t o, std::size_t i, std::size_t w) { y[o] += c.inputs[0][i] * c.parameters[0][w]; });
  return y;
}

void convolution_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const Geometry g = geometry(c);
  for_each_product(g, [&](std::size_t o, std::size_t i, std::size_t w) {
    gradients.inputs[0][i] += output_gradient[o] * c.parameters[0][w];
    gradients.parameters[0][w] += output_gradient[o] * c.inputs[0][i];
  });
  if (c.parameters.size() < 2) return;
  for (std::size_t i = 0; i < output_gradient.size(); ++i) {
    gradients.parameters[1][filter_of(g, i)] += output_gradient[i];
  }
}

namespace {

/// The number of an element of a locally connected layer's parameter, of which every position of the output
/// has a part of its own. @param in_part  its number in the part
std::size_t at_position(const Geometry& g, const Array& parameter, std::size_t output, std::size_t in_part) {
  return output % volume(g.out) * (parameter.size() / volume(g.out)) + in_part;
}

}  // namespace

Array locally_connected(const Case& c) {
  const Geometry g = geometry(c);
  const Array& weight = c.parameters[0];
  Array y(output_elements(c));
  for (std::size_t o = 0; o < y.size() && c.parameters.size() > 1; ++o)
    y[o] = c.parameters[1][at_position(g, c.parameters[1], o, filter_of(g, o))];
  for_each_product(g, [&](std::size_t o, std::size_t i, std::size_t w) {
    y[o] += c.inputs[0][i] * weight[at_position(g, weight, o, w)];
  });
  return y;
}

void locally_connected_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const Geometry g = geometry(c);
  const Array& weight = c.parameters[0];
  for_each_product(g, [&](std::size_t o, std::size_t i, std::size_t w) {
    gradients.inputs[0][i] += output_gradient[o] * weight[at_position(g, weight, o, w)];
    gradients.parameters[0][at_position(g, weight, o, w)] += output_gradient[o] * c.inputs[0][i];
  });
  for (std::size_t o = 0; o < output_gradient.size() && c.parameters.size() > 1; ++o)
    gradients.parameters[1][at_position(g, c.parameters[1], o, filter_of(g, o))] += output_gradient[o];
}

Array pool(const Case& c) {
  const Array& x = c.inputs[0];
  Array y(output_elements(c));
  for_each_window(geometry(c), [&](std::size_t o, const std::vector<std::size_t>& inputs) {
    if (c.layer.kind == LayerKind::max_pool) {
      y[o] = x[largest(x, inputs)];
    } else {
      for (const std::size_t i : inputs) y[o] += x[i] / inputs.size();
    }
  });
  return y;
}

void pool_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  Array& dx = gradients.inputs[0];
  for_each_window(geometry(c), [&](std::size_t o, const std::vector<std::size_t>& inputs) {
    if (c.layer.kind == LayerKind::max_pool) {
      dx[largest(c.inputs[0], inputs)] += output_gradient[o];
    } else {
      for (const std::size_t i : inputs) dx[i] += output_gradient[o] / inputs.size();
    }
  });
}

}  // namespace stepcast::reference
