#include "commands/predict_real.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "report/atomic_file.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

/// Two stages that wait for each other. @return mean compute of their forecast's step
/// @param message_host  seconds of processor time that a message out and one in took, where that was measured
double forecast_compute(const std::string& jitter, double message_host) {
  const TemporaryFolder folder;
  const auto scenario = folder.path() / "scenario.yaml";
  write_atomically(scenario, fmt::format("name: stages\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\n"
                                         "platform: this-machine\nbatch_per_worker: 64\nworkers: 2\n"
                                         "strategy: {{kind: pipeline, stages: 2, micro_batches: 1, "
                                         "schedule: naive}}\nnoise: {{jitter: {}}}\n"
                                         "simulation: {{steps: 20}}\n",
                                         jitter));
  const ValidationOptions options{.scenario = scenario.string(), .settings = {}};
  const Validation validation = read_validation(options, 2);
  const std::string trace = read_file(STEPCAST_SOURCE_DIR "/models/traces/small-cnn-b64-cpu.yaml");
  write_atomically(trace_file(folder.path(), validation.needs.at(0)), trace);
  for (const char* bytes : {"1024", "1048576"})
    append_line(folder.path() / "links.jsonl",
                fmt::format("{{\"what\":\"all_reduce\",\"algorithm\":\"ring\",\"bytes\":{},\"seconds\":1e-4,"
                            "\"cpu_seconds\":0}}",
                            bytes));
  append_line(folder.path() / "links.jsonl",
              fmt::format("{{\"what\":\"message_host\",\"bytes\":1,\"seconds\":0,\"cpu_seconds\":{}}}\n"
                          "{{\"what\":\"message_host\",\"bytes\":1e9,\"seconds\":0,\"cpu_seconds\":{}}}",
                          message_host, message_host));
  const Cluster cluster{.ranks = 2};
  const Results predicted = predict_real(validation, options, cluster, folder.path(), [] {});
  return *predicted.rows.at(0).number("compute_seconds");
}

}  // namespace

TEST_CASE("what messages between stages cost the cores is in the forecast, with and without jitter",
          "[commands]") {
  // Either stage sends one and receives one: a half of message_host each.
  CHECK(forecast_compute("none", 0.02) - forecast_compute("none", 0) == Approx(0.02));
  CHECK(forecast_compute("trace", 0.02) - forecast_compute("trace", 0) == Approx(0.02));
}
