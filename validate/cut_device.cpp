#include "validate/cut_device.hpp"

#include <stdexcept>

#include "strategies/pieces.hpp"
#include "validate/dealing.hpp"
#include "validate/halo_messages.hpp"
#include "validate/network_passes.hpp"
#include "validate/sleep_until.hpp"

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
        map_(network_) {
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
    const Instant begin = now();
    pass_ = pass;
    if (pass == Work::update) {
      run_layers(network_, pass, {0, static_cast<int>(model_.layers.size())});
    } else {
      // Forward runs with the first piece of a layer, backward with the second (docs of pieces.cpp).
      const int which = pass == Work::forward ? 0 : 1;
      const int first = (pieces.first - which + kPieces - 1) / kPieces;
      const int last = (pieces.last - 1 - which + kPieces) / kPieces;
      run_layers(network_, pass, {first, last});
    }
    book(begin);
  }

  bool calculate(const Arithmetic&) override { return false; }
  void touch_arrays(double, double) override {}
  void pause(double seconds) override { sleep_until(now().wall + seconds); }

  CollectiveWork work_of(const Collective& collective) override {
    if (collective.kind == Collective::Kind::exchange) return halo_work(collective);
    if (collective.kind == Collective::Kind::all_to_all)
      return dealing_->work(pass_ == Work::forward, wire(collective));
    if (collective.buffer.array == Array::statistics) return statistics_work(collective);
    return RankDevice::work_of(collective);
  }

 protected:
  std::span<float> array(Array array) override { return array_of(network_, array); }
  Slice stored(const Slice& of_model) const override { return map_.stored(of_model); }

 private:
  /// Memory of one exchange; programs wait for each before the next.
  std::span<float> wire(const Collective& collective) {
    wire_.resize(static_cast<std::size_t>(collective.buffer.size.value / sizeof(float)));
    return wire_;
  }

  CollectiveWork halo_work(const Collective& collective) {
    const bool errors = collective.buffer.array == Array::errors;
    const Pass pass = errors ? Pass::backward_data : Pass::forward;
    LayerKernel& kernel = network_.kernel(static_cast<std::size_t>(collective.layer));
    const HaloMaps* maps = kernel.halo(pass);
    const std::span<float> memory = wire(collective);
    if (maps == nullptr) throw std::logic_error("a halo of a layer that has none");
    const Instant begin = now();
    kernel.prepare_halo(pass);
    book(begin);
    auto& messages = messages_[&collective];
    if (messages.empty()) messages = halo_messages(model_, cut_, collective, place_);
    return {.memory = memory,
            .before_phase =
                [&messages, maps, memory](std::size_t phase) {
                  for (const HaloBox& one : messages[phase])
                    if (one.sends) pack(one.box, maps->own, maps->extended, memory.data() + one.begin);
                },
            .after_phase =
                [&messages, maps, memory](std::size_t phase) {
                  for (const HaloBox& one : messages[phase])
                    if (!one.sends) unpack(one.box, maps->extended, memory.data() + one.begin);
                }};
  }

  CollectiveWork statistics_work(const Collective& collective) {
    LayerKernel& kernel = network_.kernel(static_cast<std::size_t>(collective.layer));
    const Pass pass = pass_ == Work::forward ? Pass::forward : Pass::backward_data;
    return {.memory = kernel.summed(pass), .waited = [this, &kernel, pass] {
              const Instant begin = now();
              kernel.finish(pass);
              book(begin);
            }};
  }

  Network& network_;
  const Model& model_;
  SampleCut cut_;
  int place_;
  DeviceLearning learning_;
  ArrayMap map_;
  Work pass_ = Work::forward;  ///< that was computed last
  std::vector<float> wire_;
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
