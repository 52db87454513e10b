#include "platforms/software.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "tests/platforms/built_platforms.hpp"

using namespace stepcast;

namespace {

Software read(const std::string& text, const std::string& device = "v100-sxm2-16gb", bool nic_nearby = true) {
  const YamlNode root = parse_yaml(text, "f.yaml");
  return read_software(YamlValue(root, "software"), shipped_device(device), nic_nearby);
}

std::string error_of(const std::string& text, const std::string& device = "v100-sxm2-16gb") {
  try {
    read(text, device);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a version of NCCL is all that software needs", "[platforms]") {
  const Software software = read("{nccl: \"2.18.3\"}");
  CHECK(software.nccl == 218);
  CHECK(software.compute_capability == 70);
  CHECK(software.gpudirect);
  CHECK(software.trees);
  CHECK_FALSE(software.nvls);
  CHECK_FALSE(software.one_process);
  CHECK_FALSE(read("{nccl: \"2.8\"}", "v100-sxm2-16gb", false).gpudirect);
  CHECK_FALSE(read("{nccl: \"2.8\", transport: sockets}").gpudirect);
  CHECK(read("{nccl: \"2.18\"}", "h100-sxm").nvls);
  CHECK_FALSE(read("{nccl: \"2.16\"}", "h100-sxm").nvls);
  CHECK(software.peer_to_peer);
  const Software without = read("{nccl: \"2.18\", p2p: false, nvls: true}", "h100-sxm");
  CHECK_FALSE(without.peer_to_peer);
  CHECK_FALSE(without.nvls);  // SHARP needs peer access
}

TEST_CASE("software states what NCCL finds on the machine", "[platforms]") {
  const Software software = read(
      "{nccl: \"2.8\", compute_capability: 8.6, cpu: amd, gpudirect: false, staging: {value: 5 GB/s, source: "
      "s}, "
      "trees: false, processes: one_a_node, source: s}");
  CHECK(software.compute_capability == 86);
  CHECK(software.cpu == Software::Cpu::amd);
  CHECK(software.staging.value == 5e9);
  CHECK_FALSE(software.trees);
  CHECK(software.one_process);
}

TEST_CASE("connections over sockets have threads of their own from 2.4.8 on", "[platforms]") {
  CHECK(read("{nccl: \"2.3\"}").socket_threads == 0);
  CHECK(read("{nccl: \"2.4\"}").socket_threads == 0);
  CHECK(read("{nccl: \"2.4.7\"}").socket_threads == 0);
  CHECK(read("{nccl: \"2.4.8\"}").socket_threads == 1);
  CHECK(read("{nccl: \"2.5\"}").socket_threads == 1);
  CHECK(read("{nccl: \"2.12\", transport: sockets, socket_threads: 4}").socket_threads == 4);
  CHECK(error_of("{nccl: \"2.12\", socket_threads: 4}").find("only valid with transport: sockets") !=
        std::string::npos);
  CHECK(error_of("{nccl: \"2.4.2\", transport: sockets, socket_threads: 4}").find("from NCCL 2.4.8 on") !=
        std::string::npos);
}

TEST_CASE("RCCL follows NCCL's rules with the constants of Ampere", "[platforms]") {
  const Software software = read("{rccl: \"2.18\", transport: plugin, gpudirect: true}", "mi250x-gcd");
  CHECK(software.nccl == 218);
  CHECK(software.compute_capability == 80);
  CHECK(library_text(software) == "RCCL 2.18");
  CHECK(library_text(read("{nccl: \"2.8\"}")) == "NCCL 2.8");
  CHECK(error_of("{nccl: \"2.8\", rccl: \"2.8\"}") ==
        "f.yaml:1:21: software.rccl: only valid without the key nccl");
}

TEST_CASE("wrong software is refused with its place", "[platforms][errors]") {
  CHECK(error_of("{nccl: \"1.3\"}") ==
        "f.yaml:1:8: software.nccl: expected a version of NCCL from 2.0 on, in quotes, such as \"2.18\", got "
        "\"1.3\"");
  CHECK(error_of("{nccl: \"2.x\"}").find("expected a version of NCCL") != std::string::npos);
  CHECK(error_of("{cpu: amd}") ==
        "f.yaml:1:1: software.nccl: missing (expected a version in quotes, such as \"2.18\")");
  CHECK(error_of("{nccl: \"2.8\"}", "cpu-core").find("give a number such as 7.0") != std::string::npos);
  CHECK(error_of("{nccl: \"2.8\", staging: 5 GB/s}").find("only valid with gpudirect: false") !=
        std::string::npos);
  CHECK(error_of("{nccl: \"2.8\", transport: tcp}").find("expected one of") != std::string::npos);
}
