#include <sys/prctl.h>

#include <algorithm>

#include "kernels/timing/step_timer.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/transport/thread_scheduling.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {
namespace {

/// Keeps the time until which it is busy, so that late wake-ups do not add up.
class SleepingDevice : public RankDevice {
 public:
  SleepingDevice(const Workload& workload, std::int64_t elements, SleepNoise noise)
      : workload_(workload),
        noise_(std::move(noise)),
        parameters_(static_cast<std::size_t>(elements), 1.0f),
        gradients_(static_cast<std::size_t>(elements), 1.0f) {
    prctl(PR_SET_TIMERSLACK, 1000UL);  // wake-ups are at most 1 us late instead of 50
  }

  void begin() override { begin_step(0); }
  void begin_step(int step) override {
    if (noise_.training)
      drawn_ = draw(noise_.noise, noise_.seed, noise_.worker, static_cast<std::uint32_t>(step), {});
  }
  void compute(Work pass, LayerRange layers) override {
    double seconds = 0;
    for (int i = layers.first; i < layers.last; ++i) {
      const LayerSeconds& layer = workload_.median[static_cast<std::size_t>(i)];
      const double taken = pass == Work::forward    ? layer.forward
                           : pass == Work::backward ? layer.backward
                                                    : layer.update;
      seconds += taken * (drawn_.layer_sigma > 0 ? drawn_.layer_factor(i, pass) : 1);
    }
    pause(seconds);
  }
  void touch_arrays(double, double seconds) override { pause(seconds); }
  void pause(double seconds) override {
    const double started = now().wall;
    // A delay of up to kLate is a late wake-up and belongs to the work; a longer one was waiting for
    // something else.
    constexpr double kLate = 500e-6;
    const double begin = started - busy_until_ < kLate ? busy_until_ : started;
    const double taken = drawn_.factor * seconds;
    busy_until_ = begin + taken;
    sleep_until(busy_until_);
    work_time_.wall += taken;
    work_time_.cpu += taken;
  }

 protected:
  std::span<float> array(Array array) override {
    if (array == Array::parameters) return parameters_;
    if (array == Array::gradients) return gradients_;
    return {};
  }
  Slice stored(const Slice& of_model) const override {
    const auto all = static_cast<std::int64_t>(parameters_.size());
    return {std::min(of_model.begin, all), std::min(of_model.end, all)};
  }

 private:
  const Workload& workload_;
  SleepNoise noise_;
  Draw drawn_;
  std::vector<float> parameters_, gradients_;
  double busy_until_ = 0;
};

}  // namespace

std::unique_ptr<RankDevice> sleeping_device(const Workload& workload, std::int64_t elements,
                                            SleepNoise noise) {
  return std::make_unique<SleepingDevice>(workload, elements, std::move(noise));
}

}  // namespace stepcast
