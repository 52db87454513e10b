#include "sim/engine.hpp"

#include <algorithm>
#include <cmath>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <stdexcept>
#include <string>

namespace stepcast {
namespace {

namespace sg4 = simgrid::s4u;

/// SimGrid takes whole bytes; closed forms to 1e-9 need finer ones. Bandwidths are scaled likewise.
constexpr double kUnitsPerByte = 1024;

constexpr int kPlaceBits = 24;  // of an event's order, for the place of its callback

/// The one zone of every platform: it hands SimGrid the links that the next flow asked for. Which links those
/// are is worked out by platforms/ (any topology, any routing); nothing is stored a pair of hosts.
class RouteZone : public simgrid::kernel::routing::NetZoneImpl {
 public:
  explicit RouteZone(const std::string& name) : NetZoneImpl(name) {}

  std::vector<simgrid::kernel::resource::StandardLinkImpl*> next_route;

  void get_local_route(const simgrid::kernel::routing::NetPoint*, const simgrid::kernel::routing::NetPoint*,
                       simgrid::kernel::routing::Route* into, double*) override {
    into->link_list_.insert(into->link_list_.end(), next_route.begin(), next_route.end());
  }
  void get_graph(const s_xbt_graph_t*, std::map<std::string, xbt_node_t, std::less<>>*,
                 std::map<std::string, xbt_edge_t, std::less<>>*) override {}
};

std::vector<char*> arguments() {
  // Fair sharing without TCP's corrections, which are wrong for InfiniBand and NVLink; latency is ours to
  // add.
  static std::vector<std::string> words{"stepcast",
                                        "--cfg=network/model:CM02",
                                        "--cfg=network/crosstraffic:0",
                                        "--cfg=network/TCP-gamma:1e15",
                                        "--cfg=surf/precision:1e-12",
                                        "--cfg=contexts/factory:thread",
                                        "--log=root.thresh:critical"};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return pointers;
}

}  // namespace

struct Engine::SimGrid {
  struct Flow {
    Callback done;
    sg4::CommPtr comm;
  };

  explicit SimGrid(const std::vector<BytesPerSecond>& bandwidths) {
    auto* face = zone->get_iface();
    source = face->create_host("source", 1.0)->seal();
    target = face->create_host("target", 1.0)->seal();
    links.reserve(bandwidths.size());
    for (std::size_t i = 0; i < bandwidths.size(); ++i) {
      auto* link = face->create_link(std::to_string(i), bandwidths[i].value * kUnitsPerByte);
      link->set_latency(0)->seal();
      links.push_back(link->get_impl());
    }
    zone->seal();
  }

  std::vector<char*> argv = arguments();
  int argc = static_cast<int>(argv.size());
  sg4::Engine engine{&argc, argv.data()};
  RouteZone* zone = new RouteZone("stepcast");  // SimGrid deletes it
  sg4::Host* source = nullptr;
  sg4::Host* target = nullptr;
  std::vector<simgrid::kernel::resource::StandardLinkImpl*> links;
  std::vector<sg4::CommPtr>
      finished;  // SimGrid still uses a comm after its callback; released when time goes on
};

Engine::Engine(std::vector<BytesPerSecond> links) : links_(std::move(links)) {}

Engine::~Engine() = default;

Engine::SimGrid& Engine::simgrid() {
  if (simgrid_) return *simgrid_;
  simgrid_ = std::make_unique<SimGrid>(links_);
  sg4::Activity::on_completion_cb([this](const sg4::Activity& activity) {
    auto* flow = static_cast<SimGrid::Flow*>(static_cast<const sg4::Comm&>(activity).get_data<void>());
    simgrid_->finished.push_back(std::move(flow->comm));
    Callback done = std::move(flow->done);
    delete flow;
    --under_way_;
    now_ = std::max(now_, sg4::Engine::get_clock());
    call(done);
  });
  sg4::Engine::on_time_advance_cb([this](double) { simgrid_->finished.clear(); });
  return *simgrid_;
}

Engine::Event Engine::event_at(double date, Callback&& callback) {
  std::uint64_t place = callbacks_.size();
  if (free_.empty()) {
    if (place >> kPlaceBits != 0) throw std::length_error("more events at once than an engine holds");
    callbacks_.push_back(std::move(callback));
  } else {
    place = free_.back();
    free_.pop_back();
    callbacks_[place] = std::move(callback);
  }
  return {std::max(now_, date), sequence_++ << kPlaceBits | place};
}

void Engine::at(double date, Callback callback) {
  queue_.push(event_at(date, std::move(callback)));
  arm();
}

void Engine::at_rising(Rising kind, double date, Callback callback) {
  queue_.push_rising(event_at(date, std::move(callback)), static_cast<int>(kind));
  arm();
}

void Engine::start_flow(const std::vector<int>& links, Bytes size, Callback done) {
  const double units = std::round(size.value * kUnitsPerByte);
  ++flows_;
  if (links.empty() || units < 1) return at(now_, std::move(done));
  const bool caught_up = simgrid_ && sg4::Engine::get_clock() >= now_;
  if (caught_up) return start_now(links, units, std::move(done));
  waiting_.push_back({links, units, std::move(done)});
  if (!playing_) arm();
}

void Engine::start_now(const std::vector<int>& links, double units, Callback done) {
  SimGrid& by = simgrid();
  auto& route = by.zone->next_route;
  route.clear();
  for (const int link : links) route.push_back(by.links[static_cast<std::size_t>(link)]);
  auto* flow = new SimGrid::Flow{std::move(done), sg4::Comm::sendto_init(by.source, by.target)};
  flow->comm->set_payload_size(static_cast<std::uint64_t>(units));
  flow->comm->set_data(static_cast<void*>(flow));
  ++under_way_;
  flow->comm->vetoable_start();
}

void Engine::start_waiting() {
  std::vector<Waiting> flows;
  flows.swap(waiting_);
  for (Waiting& flow : flows) start_now(flow.links, flow.units, std::move(flow.done));
}

/// Sets a SimGrid timer for what comes next, where SimGrid's clock is what goes on.
void Engine::arm() {
  if (playing_ || !simgrid_) return;
  if (waiting_.empty() && queue_.empty()) return;
  const double date = waiting_.empty() ? queue_.top().date : now_;
  if (!armed_.empty() && armed_.back() <= date) return;
  armed_.push_back(date);
  simgrid::kernel::timer::Timer::set(date, [this] { fire(); });
}

void Engine::fire() {
  armed_.pop_back();  // timers fire by date, so this one's
  const double clock = sg4::Engine::get_clock();
  if (clock >= now_) {
    now_ = clock;
    start_waiting();
  }
  play_events();
  arm();
}

/// Plays what is due; what comes later too, as long as no flow needs SimGrid's clock.
void Engine::play_events() {
  playing_ = true;
  while (!queue_.empty()) {
    const Event next = queue_.top();
    if (next.date > now_) {
      if (under_way_ > 0 || !waiting_.empty()) break;
      now_ = next.date;
    }
    const auto place = next.order & ((std::uint64_t{1} << kPlaceBits) - 1);
    queue_.pop(next);
    Callback callback = std::move(callbacks_[place]);
    free_.push_back(place);
    ++events_;
    call(callback);
  }
  playing_ = false;
}

void Engine::call(Callback& callback) {
  if (error_) return;  // drain: SimGrid must not see an exception
  try {
    callback();
  } catch (...) {
    error_ = std::current_exception();
  }
}

void Engine::run() {
  play_events();
  while (!waiting_.empty() || under_way_ > 0) {
    simgrid();
    arm();
    simgrid_->engine.run();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace stepcast
