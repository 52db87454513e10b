#include "sim/simgrid/simgrid_platform.hpp"

#include <catch2/catch.hpp>
#include <simgrid/s4u.hpp>

#include "sim/engine/engine.hpp"
#include "sim/simgrid/simgrid_host.hpp"
#include "tests/platforms/built_platforms.hpp"
#include "tests/sim/child.hpp"

namespace stepcast::simgrid_platform_test {

namespace sg4 = simgrid::s4u;

namespace {

/// Runs `body` with SimGrid in a child process; true if it finds no fault.
bool faultless(const std::function<std::string()>& body) {
  return number_from_child([&] {
           std::string name = "test";
           char* words[] = {name.data()};
           int count = 1;
           keep_zones_open(count, words);
           const sg4::Engine engine(&count, words);
           const std::string fault = body();
           if (!fault.empty()) std::fprintf(stderr, "%s\n", fault.c_str());
           return fault.empty() ? 1.0 : 0.0;
         }) == 1;
}

std::vector<std::string> names(const Topology& topology, const std::vector<int>& links) {
  std::vector<std::string> all;
  for (const int id : links) all.push_back(topology.dotted_link_name(id));
  return all;
}

/// Compares SimGrid's routes between about 40 endpoints, spread over the platform, with those of Topology.
std::string fault_of_routes_in_simgrid(const Platform& platform) {
  const Topology topology(platform);
  SimGridPlatform simgrid(LinkBandwidths(platform), 8);
  const int count = simgrid_host_count(platform);
  for (int from = 0; from < count; from += std::max(1, count / 40)) {
    for (int to = count - 1; to >= 0; to -= std::max(1, count / 40)) {
      if (from == to) continue;
      const auto [source, target] = simgrid.hosts(EndpointPair{from, to});
      std::vector<sg4::Link*> links;
      double latency = 0;
      source->route_to(target, links, &latency);
      const std::vector<int> route = route_between(topology, from, to);
      const std::string pair = source->get_name() + " to " + target->get_name();
      if (source->get_name() != topology.endpoint_name(from)) return pair + ": another host";
      if (latency != 0) return pair + ": a latency, which flows would share by";
      if (links.size() != route.size()) return pair + ": another number of links";
      for (std::size_t i = 0; i < links.size(); ++i) {
        const Link& link = topology.link(route[i]);
        if (links[i]->get_name() != topology.dotted_link_name(route[i]) ||
            links[i]->get_bandwidth() != 8 * link.bandwidth.value ||
            links[i]->get_latency() != link.latency.value)
          return pair + ": another link " + links[i]->get_name();
      }
    }
  }
  return "";
}

}  // namespace

TEST_CASE("SimGrid finds the routes of every kind of platform by their hosts", "[sim]") {
  for (const char* name : {"dgx1v", "summit", "frontier", "piz-daint", "titan", "two-sites", "leonardo"}) {
    CAPTURE(name);
    CHECK(faultless([&] { return fault_of_routes_in_simgrid(platform_file(name)); }));
  }
}

TEST_CASE("SimGrid's routes lead around dead links", "[sim]") {
  Platform platform = platform_file("dgx1v");
  platform.dead_links = route_between(Topology(platform), 0, 1);
  CHECK(faultless([&] { return fault_of_routes_in_simgrid(platform); }));
}

TEST_CASE("SimGrid has a zone for the fabric, and in it one for each node that a flow used", "[sim]") {
  CHECK(faultless([] {
    SimGridPlatform simgrid(LinkBandwidths(platform_file("dgx1v")), 1);
    const auto [from, to] = simgrid.hosts(EndpointPair{17, 3});
    sg4::NetZone* root = sg4::Engine::get_instance()->get_netzone_root();
    if (root->get_name() != "fabric") return "no fabric";
    if (root->get_children().size() != 2) return "another number of zones";
    if (from->get_englobing_zone()->get_name() != "node2") return "device 17 is not in node2";
    if (to->get_name() != "node0.device3") return "another host";
    return sg4::Engine::get_instance()->get_host_count() == 2 ? "" : "another number of hosts";
  }));
}

TEST_CASE("hosts have the speed, memory and price of devices, and CPUs the disks of their nodes", "[sim]") {
  CHECK(faultless([] {
    Platform platform = platform_file("dgx1v");
    platform.device_peak = {3e12};
    platform.device_memory = {16e9};
    platform.price_per_device_hour = 1.5;
    SimGridPlatform simgrid(LinkBandwidths(platform), 1);
    const auto [device, cpu] = simgrid.hosts(EndpointPair{0, platform.host_endpoint(1)});
    if (device->get_speed() != 3e12) return "another speed";
    if (std::string(device->get_property("memory_bytes")) != "16000000000") return "another memory";
    if (std::string(device->get_property("dollars_per_hour")) != "1.5") return "another price";
    if (!device->get_disks().empty() || cpu->get_disks().size() != 1) return "another number of disks";
    return cpu->get_disks()[0]->get_read_bandwidth() == 2e9 ? "" : "another disk";
  }));
}

TEST_CASE("links have names that say where they are", "[platforms]") {
  const auto names_of = [](const std::string& platform, int from, int to) {
    const Topology topology(platform_file(platform));
    return names(topology, route_between(topology, from, to));
  };
  using Names = std::vector<std::string>;
  CHECK(names_of("dgx1v", 24, 25) == Names{"node3.nvlink.0-1"});
  CHECK(names_of("dgx1v", 0, 8 * 15) == Names{"node0.bus.0-switch0", "node0.nic.0.up", "leaf0.cable.12.up",
                                              "leaf3.cable.12.down", "node15.nic.0.down",
                                              "node15.bus.switch0-0"});
}

TEST_CASE("a flow between two endpoints takes their route, and equal endpoints take no time", "[sim]") {
  const Platform platform = platform_of(4, FatTreeShape{});  // NICs of 1 GB/s
  const std::vector<double> ends = numbers_from_child(4, [&] {
    Engine engine{FlowLinks{LinkBandwidths(platform)}};
    std::vector<double> dates(4);
    engine.at(1, [&] {
      const EndpointPair pairs[] = {{0, 1}, {2, 1}, {3, 2}, {3, 3}};
      for (std::size_t i = 0; i < dates.size(); ++i)
        engine.start_flow(pairs[i], {1e9}, [&, i] { dates[i] = engine.now(); });
    });
    engine.run();
    return dates;
  });
  CHECK(ends[0] == Approx(3).epsilon(1e-12));
  CHECK(ends[1] == Approx(3).epsilon(1e-12));
  CHECK(ends[2] == Approx(2).epsilon(1e-12));
  CHECK(ends[3] == 1);
}

TEST_CASE("a flow of more bytes than SimGrid counts is sent in parts, which share links as one", "[sim]") {
  const Platform platform = platform_of(4, FatTreeShape{});  // NICs of 1 GB/s
  const std::vector<double> ends = numbers_from_child(2, [&] {
    Engine engine{FlowLinks{LinkBandwidths(platform)}};
    std::vector<double> dates(2);
    engine.at(0, [&] {
      engine.start_flow(EndpointPair{0, 1}, {100e9}, [&] { dates[0] = engine.now(); });
      engine.start_flow(EndpointPair{2, 1}, {20e9}, [&] { dates[1] = engine.now(); });
    });
    engine.run();
    return dates;
  });
  CHECK(ends[0] == Approx(120).epsilon(1e-12));
  CHECK(ends[1] == Approx(40).epsilon(1e-12));
}

}  // namespace stepcast::simgrid_platform_test
