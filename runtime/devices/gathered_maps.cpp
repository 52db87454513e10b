#include "runtime/devices/gathered_maps.hpp"

#include "models/network/layer.hpp"

namespace stepcast {

GatheredMaps::GatheredMaps(Network& network, const GatheredInput& input, int place, std::int64_t samples)
    : network_(network),
      backend_(network.backend()),
      input_(input),
      place_(place),
      samples_(samples),
      elements_(samples * elements(input.map)),
      blocks_(backend_.allocate(elements_)),
      whole_(backend_.allocate(elements_)),
      scratch_(backend_.allocate(elements_)) {}

BoxMove GatheredMaps::scatter(int place) const {
  Shape whole{samples_}, first{0}, size{samples_};
  whole.insert(whole.end(), input_.map.begin(), input_.map.end());
  for (const Rows& rows : input_.parts[place]) {
    first.push_back(rows.first);
    size.push_back(rows.size());
  }
  return into_whole(whole, first, size);
}

BoxMove GatheredMaps::gather(int place) const {
  return reversed(scatter(place));
}

float* GatheredMaps::block(int place) const {
  const std::size_t ways = input_.parts.size();
  return blocks_.get() + (static_cast<std::size_t>(place) + 1) % ways * (elements_ / ways);
}

void GatheredMaps::pack_output() {
  backend_.copy_out(network_.kernel(input_.source).output(), block(place_));
}

void GatheredMaps::unpack_outputs() {
  for (int from = 0; from < std::ssize(input_.parts); ++from)
    backend_.move(scatter(from), block(from), whole_.get());
  backend_.copy_in(whole_.get(), *network_.boundary_input(input_.source));
}

void GatheredMaps::sum_errors() {
  backend_.clear(whole_.get(), elements_);
  network_.add_input_gradient(input_.source, whole_.get(), scratch_.get());
}

void GatheredMaps::pack_errors() {
  sum_errors();
  for (int to = 0; to < std::ssize(input_.parts); ++to) backend_.move(gather(to), whole_.get(), block(to));
}

void GatheredMaps::unpack_errors() {
  backend_.copy_in(block(place_), *network_.boundary_output_gradient(input_.source));
}

void GatheredMaps::keep_own_errors() {
  sum_errors();
  backend_.move(gather(place_), whole_.get(), block(place_));
  unpack_errors();
}

}  // namespace stepcast
