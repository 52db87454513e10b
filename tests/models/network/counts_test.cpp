#include <catch2/catch.hpp>

#include "models/cost/cost.hpp"
#include "read_text.hpp"

using namespace stepcast;

TEST_CASE("shipped networks have the published counts", "[models]") {
  struct Case {
    std::string name;
    std::int64_t trainable, all, tensors;
  };
  const auto published = GENERATE(values<Case>({
      {"resnet50", 25'557'032, 25'610'152, 161},
      {"vgg16", 138'357'544, 138'357'544, 32},
      {"alexnet", 61'842'345, 61'842'345, 16},
      {"mesh-1k", 34'418'688, 34'438'912, 91},  // with batch-norm scale and shift
      {"mesh-2k", 12'387'584, 12'396'800, 55},
      {"mesh-512", 34'418'688, 34'438'912, 91},
      {"chen-huo-dnn", 62'944'850, 62'944'850, 16},
      {"chen-huo-dblstm", 11'705'432, 11'705'432, 17},
      {"distbelief-speech", 41'777'152, 41'777'152, 10},
      {"gan-generator", 872'808, 872'948, 13},
      {"gan-discriminator", 73'402, 73'450, 18},
      {"3dgan", 872'808 + 73'402, 872'948 + 73'450, 31},
      {"nnlo-gru", 45'955, 45'955, 13},
      {"small-cnn", 600'810, 600'810, 8},
      {"small-mlp", 784 * 1024 + 1024 + 1024 * 1024 + 1024 + 10250, 1'863'690, 6},
      {"small-mesh", 108'976, 109'136, 16},
      {"small-transformer", 121'162, 121'162, 30},
      {"small-language-model", 108'288, 108'288, 27},
      {"small-experts", 350'922, 350'922, 28},
      {"gpt2-small", 124'439'808 - 1024 * 768, 124'439'808 - 1024 * 768, 147},  // no table of positions
  }));
  CAPTURE(published.name);
  const Model model = shipped_model(published.name);
  CHECK(model.name == published.name);
  CHECK(trainable_parameters(model) == published.trainable);
  CHECK(all_parameters(model) == published.all);
  CHECK(gradient_tensors(model) == published.tensors);
}

TEST_CASE("networks with published totals come close to them", "[models]") {
  CHECK(trainable_parameters(shipped_model("distbelief-image")) / 1e9 == Approx(1.7).epsilon(0.005));
  CHECK(trainable_parameters(shipped_model("seide-dnn")) / 1e6 == Approx(46).epsilon(0.005));
  CHECK(trainable_parameters(shipped_model("chen-huo-dnn")) / 1e6 == Approx(63).epsilon(0.005));
}

TEST_CASE("the forward work of shipped networks equals the published totals", "[models]") {
  struct Case {
    std::string name;
    double flops, tolerance;  // half of the last published digit, where rounded
  };
  const auto published = GENERATE(values<Case>({
      {"resnet50", 8'178'368'512, 0},
      {"vgg16", 30'940'528'640, 0},
      {"mesh-1k", 2'365'453'238'272, 0},
      {"mesh-2k", 1'895'456'309'248, 0},
      {"mesh-512", 2'365'453'238'272.0 / 4, 0},
      {"gan-generator", 511.4e6, 1e6},
      {"gan-discriminator", 1569.7e6, 1e6},
      {"distbelief-speech", 83.5e6, 0.05e6},
      {"chen-huo-dnn", 0.126e9, 0.0005e9},
      {"chen-huo-dblstm", 106 * 23e6, 106 * 0.5e6},
  }));
  CAPTURE(published.name);
  CHECK(forward_flops(shipped_model(published.name)).value ==
        Approx(published.flops).margin(published.tolerance));
}
