#include "runtime/devices/gathered_maps.hpp"

#include <utility>

#include "models/network/layer.hpp"

namespace stepcast {

GatheredMaps::GatheredMaps(Network& network, const GatheredInput& input, int place, std::int64_t samples)
    : network_(network),
      backend_(network.backend()),
      input_(input),
      place_(place),
      samples_(samples),
      elements_(static_cast<std::size_t>(samples * elements(input.map))),
      blocks_(backend_.allocate(elements_)),
      whole_(backend_.allocate(elements_)),
      scratch_(backend_.allocate(elements_)) {}

BoxMove GatheredMaps::scatter(int place) const {
  const std::vector<Rows>& part = input_.parts[static_cast<std::size_t>(place)];
  BoxMove box{{samples_}, {}, {}};
  Shape whole{samples_};
  whole.insert(whole.end(), input_.map.begin(), input_.map.end());
  box.to_stride = row_major_strides(whole);
  for (std::size_t i = 0; i < part.size(); ++i) {
    box.size.push_back(part[i].size());
    box.to_offset += part[i].first * box.to_stride[i + 1];
  }
  box.from_stride = row_major_strides(box.size);
  return box;
}

BoxMove GatheredMaps::gather(int place) const {
  BoxMove box = scatter(place);
  std::swap(box.from_stride, box.to_stride);
  std::swap(box.from_offset, box.to_offset);
  return box;
}

float* GatheredMaps::block(int place) const {
  const std::size_t ways = input_.parts.size();
  return blocks_.get() + (static_cast<std::size_t>(place) + 1) % ways * (elements_ / ways);
}

void GatheredMaps::pack_output() {
  backend_.copy_out(network_.kernel(static_cast<std::size_t>(input_.source)).output(), block(place_));
}

void GatheredMaps::unpack_outputs() {
  for (int from = 0; from < static_cast<int>(input_.parts.size()); ++from)
    backend_.move(scatter(from), block(from), whole_.get());
  backend_.copy_in(whole_.get(), *network_.boundary_input(input_.source));
}

void GatheredMaps::sum_errors() {
  backend_.clear(whole_.get(), elements_);
  network_.add_input_gradient(input_.source, whole_.get(), scratch_.get());
}

void GatheredMaps::pack_errors() {
  sum_errors();
  for (int to = 0; to < static_cast<int>(input_.parts.size()); ++to)
    backend_.move(gather(to), whole_.get(), block(to));
}

void GatheredMaps::unpack_errors() {
  backend_.copy_in(block(place_),
                   *network_.boundary_output_gradient(static_cast<std::size_t>(input_.source)));
}

void GatheredMaps::keep_own_errors() {
  sum_errors();
  backend_.move(gather(place_), whole_.get(), block(place_));
  unpack_errors();
}

}  // namespace stepcast
