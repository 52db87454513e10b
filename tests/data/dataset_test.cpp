#include "data/dataset.hpp"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.hpp"
#include "data/train_and_test.hpp"

namespace stepcast {
namespace {

/// A data set whose sample i is the number i.
class Numbers : public Dataset {
 public:
  explicit Numbers(std::int64_t count) : count_(count) {}
  std::int64_t samples() const override { return count_; }
  void read(std::int64_t sample, std::span<float> input, std::span<float> targets) const override {
    input[0] = sample;
    targets[0] = -sample;
  }

 private:
  std::int64_t count_;
};

const SampleForm kForm{{1}, {1}, 0};

}  // namespace

TEST_CASE("several workers together take the samples of one worker with the whole batch", "[data]") {
  const std::int64_t samples = GENERATE(24, 30, 31);
  const Numbers data(samples);
  Batches alone(data, kForm, {.worker = 0, .workers = 1, .batch = 12});
  std::vector<Batches> three;
  for (int worker = 0; worker < 3; ++worker)
    three.emplace_back(data, kForm, Batches::Split{.worker = worker, .workers = 3, .batch = 4});
  for (int step = 0; step < 7; ++step) {
    std::vector<float> inputs, targets;
    for (Batches& worker : three) {
      const Batches::Batch& batch = worker.next();
      inputs.insert(inputs.end(), batch.inputs.begin(), batch.inputs.end());
      targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
    }
    const Batches::Batch& whole = alone.next();
    CHECK(inputs == whole.inputs);
    CHECK(targets == whole.targets);
    CHECK(inputs[0] == step * 12 % samples);
  }
}

TEST_CASE("restart begins with the first mini-batch again", "[data]") {
  const Numbers data(10);
  Batches batches(data, kForm, {.batch = 5});
  int beats = 0;
  batches.prepare(3, [&beats] { ++beats; });
  CHECK(beats == 3);
  batches.next();
  batches.restart();
  CHECK(batches.next().inputs == std::vector<float>{0, 1, 2, 3, 4});
}

namespace {

struct Case {
  DataOptions::Kind kind;
  SampleForm form;
};

std::vector<Case> cases() {
  using Kind = DataOptions::Kind;
  return {{Kind::images, {{1, 12, 10}, {1}, 4}},
          {Kind::mesh, {{2, 16, 16}, {1, 4, 4}, 2}},
          {Kind::sequences, {{20, 3}, {1}, 3}},
          {Kind::showers, {{1, 8, 6, 6}, {1}, 2}}};
}

struct Sample {
  std::vector<float> input, targets;

  friend bool operator==(const Sample&, const Sample&) = default;
};

Sample sample_of(const Dataset& data, const SampleForm& form, std::int64_t number) {
  Sample sample{std::vector<float>(sample_numbers(form.input)),
                std::vector<float>(sample_numbers(form.targets))};
  data.read(number, sample.input, sample.targets);
  return sample;
}

}  // namespace

TEST_CASE("a generated sample is always the same, and no two samples are equal", "[data]") {
  for (const Case& one : cases()) {
    CAPTURE(ordinal(one.kind));
    DataOptions options;
    options.kind = one.kind;
    options.samples = 6;
    options.test_samples = 3;
    const TrainAndTest data = make_data(options, one.form), again = make_data(options, one.form);
    CHECK(data.train->samples() == 6);
    CHECK(data.test->samples() == 3);
    std::vector<Sample> all;
    for (int i = 0; i < 6; ++i) all.push_back(sample_of(*data.train, one.form, i));
    for (int i = 0; i < 3; ++i) all.push_back(sample_of(*data.test, one.form, i));
    CHECK(sample_of(*again.train, one.form, 4) == all[4]);
    CHECK(sample_of(*data.train, one.form, 0) == all[0]);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) CHECK(all[i].input != all[k].input);
    }
    options.seed = 2;
    CHECK(!(sample_of(*make_data(options, one.form).train, one.form, 4) == all[4]));
  }
}

TEST_CASE("generated labels are classes of about equal frequency", "[data]") {
  for (const Case& one : cases()) {
    CAPTURE(ordinal(one.kind));
    DataOptions options;
    options.kind = one.kind;
    options.samples = 600;
    const auto data = make_data(options, one.form).train;
    std::map<float, int> count;
    int all = 0;
    for (int i = 0; i < 600; ++i) {
      for (const float label : sample_of(*data, one.form, i).targets) {
        ++count[label];
        ++all;
      }
    }
    CHECK(std::ssize(count) == one.form.classes);
    for (const auto& [label, times] : count) {
      CAPTURE(label);
      CHECK(label >= 0);
      CHECK(label < static_cast<float>(one.form.classes));
      CHECK(times > 0.6 * all / static_cast<double>(one.form.classes));
    }
  }
}

TEST_CASE("a task that does not fit the network is refused with the networks that it needs", "[data]") {
  DataOptions options;
  CHECK_THROWS_WITH(
      make_data(options, {{5}, {1}, 3}),
      "data: images needs a network with an input of [channels, height, width] and one class a sample");
  options.kind = DataOptions::Kind::showers;
  CHECK_THROWS_WITH(
      make_data(options, {{1, 4, 4}, {1}, 2}),
      "data: showers needs a network with an input of [channels, depth, height, width] and yes or no "
      "for each sample");
}

namespace {

/// A temporary folder.
class TestFolder {
 public:
  TestFolder()
      : path_(std::filesystem::temp_directory_path() / ("stepcast-data-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  TestFolder(const TestFolder&) = delete;
  ~TestFolder() { std::filesystem::remove_all(path_); }

  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }
  std::string name(const std::string& file) const { return (path_ / file).string(); }

 private:
  std::filesystem::path path_;
};

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string images(std::uint32_t count, const std::string& pixels) {
  return big_endian(0x803) + big_endian(count) + big_endian(2) + big_endian(3) + pixels;
}

std::string labels(const std::string& values) {
  return big_endian(0x801) + big_endian(values.size()) + values;
}

const std::string kPixels("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\xff", 12);
const SampleForm kSampleForm{{1, 2, 3}, {1}, 10};

DataOptions idx(const TestFolder& folder, const std::string& image_bytes, const std::string& label_bytes) {
  DataOptions options;
  options.kind = DataOptions::Kind::idx;
  options.train = options.test = {folder.file("images", image_bytes)};
  options.train_labels = options.test_labels = {folder.file("labels", label_bytes)};
  return options;
}

std::string floats(const std::vector<float>& values) {
  std::string bytes(sizeof(float) * values.size(), 0);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

TEST_CASE("IDX files give pixels from 0 to 1 and labels", "[data]") {
  const TestFolder folder;
  const auto data = make_data(idx(folder, images(2, kPixels), labels("\x07\x03")), kSampleForm).train;
  REQUIRE(data->samples() == 2);
  std::vector<float> input(6), target(1);
  data->read(1, input, target);
  CHECK(target[0] == 3);
  CHECK(input[0] == 6.0F / 255);
  CHECK(input[5] == 1);
}

TEST_CASE("invalid IDX files are refused with a message of one line", "[data]") {
  const TestFolder folder;
  const auto problem = [&](const std::string& image_bytes, const std::string& label_bytes) {
    try {
      make_data(idx(folder, image_bytes, label_bytes), kSampleForm);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string good_labels = labels("\x07\x03");
  const std::string at_images = folder.name("images"), at_labels = folder.name("labels");
  CHECK(problem(images(2, kPixels), good_labels).empty());
  CHECK(problem("", good_labels) == at_images + ": ends at byte 0, expected 4 more");
  CHECK(problem("\x1f\x8b\x08\x08" + kPixels, good_labels) ==
        at_images +
            ": expected an IDX file that begins with 0x00000803, got 0x1f8b0808 (compressed; run gunzip on "
            "it)");
  CHECK(problem(images(2, kPixels.substr(1)), good_labels) ==
        at_images + ": expected 28 bytes by its header, got 27");
  CHECK(problem(images(0xffffffff, kPixels), good_labels) ==
        at_images + ": expected 25769803786 bytes by its header, got 28");
  CHECK(problem(big_endian(0x803) + big_endian(2) + big_endian(0x80000000) + big_endian(2) + kPixels,
                good_labels) ==
        at_images + ": expected images of 6 pixels, which is the input of the network, got 2147483648 x 2");
  CHECK(problem(images(0, ""), labels("")) == at_images + ": expected at least one image, got none");
  CHECK(problem(images(2, kPixels), labels("\x07")) ==
        at_labels + ": expected 2 labels, one for each image of " + at_images + ", got 1");
  CHECK(problem(images(2, kPixels), labels("\x07\x0a")) ==
        at_labels + ": label 1: expected a class from 0 to 9, got 10");
}

TEST_CASE("CIFAR-10's binary files are one set", "[data]") {
  const TestFolder folder;
  std::string one(3073, '\x02'), other(2 * 3073, '\xff');
  other[0] = other[3073] = '\x09';
  other[3073 + 1] = '\x33';
  DataOptions options;
  options.kind = DataOptions::Kind::cifar10;
  options.train = {folder.file("one.bin", one), folder.file("other.bin", other)};
  options.test = {options.train[0]};
  const SampleForm form{{3, 32, 32}, {1}, 10};
  const auto data = make_data(options, form).train;
  REQUIRE(data->samples() == 3);
  std::vector<float> input(3072), target(1);
  data->read(2, input, target);
  CHECK(target[0] == 9);
  CHECK(input[0] == 51.0F / 255);
  CHECK(input[1] == 1);

  options.train = {folder.file("short.bin", one + "x")};
  CHECK_THROWS_WITH(make_data(options, form),
                    folder.name("short.bin") + ": expected samples of 3073 bytes each, got 3074 bytes");
  options.train = {folder.file("wrong.bin", std::string(3073, '\x0a'))};
  const auto wrong = make_data(options, form).train;
  CHECK_THROWS_WITH(wrong->read(0, input, target),
                    folder.name("wrong.bin") + ": label of sample 0: expected a class from 0 to 9, got 10");
  CHECK_THROWS_WITH(make_data(options, kSampleForm),
                    "data: cifar10 needs a network with an input of [3, 32, 32]");
  options.train = {folder.name("missing")};
  CHECK_THROWS_WITH(make_data(options, form), folder.name("missing") + ": No such file or directory");
}

TEST_CASE("the folds hold out every training sample once, and train on the others", "[data]") {
  const TestFolder folder;
  const int samples = GENERATE(9, 10, 11);
  std::vector<float> numbers;
  for (int i = 0; i < samples; ++i) numbers.insert(numbers.end(), {static_cast<float>(i), 0});
  DataOptions options;
  options.kind = DataOptions::Kind::raw;
  options.folds = 3;
  options.train = options.test = {folder.file("folds", floats(numbers))};
  const SampleForm form{{1}, {1}, 0};
  const auto inputs = [](const Dataset& data) {
    std::vector<float> all(data.samples());
    float target = 0;
    for (std::size_t i = 0; i < all.size(); ++i)
      data.read(i, std::span(all).subspan(i, 1), std::span(&target, 1));
    return all;
  };
  std::vector<float> held_out;
  for (options.fold = 0; options.fold < 3; ++options.fold) {
    const TrainAndTest data = make_data(options, form);
    std::vector<float> both = inputs(*data.train);
    for (const float one : inputs(*data.test)) {
      both.push_back(one);
      held_out.push_back(one);
    }
    std::ranges::sort(both);
    CHECK(std::ssize(both) == samples);
    CHECK(std::ranges::adjacent_find(both) == both.end());  // no sample is both trained on and held out
  }
  CHECK(std::ssize(held_out) == samples);
  options.fold = 0;
  options.folds = 12;
  CHECK_THROWS_WITH(make_data(options, form),
                    "data: expected at least 12 samples, one for each fold, got " + std::to_string(samples));
}

TEST_CASE("raw files hold inputs and targets as floats", "[data]") {
  const TestFolder folder;
  DataOptions options;
  options.kind = DataOptions::Kind::raw;
  options.train = options.test = {folder.file("raw", floats({1, 2, 0.5F, 3, 4, -7}))};
  const SampleForm numbers{{2}, {1}, 0};
  const auto data = make_data(options, numbers).train;
  REQUIRE(data->samples() == 2);
  std::vector<float> input(2), target(1);
  data->read(1, input, target);
  CHECK(input == std::vector<float>{3, 4});
  CHECK(target[0] == -7);
  const auto classes = make_data(options, {{2}, {1}, 2}).train;
  CHECK_THROWS_WITH(classes->read(0, input, target),
                    folder.name("raw") + ": label of sample 0: expected a class from 0 to 1, got 0.5");
  options.train = {folder.file("nan", floats({1, 2, 3, std::nanf(""), 5, 6}))};
  const auto broken = make_data(options, numbers).train;
  broken->read(0, input, target);
  CHECK_THROWS_WITH(broken->read(1, input, target),
                    folder.name("nan") + ": sample 1: expected finite numbers, got one that is not");
}
}  // namespace stepcast
