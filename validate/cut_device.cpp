#include "validate/cut_device.hpp"

#include <stdexcept>

#include "strategies/pieces.hpp"
#include "validate/dealing.hpp"
#include "validate/halo_messages.hpp"
#include "validate/network_passes.hpp"
#include "validate/sleep_until.hpp"
#include "validate/wire.hpp"

namespace stepcast {
namespace {

class CutDevice : public RankDevice {
 public:
  CutDevice(const CutNetwork& cut, const Model& model, const NetworkSharing& sharing, int place,
            DeviceLearning learning)
      : RankDevice(*cut.network),
        network_(*cut.network),
        model_(model),
        cut_(sharing.cut),
        place_(place),
        learning_(std::move(learning)),
        map_(network_),
        wire_(network_.backend()) {
    if (deals_samples(sharing, model)) dealing_ = std::make_unique<Dealing>(network_, model, sharing, place);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      if (model.layers[i].kind == LayerKind::batch_norm && sharing.statistics_over > 1)
        network_.kernel(i).couple();
    }
  }

  void begin() override {
    network_.reset();
    if (learning_.start) learning_.start(network_);
    begin_step(0);
  }

  void begin_step(int step) override {
    if (!learning_.next_step) return;  // always the same data, and the optimizer's own rate
    learning_.next_step();
    network_.set_rate(learning_.rate.at(step + 1, learning_.summed), 1.0 / learning_.summed);
  }

  void compute(Work pass, LayerRange pieces) override {
    pass_ = pass;
    // Forward runs with the first piece of a layer, backward with the second (docs of pieces.cpp).
    const int which = pass == Work::forward ? 0 : 1;
    const int first = (pieces.first - which + kPieces - 1) / kPieces;
    const int last = (pieces.last - 1 - which + kPieces) / kPieces;
    const LayerRange all{0, static_cast<int>(model_.layers.size())};
    timed([&] { run_layers(network_, pass, pass == Work::update ? all : LayerRange{first, last}); });
  }

  bool calculate(const Arithmetic&) override { return false; }
  void touch_arrays(double, double) override {}
  void pause(double seconds) override { sleep_until(now().wall + seconds); }

  CollectiveWork work_of(const Collective& collective) override {
    if (collective.kind == Collective::Kind::exchange) return halo_work(collective);
    if (collective.kind == Collective::Kind::all_to_all) return dealing_work(collective);
    if (collective.buffer.array == Array::statistics) return statistics_work(collective);
    return RankDevice::work_of(collective);
  }

 protected:
  std::span<float> array(Array array) override { return array_of(network_, array); }
  Slice stored(const Slice& of_model) const override { return map_.stored(of_model); }

 private:
  /// Programs wait for each exchange before the next.
  WireMemory wire(const Collective& collective) {
    return wire_.of(static_cast<std::size_t>(collective.buffer.size.value / sizeof(float)));
  }

  static CollectiveWork work_on_wire(const WireMemory& memory) {
    CollectiveWork work{.memory = memory.here};
    if (memory.device != nullptr) work.on_device = memory.there;
    work.phases_on = memory.device;
    return work;
  }

  CollectiveWork halo_work(const Collective& collective) {
    const bool errors = collective.buffer.array == Array::errors;
    const Pass pass = errors ? Pass::backward_data : Pass::forward;
    LayerKernel& kernel = network_.kernel(static_cast<std::size_t>(collective.layer));
    if (!kernel.has_halo(pass)) throw std::logic_error("a halo of a layer that has none");
    const WireMemory memory = wire(collective);
    timed([&] { kernel.prepare_halo(pass); });
    auto& messages = messages_[&collective];
    if (messages.empty()) messages = halo_messages(model_, cut_, collective, place_);
    CollectiveWork work = work_on_wire(memory);
    work.before_phase = [this, &messages, &kernel, pass, there = memory.there](std::size_t phase) {
      network_.backend().begin_thread();
      for (const HaloBox& one : messages[phase])
        if (one.sends) kernel.pack_halo(pass, one.box, there + one.begin);
    };
    work.after_phase = [&messages, &kernel, pass, there = memory.there](std::size_t phase) {
      for (const HaloBox& one : messages[phase])
        if (!one.sends) kernel.unpack_halo(pass, one.box, there + one.begin);
    };
    return work;
  }

  CollectiveWork dealing_work(const Collective& collective) {
    const WireMemory memory = wire(collective);
    CollectiveWork work = work_on_wire(memory);
    dealing_->add_to(work, pass_ == Work::forward, memory.there);
    return work;
  }

  CollectiveWork statistics_work(const Collective& collective) {
    LayerKernel& kernel = network_.kernel(static_cast<std::size_t>(collective.layer));
    return sum_within(kernel, pass_ == Work::forward ? Pass::forward : Pass::backward_data, collective);
  }

  Network& network_;
  const Model& model_;
  SampleCut cut_;
  int place_;
  DeviceLearning learning_;
  ArrayMap map_;
  Work pass_ = Work::forward;  ///< that was computed last
  Wire wire_;
  std::map<const Collective*, std::vector<std::vector<HaloBox>>> messages_;
  std::unique_ptr<Dealing> dealing_;
};

}  // namespace

NetworkOptions cut_options(const DevicePart& part, const Model& model, const NetworkSharing& sharing,
                           NetworkOptions options) {
  const int ways = device_count(sharing.cut.parts);
  const bool all_whole = sharing.cut.whole_from == 0;
  options.batch = all_whole ? sharing.micro_batch / ways : sharing.micro_batch;
  if (deals_samples(sharing, model)) {
    options.part.border = sharing.cut.whole_from;
    options.part.border_batch = sharing.micro_batch / ways;
  }
  options.part.device = &part;
  options.part.statistics_replicas = sharing.statistics_over > 1 ? sharing.statistics_over / ways : 0;
  return options;
}

CutNetwork cut_network(Backend& backend, const Model& model, const NetworkSharing& sharing, int place,
                       const NetworkOptions& options) {
  CutNetwork made{std::make_unique<DevicePart>(device_part(model, sharing.cut, place)), nullptr};
  made.network =
      std::make_unique<Network>(backend, made.part->model, cut_options(*made.part, model, sharing, options));
  return made;
}

std::unique_ptr<RankDevice> cut_device(const CutNetwork& cut, const Model& model,
                                       const NetworkSharing& sharing, int place, DeviceLearning learning) {
  return std::make_unique<CutDevice>(cut, model, sharing, place, std::move(learning));
}

}  // namespace stepcast
