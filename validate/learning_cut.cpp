#include <algorithm>

#include "models/layer_shapes.hpp"
#include "validate/cut_device.hpp"
#include "validate/learning_part.hpp"
#include "validate/sample_part.hpp"

namespace stepcast {
namespace {

/// What one rank takes of the numbers of a group's samples: a part of each, or some samples whole.
class OwnShare {
 public:
  /// @param map  of one sample, row-major
  OwnShare(const SampleCut& cut, bool is_cut, const Shape& map, std::int64_t samples, int place)
      : each_(elements(map)) {
    if (is_cut) {
      last_ = samples;
      runs_ = runs_of_part(map, cut, place);
    } else {
      const std::int64_t mine = samples / device_count(cut.parts);
      first_ = place * mine;
      last_ = first_ + mine;
      runs_ = {{0, 0, each_}};
    }
  }

  std::vector<float> of(const std::vector<float>& all) const {
    std::vector<float> own;
    for (std::int64_t i = first_; i < last_; ++i) {
      for (const SampleRun& run : runs_) {
        const auto from = all.begin() + i * each_ + run.in_whole;
        own.insert(own.end(), from, from + run.length);
      }
    }
    return own;
  }

 private:
  std::int64_t each_, first_ = 0, last_ = 0;
  std::vector<SampleRun> runs_;
};

class PartOfSamples : public LearningPart {
 public:
  explicit PartOfSamples(const LearningPlace& place)
      : place_(place),
        sharing_(place.experiment.plan.sharing),
        ways_(device_count(sharing_.cut.parts)),
        own_(cut_network(place.backend, place.experiment.model, sharing_, place.rank % ways_,
                         {.data_seed = static_cast<std::uint64_t>(1 + place.rank),
                          .optimizer = place.experiment.learning->optimizer})),
        inputs_(share(0, place.experiment.model.input)),
        targets_(share(place.task.loss_layer, map_of_targets())),
        writer_(place.backend) {}

  Batches::Split split() const override {
    return {group_of(place_.experiment, place_.rank, ways_), place_.experiment.plan.workers / ways_,
            place_.batch};
  }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    learning.next_step = [this, &batches] {
      const Batches::Batch& all = batches.next();
      write_batch({inputs_.of(all.inputs), targets_.of(all.targets)}, place_.task.loss_layer, *own_.network,
                  writer_);
    };
    return cut_device(own_, place_.experiment.model, sharing_, place_.rank % ways_, std::move(learning));
  }

  std::vector<Network*> networks() override { return {own_.network.get()}; }
  void write(const Parameters& whole) override { write_parameters(*own_.network, whole); }
  bool tells() const override { return place_.rank == 0; }
  Parameters whole(Transport*) override { return read_parameters(*own_.network); }

 private:
  OwnShare share(std::size_t layer, const Shape& map) const {
    return {sharing_.cut, sharing_.cut.cuts(layer), map, place_.batch, place_.rank % ways_};
  }

  /// Targets of a loss that is cut are an element for each of its input's.
  Shape map_of_targets() const {
    const Model& model = place_.experiment.model;
    const std::size_t loss = place_.task.loss_layer;
    if (!sharing_.cut.cuts(loss)) return place_.task.form.targets;
    return map_behind(model, model.layers[loss].inputs.front(), sharing_.cut);
  }

  LearningPlace place_;
  const NetworkSharing& sharing_;
  int ways_;
  CutNetwork own_;
  OwnShare inputs_, targets_;
  BatchWriter writer_;
};

}  // namespace

std::unique_ptr<LearningPart> learning_cut(const LearningPlace& place) {
  return std::make_unique<PartOfSamples>(place);
}

}  // namespace stepcast
