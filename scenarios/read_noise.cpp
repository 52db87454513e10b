#include "scenarios/read_noise.hpp"

namespace stepcast {

Noise read_noise(const YamlValue& value) {
  const YamlMap map =
      value.map({"jitter", "sigma", "per", "straggler_share", "straggler_factor", "start_spread"});
  Noise noise;
  if (const auto jitter = map.maybe("jitter"))
    noise.jitter = static_cast<Noise::Jitter>(jitter->one_of(jitter_names()));
  const bool drawn = noise.jitter == Noise::Jitter::lognormal || noise.jitter == Noise::Jitter::layers;
  if (drawn) map.at("sigma", "the spread of the jitter, a number from 0 to 10");
  if (const auto sigma = map.maybe("sigma")) {
    noise.sigma = sigma->number(0, 10);
    if (!map.has("jitter")) sigma->refuse("belongs to jitter: lognormal or layers");
  }
  if (const auto per = map.maybe("per")) noise.per_node = per->one_of({"worker", "node"}) == 1;
  if (const auto share = map.maybe("straggler_share")) noise.straggler_share = share->number(0, 1);
  if (noise.straggler_share > 0) map.at("straggler_factor", "by how much they are slower, a number >= 1");
  if (const auto factor = map.maybe("straggler_factor")) {
    noise.straggler_factor = factor->number(1, 1000);
    if (!map.has("straggler_share")) factor->refuse("belongs to straggler_share");
  }
  if (const auto spread = map.maybe("start_spread")) noise.start_spread = spread->seconds().value;
  return noise;
}

}  // namespace stepcast
