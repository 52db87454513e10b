#include "validate/learning_part.hpp"
#include "validate/roles.hpp"
#include "validate/stage_device.hpp"
#include "validate/whole_parameters.hpp"

namespace stepcast {
namespace {

class Stage : public LearningPart {
 public:
  explicit Stage(const LearningPlace& place)
      : place_(place),
        plan_(place.experiment.plan),
        stage_(role_of(plan_, place.rank)),
        replica_((place.rank - role().first_rank) / plan_.sharing.ways),
        writer_(place.backend) {
    NetworkOptions options{.batch = place.batch, .optimizer = place.experiment.learning->optimizer};
    options.data_seed = static_cast<std::uint64_t>(1 + replica_ * plan_.sharing.micro_batches);
    own_ = stage_networks(place.backend, place.experiment.model, plan_.sharing,
                          {stage_, static_cast<int>(plan_.roles.size()), own_place()}, options);
  }

  Batches::Split split() const override {
    return {replica_, role().members / plan_.sharing.ways, place_.batch};
  }

  bool reads_data() const override {
    for (const ChunkNetworks& chunk : own_.chunks) {
      if (chunk.first().contains(0) || chunk.first().contains(place_.task.loss_layer)) return true;
    }
    return false;
  }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    learning.next_step = [this, &batches] {
      for (std::size_t i = 0; reads_data() && i < own_.chunks.front().of_micro_batch.size(); ++i) {
        const Batches::Batch& batch = batches.next();
        for (const ChunkNetworks& chunk : own_.chunks)
          write_batch(batch, place_.task.loss_layer, *chunk.of_micro_batch[i], writer_);
      }
    };
    return stage_device(own_, plan_.sharing, stage_, owned_parts(plan_, place_.rank, own_, stage_),
                        std::move(learning));
  }

  std::vector<Network*> networks() override {
    std::vector<Network*> all;
    for (const ChunkNetworks& chunk : own_.chunks) all.push_back(&chunk.first());
    return all;
  }

  void write(const Parameters& whole) override {
    const Parameters own = parameters_of_part(whole, place_.experiment.model, plan_.sharing, own_place());
    for (Network* network : networks()) write_parameters(*network, own);
  }

  bool tells() const override { return replica_ == 0; }

  Parameters whole(Transport* transport) override {
    Parameters own;
    for (Network* network : networks()) {
      Parameters of_chunk = read_parameters(*network);
      own.resize(of_chunk.size());
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (!of_chunk[i].empty()) own[i] = std::move(of_chunk[i]);
      }
    }
    return parameters_of_stages(*transport, place_.experiment.model, plan_, own);
  }

 private:
  const Role& role() const { return plan_.roles[static_cast<std::size_t>(stage_)]; }
  int own_place() const { return (place_.rank - role().first_rank) % plan_.sharing.ways; }

  LearningPlace place_;
  const Plan& plan_;
  int stage_, replica_;
  StageNetworks own_;
  BatchWriter writer_;
};

}  // namespace

std::unique_ptr<LearningPart> learning_stage(const LearningPlace& place) {
  return std::make_unique<Stage>(place);
}

}  // namespace stepcast
