#include "sim/simgrid/platform_file.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <simgrid/s4u.hpp>

#include "core/error.hpp"
#include "sim/simgrid/simgrid_host.hpp"
#include "tests/platforms/built_platforms.hpp"

namespace stepcast::platform_file_test {

namespace sg4 = simgrid::s4u;

namespace {

/// Compares the routes of a loaded platform with Topology's. Returns the first fault, or nothing.
std::string fault_of_loaded(const Platform& platform) {
  const Topology topology(platform);
  const sg4::Engine* engine = sg4::Engine::get_instance();
  const int count = simgrid_host_count(platform);
  if (static_cast<int>(engine->get_host_count()) != count) return "another number of hosts";
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      std::vector<sg4::Link*> links;
      double latency = 0;
      engine->host_by_name(topology.endpoint_name(from))
          ->route_to(engine->host_by_name(topology.endpoint_name(to)), links, &latency);
      const std::vector<int> route = route_between(topology, from, to);
      if (links.size() != route.size()) return "another number of links";
      if (std::abs(latency - topology.latency_of(route).value) > 1e-15) return "another latency";
      for (std::size_t i = 0; i < route.size(); ++i) {
        if (links[i]->get_name() != topology.dotted_link_name(route[i])) return "another link";
        if (links[i]->get_bandwidth() != topology.link(route[i]).bandwidth.value) return "another bandwidth";
      }
    }
  }
  return "";
}

/// Loads the file of a platform into SimGrid. @returns what is wrong with it, or nothing
std::string fault_of_file(const Platform& platform) {
  const std::string file = std::filesystem::temp_directory_path() / (std::to_string(getpid()) + ".xml");
  std::ofstream(file) << simgrid_platform_file(platform);
  std::string words[] = {"test", "--log=root.thresh:critical"};
  char* pointers[] = {words[0].data(), words[1].data()};
  int words_left = 2;
  sg4::Engine engine(&words_left, pointers);
  engine.load_platform(file);
  std::filesystem::remove(file);
  const sg4::Host* first = engine.host_by_name("node0.device0");
  const bool figures =
      first->get_speed() == 3e12 && std::string(first->get_property("memory_bytes")) == "16000000000";
  return figures ? fault_of_loaded(platform) : "other figures";
}

}  // namespace

TEST_CASE("a process of the next test", "[.][platform-file]") {
  const char* name = std::getenv("PLATFORM");
  if (name == nullptr) return;
  Platform platform = platform_file(name);
  platform.nodes = std::min(platform.nodes, 4);
  platform.device_peak = {3e12};
  platform.device_memory = {16e9};
  CHECK(fault_of_file(platform) == "");
}

// SimGrid 3.32 reads a file only with the first engine of a process: its parser then goes on using that one,
// which is freed. Tests that ran before in this process may have had engines, and forks of it inherit the
// pointer.
TEST_CASE("SimGrid loads the written platform file and finds stepcast's hosts, routes and figures", "[sim]") {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  for (const char* name : {"dgx1v", "summit", "frontier", "piz-daint", "titan", "two-sites", "minsky"}) {
    CAPTURE(name);
    CHECK(std::system(("PLATFORM=" + std::string(name) + " '" + self + "' '[platform-file]' -w NoTests >&2")
                          .c_str()) == 0);
  }
}

TEST_CASE("storage is a disk of its host, or one in each node", "[sim]") {
  const auto file_of = [](const std::string& name) {
    Platform platform = platform_file(name);
    platform.nodes = 2;
    return simgrid_platform_file(platform);
  };
  CHECK(file_of("dgx1v").find("<disk id=\"node1.disk\" read_bw=\"2000000000Bps\"") != std::string::npos);
  CHECK(file_of("summit").find("<disk id=\"storage.disk\"") != std::string::npos);
}

TEST_CASE("names with characters of XML are quoted", "[sim]") {
  Platform platform = platform_file("dgx1v");
  platform.nodes = 1;
  platform.name = "a<b";
  platform.device_name = "\"c&d\"";
  const std::string text = simgrid_platform_file(platform);
  CHECK(text.find("<zone id=\"a&lt;b\"") != std::string::npos);
  CHECK(text.find("value=\"&quot;c&amp;d&quot;\"") != std::string::npos);
}

TEST_CASE("a platform too large for a file of SimGrid is refused, with what would fit", "[errors]") {
  Platform platform = platform_file("dgx1v");
  platform.nodes = 45;
  CHECK_THROWS_WITH(
      simgrid_platform_file(platform),
      "dgx1v: expected at most 400 devices, CPUs and storage together in a file of SimGrid, which "
      "names the route of every two of them, got 406; --nodes 44 would fit");
  platform.nodes = 44;
  CHECK_FALSE(simgrid_platform_file(platform).empty());
}

}  // namespace stepcast::platform_file_test
