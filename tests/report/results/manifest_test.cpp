#include "report/results/manifest.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

TEST_CASE("sha256 gives the digests of FIPS 180-4", "[report]") {
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("manifest.json reads back to what was written", "[report]") {
  const TemporaryFolder folder;
  write_atomically(folder.path() / "a.yaml", "abc");
  const Manifest manifest{.version = "0.1.0",
                          .scenario = "goyal \"1h\"",
                          .date = "2026-01-02T03:04:05Z",
                          .command = {"stepcast", "run", "a b.yaml"},
                          .settings = {"sweep.workers=8..64"},
                          .seed = 18446744073709551615U,
                          .sweep = {"workers"},
                          .fidelities = {"coupled", "message"},
                          .inputs = {hashed("scenario", folder.path() / "a.yaml")}};
  const auto text = to_json(manifest);
  const auto read = read_manifest(text, "manifest.json");
  CHECK(to_json(read) == text);
  CHECK(read.settings == manifest.settings);
  CHECK(read.seed == manifest.seed);
  CHECK(read.command == manifest.command);
  CHECK(read.inputs.at(0).role == "scenario");
  CHECK(read.inputs.at(0).sha256 == sha256("abc"));
}

TEST_CASE("read_manifest refuses what is no manifest", "[report][errors]") {
  CHECK_THROWS_AS(read_manifest("{}", "manifest.json"), InputError);
  CHECK_THROWS_WITH(read_manifest("{", "m.json"),
                    Catch::StartsWith("m.json:1:1: expected a manifest of stepcast: "));
}
