#include "sim/simgrid/simgrid_flows.hpp"

#include <algorithm>
#include <cmath>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <string>

namespace stepcast {
/// SimGrid's clock, which a new engine does not set back; dates after a clock that went on would be rounded
/// differently. It is a private static member of SimGrid 3.32's EngineImpl, so it is named by its symbol. No
/// public call sets it: Engine::run_until refuses a past date, an event of a profile in the past ends the run
/// without an effect, and a Model cannot ask for a negative time.
extern double simgrid_clock __asm__("_ZN7simgrid6kernel10EngineImpl4now_E");

namespace sg4 = simgrid::s4u;

namespace {

/// SimGrid's public calls take whole numbers of bytes. In chains of equal messages their rounding adds up, so
/// sizes and bandwidths are in a finer unit.
constexpr double kUnitsPerByte = 1 << 28;

/// What one communication of SimGrid can carry. More is sent in parts, one after the other.
constexpr double kMostUnits = 9e18;

double units(Bytes size) {
  return std::round(size.value * kUnitsPerByte);
}

std::vector<char*> arguments() {
  // Max-min sharing without TCP's corrections, which do not hold for InfiniBand and NVLink.
  static std::vector<std::string> words{"stepcast",
                                        "--cfg=network/model:CM02",
                                        "--cfg=network/crosstraffic:0",
                                        "--cfg=network/TCP-gamma:1e15",
                                        "--cfg=surf/precision:1e-15",
                                        "--cfg=maxmin/precision:1e-12",
                                        "--cfg=contexts/factory:thread",
                                        "--log=root.thresh:critical"};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return pointers;
}

/// The arguments of an engine, after the first call has kept zones open.
std::vector<char*> opened_arguments() {
  static const bool open = [] {
    std::vector<char*> words = arguments();
    keep_zones_open(words.size(), words.data());
    return true;
  }();
  static_cast<void>(open);
  return arguments();
}

SimGridFlows* current = nullptr;  // as global as SimGrid's engine
bool used_up = false;
int engines = 0;  // so far

/// Engines of one process. Each leaves callbacks behind that slow down the next ones: after 1,000 engines a
/// small simulation takes twice as long. Starting a process costs as much as one or two small simulations.
constexpr int kMostEngines = 50;

struct Flow {
  Callback done;
  double rest;  ///< that is not yet sent [units]
  sg4::CommPtr comm = nullptr;
};

/// Starts what is left of a flow, or as much as SimGrid can count.
void send(Flow& flow, sg4::Host* from, sg4::Host* to) {
  const double part = std::min(flow.rest, kMostUnits);
  flow.rest -= part;
  flow.comm = sg4::Comm::sendto_init(from, to);
  flow.comm->set_payload_size(static_cast<std::uint64_t>(part));
  flow.comm->set_data(static_cast<void*>(&flow));
  flow.comm->vetoable_start();
}

}  // namespace

struct SimGridFlows::Parts {
  explicit Parts(const FlowLinks& links) : platform(links, kUnitsPerByte) {}

  std::vector<char*> argv = opened_arguments();
  int argc = argv.size();
  sg4::Engine engine{&argc, argv.data()};
  SimGridPlatform platform;
  /// SimGrid still uses a communication after its completion callback, so it is released when time advances.
  std::vector<sg4::CommPtr> finished;
};

SimGridFlows::SimGridFlows(const FlowLinks& links, std::function<void(Callback&)> ended)
    : parts_(std::make_unique<Parts>(links)), ended_(std::move(ended)) {
  current = this;
  ++engines;
  static const bool connected = [] {  // SimGrid keeps callbacks from one engine to the next
    sg4::Activity::on_completion_cb([](const sg4::Activity& activity) { current->complete(activity); });
    sg4::Engine::on_time_advance_cb([](double) { current->parts_->finished.clear(); });
    return true;
  }();
  static_cast<void>(connected);
}

SimGridFlows::~SimGridFlows() {
  if (active_flows_ > 0 || simgrid::kernel::timer::Timer::next() >= 0) {
    used_up = true;  // an exception ended the run: what SimGrid still holds must not reach another simulation
    static_cast<void>(parts_.release());
  }
  parts_.reset();
  current = nullptr;
  simgrid_clock = 0;
}

void SimGridFlows::complete(const sg4::Activity& activity) {
  auto* flow = static_cast<Flow*>(static_cast<const sg4::Comm&>(activity).get_data<void>());
  const sg4::CommPtr comm = std::move(flow->comm);
  parts_->finished.push_back(comm);
  if (flow->rest > 0) return send(*flow, comm->get_source(), comm->get_destination());
  Callback done = std::move(flow->done);
  delete flow;
  --active_flows_;
  ended_(done);
}

bool simgrid_is_used_up() {
  return used_up || engines >= kMostEngines;
}

bool SimGridFlows::ends_at_once(const FlowRoute& route, Bytes size) {
  const auto* pair = std::get_if<EndpointPair>(&route);
  return units(size) < 1 || (pair ? pair->from == pair->to : std::get<1>(route).empty());
}

double SimGridFlows::clock() const {
  return sg4::Engine::get_clock();
}

void SimGridFlows::start(const FlowRoute& route, Bytes size, Callback done) {
  const auto [from, to] = parts_->platform.hosts(route);
  auto* flow = new Flow{std::move(done), units(size)};
  ++active_flows_;
  send(*flow, from, to);
}

void SimGridFlows::at(double date, std::function<void()> callback) {
  simgrid::kernel::timer::Timer::set(date, std::move(callback));
}

void SimGridFlows::run() {
  parts_->engine.run();
}

}  // namespace stepcast
