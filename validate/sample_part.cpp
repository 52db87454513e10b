#include "validate/sample_part.hpp"

namespace stepcast {

std::vector<SampleRun> runs_of_part(const Shape& map, const SampleCut& cut, int device) {
  const std::vector<int> place = grid_place(cut.parts, device);
  std::vector<Rows> box{{0, map.front()}};
  for (std::size_t i = 0; i < cut.parts.size(); ++i)
    box.push_back(part_of(map[i + 1], cut.parts[i], place[i]));
  std::vector<std::int64_t> at;
  for (const Rows& rows : box) at.push_back(rows.first);
  const std::size_t last = box.size() - 1;
  std::vector<SampleRun> runs;
  for (std::int64_t in_part = 0;; in_part += box[last].size()) {
    std::int64_t in_whole = 0;
    for (std::size_t i = 0; i <= last; ++i) in_whole = in_whole * map[i] + at[i];
    runs.push_back({in_part, in_whole, box[last].size()});
    std::size_t i = last;
    while (i > 0 && ++at[i - 1] == box[i - 1].last) {
      at[i - 1] = box[i - 1].first;
      --i;
    }
    if (i == 0) return runs;
  }
}

Shape map_behind(const Model& model, int source, const SampleCut& cut) {
  const std::size_t dimensions = cut.parts.size() + 1;
  while (source >= 0 && model.layers[static_cast<std::size_t>(source)].output.size() != dimensions)
    source = model.layers[static_cast<std::size_t>(source)].inputs.front();
  return source < 0 ? model.input : model.layers[static_cast<std::size_t>(source)].output;
}

}  // namespace stepcast
