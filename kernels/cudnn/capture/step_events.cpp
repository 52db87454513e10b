#include "kernels/cudnn/capture/step_events.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "kernels/cudnn/cuda/optimizer_updates.hpp"
#include "kernels/timing/step_timer.hpp"

extern char** environ;

namespace stepcast {

namespace {

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got; (got = read(file, part.data(), part.size())) > 0;) {
    text.append(part.data(), got);
  }
  return text;
}

/// The first line of a text, without blanks at its ends.
std::string one_line(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n");
  if (begin == std::string::npos) return "";
  const std::string line = text.substr(begin, text.find('\n', begin) - begin);
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

}  // namespace

ProgramOutput output_of(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool started = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  ProgramOutput output;
  if (started) output.text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  if (!started || waitpid(child, &status, 0) != child) return {};
  output.ran = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return output;
}

std::string gpu_state(const std::string& pci_bus) {
  for (const char* reasons :
       {"clocks_event_reasons.active", "clocks_throttle_reasons.active"}) {  // names in new and old drivers
    const ProgramOutput smi =
        output_of({"nvidia-smi", "--id=" + pci_bus,
                   fmt::format("--query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw,{}", reasons),
                   "--format=csv,noheader"});
    if (smi.ran)
      return fmt::format("SM clock, memory clock, degrees Celsius, power, throttle reasons: {}",
                         one_line(smi.text));
  }
  return "nvidia-smi failed: clocks and temperature are unknown";
}

}  // namespace stepcast

namespace stepcast::cudnn {

namespace {

void run_step(Network& network, const Network::Observer& after = {}) {
  const std::size_t layers = network.model().layers.size();
  network.run_forward(0, layers, after);
  network.run_backward(0, layers, after);
  network.begin_update();
  network.update_layers(0, layers);
}

}  // namespace

StepEvents::StepEvents(std::shared_ptr<Device> device, Network& network)
    : device_(std::move(device)), network_(network), passes_(passes_in_order(network)) {
  for (std::size_t i = 0; i < passes_.size(); ++i) places_[{passes_[i].layer, passes_[i].pass}] = i;
  constexpr std::size_t kForAll = 3;  // conversions of weights and of gradients, and the update
  const std::size_t count = std::max<std::size_t>(passes_.size() + kForAll, 256) + 1;
  for (std::size_t i = 0; i < count; ++i) events_.push_back(make_event());
}

void StepEvents::record(std::size_t event) {
  cudnn::record(events_.at(event).get(), device_->stream.get());
}

std::vector<double> StepEvents::intervals(std::size_t events) const {
  std::vector<double> seconds;
  for (std::size_t i = 1; i < events; ++i)
    seconds.push_back(seconds_between(events_[i - 1].get(), events_[i].get()));
  return seconds;
}

void StepEvents::warm_up(int steps) {
  const double begin = now().wall;
  for (int i = 0; i < steps || now().wall - begin < kRise; ++i) time_whole_step();
}

double StepEvents::time_whole_step() {
  record(0);
  run_step(network_);
  record(1);
  check(cudaStreamSynchronize(device_->stream.get()), "cudaStreamSynchronize");
  return intervals(2).front();
}

std::vector<double> StepEvents::time_passes(double cost_of_event) {
  std::vector<LayerPass> seen;
  seen.reserve(events_.size());
  record(0);
  network_.step([&](std::size_t layer, Pass pass) {
    seen.push_back({layer, pass});
    record(seen.size());
  });
  const std::vector<double> all = intervals(seen.size() + 1);
  std::vector<double> seconds(passes_.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double one = std::max(0.0, all[i] - cost_of_event);
    if (seen[i].layer == Network::kAllLayers)
      share(one, seen[i].pass, seconds);
    else
      seconds[places_.at({seen[i].layer, seen[i].pass})] += one;
  }
  return seconds;
}

void StepEvents::share(double whole, Pass pass, std::vector<double>& seconds) {
  const std::vector<double> elements = network_.elements_for_all(pass);
  const double all = std::accumulate(elements.begin(), elements.end(), 0.0);
  for (std::size_t layer = 0; layer < elements.size(); ++layer) {
    if (elements[layer] > 0) seconds[places_.at({layer, pass})] += whole * elements[layer] / all;
  }
}

double StepEvents::cost_of_event() {
  constexpr std::size_t kEvents = 256;
  constexpr std::int64_t kElements = 1 << 22;
  const auto from = allocate_bytes(kElements * sizeof(float), device_->stream.get());
  const auto to = allocate_bytes(kElements * sizeof(float), device_->stream.get());
  // Keeps the GPU busy for some milliseconds, while all events are queued.
  run_background_load(static_cast<const float*>(from.get()), static_cast<float*>(to.get()), kElements, 64, 4,
                      device_->stream.get());
  for (std::size_t i = 0; i < kEvents; ++i) record(i);
  check(cudaStreamSynchronize(device_->stream.get()), "cudaStreamSynchronize");
  std::vector<double> costs = intervals(kEvents);
  const auto middle = costs.begin() + (costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end());
  return *middle;
}

StepGraph::StepGraph(std::shared_ptr<Device> device, Network& network)
    : device_(std::move(device)), graph_(device_, [&network] {
        // With an observer the passes start singly. A graph cannot hold the start of another one.
        run_step(network, [](std::size_t, Pass) {});
      }) {}

double StepGraph::time() {
  return seconds_on_stream(device_->stream.get(), [this] { graph_.start(); });
}

}  // namespace stepcast::cudnn
