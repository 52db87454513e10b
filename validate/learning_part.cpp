#include "validate/learning_part.hpp"

#include <algorithm>

#include "validate/real_collectives.hpp"
#include "validate/roles.hpp"
#include "validate/tensor_device.hpp"
#include "validate/whole_parameters.hpp"

namespace stepcast {
namespace {

NetworkOptions network_options(const LearningPlace& place, int group) {
  NetworkOptions options;
  options.batch = place.batch;
  options.data_seed = static_cast<std::uint64_t>(1 + group);
  options.optimizer = place.experiment.learning->optimizer;
  return options;
}

class WholeNetwork : public LearningPart {
 public:
  explicit WholeNetwork(const LearningPlace& place)
      : place_(place),
        network_(place.backend, place.experiment.model, network_options(place, place.rank)),
        writer_(place.backend) {}

  Batches::Split split() const override {
    return {group_of(place_.experiment, place_.rank, 1), place_.experiment.plan.workers, place_.batch};
  }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    learning.owned = scattered_parts(place_.experiment.plan, place_.rank, ArrayMap(network_));
    learning.next_batch = [this, &batches] {
      write_batch(batches.next(), place_.task.loss_layer, network_, writer_);
    };
    return kernel_device(network_, std::move(learning));
  }

  std::vector<Network*> networks() override { return {&network_}; }
  void write(const Parameters& whole) override { write_parameters(network_, whole); }
  bool tells() const override { return place_.rank == 0; }
  Parameters whole(Transport*) override { return read_parameters(network_); }

 private:
  LearningPlace place_;
  Network network_;
  BatchWriter writer_;
};

class PartOfLayers : public LearningPart {
 public:
  explicit PartOfLayers(const LearningPlace& place)
      : place_(place),
        sharing_(place.experiment.plan.sharing),
        own_(shared_network(place.backend, place.experiment.model, sharing_, place.rank % sharing_.ways,
                            network_options(place, place.rank / sharing_.ways))),
        writer_(place.backend) {}

  Batches::Split split() const override {
    return {group_of(place_.experiment, place_.rank, sharing_.ways),
            place_.experiment.plan.workers / sharing_.ways, place_.batch};
  }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    learning.next_batch = [this, &batches] {
      write_batch(batches.next(), place_.task.loss_layer, *own_.network, writer_);
    };
    return tensor_device(own_, std::move(learning));
  }

  std::vector<Network*> networks() override { return {own_.network.get()}; }
  void write(const Parameters& whole) override {
    write_parameters(*own_.network, parameters_of_part(whole, place_.experiment.model, sharing_,
                                                       place_.rank % sharing_.ways));
  }
  bool tells() const override { return place_.rank < sharing_.ways; }
  Parameters whole(Transport* transport) override {
    return whole_parameters(*transport, place_.experiment.model, sharing_, read_parameters(*own_.network));
  }

 private:
  LearningPlace place_;
  const NetworkSharing& sharing_;
  SharedNetwork own_;
  BatchWriter writer_;
};

}  // namespace

std::unique_ptr<LearningPart> learning_part(const LearningPlace& place) {
  const Plan& plan = place.experiment.plan;
  const NetworkSharing::Form form = plan.sharing.form;
  if (role_of(plan, place.rank) < 0) return std::make_unique<WholeNetwork>(place);
  if (form == NetworkSharing::Form::stages) return learning_stage(place);
  if (form == NetworkSharing::Form::positions) return learning_cut(place);
  if (form == NetworkSharing::Form::blocks) return std::make_unique<PartOfLayers>(place);
  return std::make_unique<WholeNetwork>(place);
}

int group_of(const Experiment& experiment, int rank, int group_size) {
  return std::min(rank, experiment.plan.workers - 1) / group_size;
}

void write_batch(const Batches::Batch& batch, std::size_t loss_layer, Network& network, BatchWriter& writer) {
  writer.write(batch.inputs, network.input());
  if (network.contains(loss_layer)) writer.write(batch.targets, *network.kernel(loss_layer).targets());
}

}  // namespace stepcast
