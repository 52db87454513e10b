#include "sim/engine/simgrid_flows.hpp"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>
#include <string>

namespace stepcast {
/// SimGrid's clock, which a new engine does not set back. It is a private static member of SimGrid 3.32's
/// EngineImpl, so it is named by its symbol.
extern double simgrid_clock __asm__("_ZN7simgrid6kernel10EngineImpl4now_E");

namespace sg4 = simgrid::s4u;

/// The only network zone that SimGrid sees: it answers SimGrid's route request with the links of the next
/// flow. platforms/ computes these links, for any topology and routing, so no table of host pairs is stored.
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

namespace {

std::vector<char*> arguments() {
  // Max-min sharing without TCP's corrections, which do not hold for InfiniBand and NVLink. Links have no
  // latency here: callers wait for it before they start a flow.
  static std::vector<std::string> words{"stepcast",
                                        "--cfg=network/model:CM02",
                                        "--cfg=network/crosstraffic:0",
                                        "--cfg=network/TCP-gamma:1e15",
                                        "--cfg=surf/precision:1e-12",
                                        "--cfg=maxmin/precision:1e-12",
                                        "--cfg=contexts/factory:thread",
                                        "--log=root.thresh:critical"};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  return pointers;
}

SimGridFlows* current = nullptr;  // as global as SimGrid's engine
bool used_up = false;
int engines = 0;  // so far

/// Engines of one process. Each leaves callbacks behind that slow down the next ones: after 1,000 engines a
/// small simulation takes twice as long. Starting a process costs as much as one or two small simulations.
constexpr int kMostEngines = 50;

struct Flow {
  Callback done;
  sg4::CommPtr comm;
};

}  // namespace

struct SimGridFlows::Parts {
  explicit Parts(const std::vector<double>& bandwidths) {
    auto* face = zone->get_iface();
    source = face->create_host("source", 1.0)->seal();
    target = face->create_host("target", 1.0)->seal();
    links.reserve(bandwidths.size());
    for (std::size_t i = 0; i < bandwidths.size(); ++i) {
      auto* link = face->create_link(std::to_string(i), bandwidths[i]);
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
  /// SimGrid still uses a communication after its completion callback, so it is released when time advances.
  std::vector<sg4::CommPtr> finished;
};

SimGridFlows::SimGridFlows(const std::vector<double>& bandwidths, std::function<void(Callback&)> ended)
    : parts_(std::make_unique<Parts>(bandwidths)), ended_(std::move(ended)) {
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
  parts_->finished.push_back(std::move(flow->comm));
  Callback done = std::move(flow->done);
  delete flow;
  --active_flows_;
  ended_(done);
}

bool simgrid_is_used_up() {
  return used_up || engines >= kMostEngines;
}

double SimGridFlows::clock() const {
  return sg4::Engine::get_clock();
}

void SimGridFlows::start(const std::vector<int>& links, double size, Callback done) {
  auto& route = parts_->zone->next_route;
  route.clear();
  for (const int link : links) route.push_back(parts_->links[static_cast<std::size_t>(link)]);
  auto* flow = new Flow{std::move(done), sg4::Comm::sendto_init(parts_->source, parts_->target)};
  flow->comm->set_payload_size(static_cast<std::uint64_t>(size));
  flow->comm->set_data(static_cast<void*>(flow));
  ++active_flows_;
  flow->comm->vetoable_start();
}

void SimGridFlows::at(double date, std::function<void()> callback) {
  simgrid::kernel::timer::Timer::set(date, std::move(callback));
}

void SimGridFlows::run() {
  parts_->engine.run();
}

}  // namespace stepcast
