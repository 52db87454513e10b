#include "validate/tensor_device.hpp"

#include "validate/network_passes.hpp"
#include "validate/sleep_until.hpp"

namespace stepcast {
namespace {

class TensorDevice : public RankDevice {
 public:
  TensorDevice(const SharedNetwork& shared, DeviceLearning learning)
      : RankDevice(*shared.network),
        network_(*shared.network),
        part_(*shared.part),
        learning_(std::move(learning)),
        map_(network_) {
    for (std::size_t i = 0; i < part_.shares.size(); ++i) {
      if (part_.shares[i]) network_.kernel(i).couple();
    }
  }

  void begin() override {
    network_.reset();
    if (learning_.start) learning_.start(network_);
    steps_ = 0;
    mini_batch_begun_ = false;
  }

  void compute(Work pass, LayerRange pieces) override {
    if (pass == Work::forward && pieces.first == 0 && !mini_batch_begun_ && learning_.next_batch)
      learning_.next_batch();
    if (pass != Work::update && pieces.first == 0) mini_batch_begun_ = pass == Work::forward;
    timed([&] { pass == Work::update ? update() : run_pieces(network_, pass, pieces); });
  }

  bool calculate(const Arithmetic&) override { return false; }
  void touch_arrays(double, double) override {}
  void pause(double seconds) override { sleep_until(now().wall + seconds); }

  CollectiveWork work_of(const Collective& collective) override {
    const Array array = collective.buffer.array;
    if (array != Array::activations && array != Array::errors) return RankDevice::work_of(collective);
    LayerKernel& kernel = network_.kernel(static_cast<std::size_t>(collective.layer));
    return sum_within(kernel, array == Array::activations ? Pass::forward : Pass::backward_data, collective);
  }

 protected:
  std::span<float> array(Array array) override { return array_of(network_, array); }
  Slice stored(const Slice& of_model) const override { return map_.stored(of_model); }

 private:
  void update() {
    network_.set_rate(learning_.rate.at(++steps_, learning_.summed), 1.0 / learning_.summed);
    run_layers(network_, Work::update, {0, static_cast<int>(part_.shares.size())});
  }

  Network& network_;
  const SharedPart& part_;
  DeviceLearning learning_;
  ArrayMap map_;
  std::int64_t steps_ = 0;         ///< of the optimizer
  bool mini_batch_begun_ = false;  ///< it has gone forward through the first layer and not yet back
};

}  // namespace

SharedPart shared_part(const Model& model, const NetworkSharing& sharing, int place) {
  return tensor_part(model, sharing.ways, place);
}

NetworkOptions shared_options(const SharedPart& part, const NetworkSharing& sharing, NetworkOptions options) {
  options.batch = sharing.micro_batch;
  options.part.shared = &part;
  options.part.accumulate = sharing.micro_batches > 1;
  return options;
}

SharedNetwork shared_network(Backend& backend, const Model& model, const NetworkSharing& sharing, int place,
                             const NetworkOptions& options) {
  SharedNetwork made{std::make_unique<SharedPart>(shared_part(model, sharing, place)), nullptr};
  made.network =
      std::make_unique<Network>(backend, made.part->model, shared_options(*made.part, sharing, options));
  return made;
}

std::unique_ptr<RankDevice> tensor_device(const SharedNetwork& shared, DeviceLearning learning) {
  return std::make_unique<TensorDevice>(shared, std::move(learning));
}

}  // namespace stepcast
