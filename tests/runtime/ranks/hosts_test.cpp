#include "runtime/ranks/hosts.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast::hosts_test {
namespace {

/// The error text of a hostfile, without the folder.
std::string error_of(const std::string& text) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "hosts";
  write_atomically(file, text);
  try {
    read_hosts(file);
  } catch (const InputError& error) {
    return std::string(error.what()).substr(folder.path().string().size() + 1);
  }
  return "";
}

std::string bind_error(const std::string& text) {
  try {
    read_bind_address(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a hostfile names hosts, slots and addresses", "[validate]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "hosts";
  write_atomically(file,
                   "# a comment\n\nnode-1.lan slots=4  # another\nnode_2\taddress=10.0.0.2 slots=2\r\n");
  const std::vector<Host> hosts = read_hosts(file);
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0].name == "node-1.lan");
  CHECK(hosts[0].slots == 4);
  CHECK(hosts[0].address.empty());
  CHECK(hosts[1].name == "node_2");
  CHECK(hosts[1].slots == 2);
  CHECK(hosts[1].address == "10.0.0.2");
}

TEST_CASE("a hostfile is refused with its place", "[validate][errors]") {
  CHECK(error_of("") == "hosts:1:1: expected a host, got an empty file");
  CHECK(error_of("a\n-oProxyCommand=x\n") ==
        "hosts:2:1: expected a host name of letters, digits, '.', '_' and '-', got \"-oProxyCommand=x\"");
  CHECK(error_of("a;reboot\n") ==
        "hosts:1:1: expected a host name of letters, digits, '.', '_' and '-', got \"a;reboot\"");
  CHECK(error_of("a slots=\n") == "hosts:1:3: expected slots=1 to slots=64, got \"slots=\"");
  CHECK(error_of("a slots=65\n") == "hosts:1:3: expected slots=1 to slots=64, got \"slots=65\"");
  CHECK(error_of("a slots=40\nb slots=40\n") ==
        "hosts:2:1: expected at most 64 slots in all, those of this host included, got \"b\"");
  CHECK(error_of("a  address=0.0.0.0\n") ==
        "hosts:1:4: expected address=IPV4, the address of one interface, got \"address=0.0.0.0\"");
  CHECK(error_of("a cores=2\n") == "hosts:1:3: expected slots=N or address=IPV4, got \"cores=2\"");
}

TEST_CASE("ranks meet at the address of one interface", "[validate][errors]") {
  CHECK(read_bind_address("10.0.0.1").port == 0);
  CHECK(read_bind_address("10.0.0.1:29500").port == 29500);
  CHECK(read_bind_address("10.0.0.1:29500").address == "10.0.0.1");
  for (const char* text :
       {"0.0.0.0", "0.0.0.0:29500", "node1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", ""})
    CHECK(bind_error(text) ==
          std::string("--bind: expected ADDRESS or ADDRESS:PORT with the IPv4 address of one "
                      "interface, got \"") +
              text + "\"");
}

}  // namespace stepcast::hosts_test
