#include "runtime/learning/joint_shards.hpp"

#include "runtime/devices/rank_device.hpp"
#include "runtime/learning/joint_network.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {
namespace {

/// The network of the replica that a machine belongs to; its first machine makes it.
JointNetwork& joint_network(const LearningPlace& place) {
  const int machines = place.experiment.plan.partition.ways, replica = place.rank.value / machines;
  std::unique_ptr<JointNetwork>& joint = place.joint->replicas[replica];
  if (joint == nullptr)
    joint = std::make_unique<JointNetwork>(place.backend, place.experiment.model,
                                           network_options(place, replica), machines);
  return *joint;
}

/// A machine of a replica. It updates, sends and receives its slice of the network's parameters.
class MachineShard : public LearningShard {
 public:
  explicit MachineShard(const LearningPlace& place)
      : place_(place),
        machines_(place.experiment.plan.partition.ways),
        machine_(place.rank.value % machines_),
        joint_(joint_network(place)),
        writer_(place.backend) {}

  Batches::Split split() const override {
    return {place_.rank.value / machines_, place_.experiment.plan.workers, place_.batch};
  }
  bool reads_data() const override { return machine_ == 0; }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    const ParameterLayout layout(joint_.network());
    const std::int64_t all = layout.model_elements();
    learning.part =
        layout.stored({part_begin(all, machines_, machine_), part_begin(all, machines_, machine_ + 1)});
    learning.owned = {*learning.part};
    learning.run_pass = [this](Work pass, LayerRange segments) {
      joint_.start_pass(machine_, pass, segments);
    };
    learning.begin_update = [this] { joint_.begin_update(machine_); };
    if (reads_data())
      joint_.set_next_batch(
          [this, &batches] { writer_.write(batches.next(), place_.task.loss_layer, joint_.network()); });
    return replica_device(joint_.network(), std::move(learning));
  }

  std::vector<Network*> networks() override { return {&joint_.network()}; }
  void load_parameters(const Parameters& whole) override { write_parameters(joint_.network(), whole); }
  bool holds_evaluated_parameters() const override { return place_.rank == RankId(0); }
  Parameters gather_parameters(Transport*) override { return read_parameters(joint_.network()); }

 private:
  LearningPlace place_;
  int machines_, machine_;
  JointNetwork& joint_;
  BatchWriter writer_;
};

/// Computes with the network that all ranks of a group have in common.
class GroupDevice : public RankDevice {
 public:
  GroupDevice(GroupNetwork& group, GroupNetworks& groups, int place, DeviceLearning learning)
      : RankDevice(group.network()),
        group_(group),
        groups_(groups),
        place_(place),
        learning_(std::move(learning)),
        map_(group.network()) {}

  void begin() override {
    group_.network().reset();
    if (learning_.start) learning_.start(group_.network());
  }

  void compute(Work pass, LayerRange segments) override {
    if (pass != Work::update) return group_.start_pass(place_, pass, segments);
    group_.start_update(place_, groups_, [this](Network& network, std::int64_t step) {
      network.set_rate(learning_.rate.at(step, learning_.summed), 1.0 / learning_.summed);
    });
  }

 protected:
  std::span<float> array(Array array) override { return array_of(group_.network(), array); }
  Slice stored(const Slice& of_model) const override { return map_.stored(of_model); }

 private:
  GroupNetwork& group_;
  GroupNetworks& groups_;
  int place_;
  DeviceLearning learning_;
  ParameterLayout map_;
};

/// A rank of a group. The ranks of the group have one network; what they exchange is in its memory.
class GroupShard : public LearningShard {
 public:
  explicit GroupShard(const LearningPlace& place)
      : place_(place),
        ranks_(place.experiment.plan.partition.ways),
        number_(place.rank.value / ranks_),
        group_(group_network()),
        writer_(place.backend) {}

  Batches::Split split() const override {
    return {number_, place_.experiment.plan.workers / ranks_, place_.batch};
  }
  bool reads_data() const override { return place_.rank.value % ranks_ == 0; }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    if (reads_data())
      group_.set_next_batch(
          [this, &batches] { writer_.write(batches.next(), place_.task.loss_layer, group_.network()); });
    return std::make_unique<GroupDevice>(group_, place_.joint->groups, place_.rank.value % ranks_,
                                         std::move(learning));
  }

  std::vector<Network*> networks() override { return {&group_.network()}; }
  void load_parameters(const Parameters& whole) override { write_parameters(group_.network(), whole); }
  bool holds_evaluated_parameters() const override { return place_.rank == RankId(0); }
  Parameters gather_parameters(Transport*) override { return read_parameters(group_.network()); }

 private:
  GroupNetwork& group_network() const {
    const ModelPartition& partition = place_.experiment.plan.partition;
    std::unique_ptr<GroupNetwork>& group = place_.joint->groups[number_];
    if (group == nullptr) {
      NetworkOptions options = network_options(place_, number_);
      options.part.accumulate = partition.micro_batches > 1;
      group = std::make_unique<GroupNetwork>(place_.backend, place_.experiment.model, options, ranks_);
    }
    return *group;
  }

  LearningPlace place_;
  int ranks_, number_;
  GroupNetwork& group_;
  BatchWriter writer_;
};

}  // namespace

std::unique_ptr<LearningShard> rank_learning_shard(const LearningPlace& place) {
  const Plan& plan = place.experiment.plan;
  const ModelPartition::Form form =
      trains(plan, place.rank) ? plan.partition.form : ModelPartition::Form::none;
  if (form == ModelPartition::Form::machines) return std::make_unique<MachineShard>(place);
  if (form == ModelPartition::Form::group) return std::make_unique<GroupShard>(place);
  return learning_shard(place);
}

}  // namespace stepcast
