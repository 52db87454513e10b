#include <unistd.h>

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "gpu/capture/step_forecast.hpp"
#include "models/layer_times/trace_text.hpp"

using namespace stepcast;

namespace {

struct Folder {
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "traces.XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path); }

  void add(const std::string& name, const std::string& model, std::int64_t batch, const std::string& device) {
    Trace trace;
    trace.name = name;
    trace.kind = Trace::Kind::captured;
    trace.model = model;
    trace.batch = batch;
    trace.precision = "f32";
    trace.device = device;
    trace.source = "made up";
    trace.notes = {"clock 1980 MHz"};
    trace.graph_step_seconds = {0.5, 0.25};
    trace.layers.resize(1);
    trace.layers[0].name = "layer";
    trace.layers[0].notes = "forward IMPLICIT_GEMM 1.0 MiB";
    trace.layers[0].forward.seconds = {1, 2, 3};
    write_atomically(path / (name + ".yaml"), to_yaml(trace));
  }

  std::filesystem::path path;
};

}  // namespace

TEST_CASE("traces of one model, precision and layout are found, with the notes of a GPU", "[gpu]") {
  Folder folder;
  folder.add("net-b16-f32-nchw-gpu", "net", 16, "H100");
  folder.add("net-b32-f32-nchw-gpu", "net", 32, "H100");
  folder.add("net-b32-f32-nhwc-gpu", "net", 32, "H100");
  folder.add("other-b8-f32-nchw-gpu", "other", 8, "H100");
  const TraceChoice choice{folder.path, "net", "f32", "nchw"};
  const std::vector<Trace> traces = read_traces(choice);
  REQUIRE(traces.size() == 2);
  CHECK(traces[0].batch + traces[1].batch == 48);
  CHECK(traces[0].notes == std::vector<std::string>{"clock 1980 MHz"});
  CHECK(traces[0].graph_step_seconds == std::vector<double>{0.5, 0.25});
  CHECK(traces[0].layers[0].notes == "forward IMPLICIT_GEMM 1.0 MiB");
  CHECK(models_in(choice) == std::vector<std::string>{"net"});  // the other model has only one trace
}

TEST_CASE("a folder without a fitting trace, or with two devices, is refused", "[gpu][errors]") {
  Folder folder;
  folder.add("net-b16-f32-nchw-gpu", "net", 16, "H100");
  folder.add("net-b32-f32-nchw-gpu", "net", 32, "A100");
  CHECK_THROWS_WITH(read_traces({folder.path, "net", "f32", "nchw"}),
                    Catch::Contains("from different devices, H100 and A100"));
  CHECK_THROWS_WITH(read_traces({folder.path, "net", "bf16", "nchw"}),
                    folder.path.string() + ": no capture of net with precision bf16 and layout nchw");
  CHECK_THROWS_WITH(read_traces({folder.path / "none", "net", "f32", "nchw"}),
                    Catch::Contains("cannot read"));
}
