#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "core/error.hpp"
#include "core/random.hpp"
#include "core/yaml.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"
#include "platforms/platform.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

constexpr std::uint64_t kSeed = 20261121;
constexpr std::uint32_t kMutants = 2000;

struct Original {
  std::string name, text;
  std::function<void(const std::string& text)> read;
};

void add(std::vector<Original>& originals, const std::filesystem::path& file,
         const std::function<void(const std::string&)>& read) {
  std::ifstream in(file);
  originals.push_back({file.filename().string(), {std::istreambuf_iterator<char>(in), {}}, read});
}

std::vector<Original> originals_of(const std::filesystem::path& scratch) {
  const std::filesystem::path root = STEPCAST_SOURCE_DIR;
  const auto reader = [](auto read) {
    return [read](const std::string& text) { read(YamlValue(parse_yaml(text, "mutant.yaml"), "")); };
  };
  const auto scenario = [scratch](const std::string& text) {
    std::ofstream(scratch / "mutant.yaml", std::ios::binary) << text;
    read_scenario(scratch / "mutant.yaml", {});
  };
  std::vector<Original> originals;
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"scenarios", "platforms"}) {
    for (const auto& entry : std::filesystem::directory_iterator(root / folder)) {
      if (entry.path().extension() == ".yaml") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    const bool platform = file.parent_path().filename() == "platforms";
    platform ? add(originals, file, reader([](const YamlValue& value) { Library().platform(value); }))
             : add(originals, file, scenario);
  }
  add(originals, root / "models/small-cnn.yaml", reader([](const YamlValue& value) { read_model(value); }));
  add(originals, root / "models/resnet50.yaml", reader([](const YamlValue& value) { read_model(value); }));
  return originals;
}

/// Makes 1 to 4 changes: a byte replaced, removed or inserted, a range doubled or removed, digits repeated.
std::string mutant_of(std::string text, std::uint32_t mutant) {
  std::uint32_t item = 0;
  const auto draw = [&](std::size_t count) {
    return uniform_index({kSeed, Purpose::data, mutant, 0, item++}, count);
  };
  static const std::string likely = "{}[]:,-#&*!|>'\"% \n\t0123456789.eE~\\\x01\x80\xff";
  for (std::size_t change = 0, changes = 1 + draw(4); change < changes && !text.empty(); ++change) {
    const std::size_t at = draw(text.size()), length = 1 + draw(40);
    const char byte = draw(2) == 0 ? likely[draw(likely.size())] : static_cast<char>(draw(256));
    switch (draw(6)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.erase(at, 1);
        break;
      case 2:
        text.insert(at, 1, byte);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.erase(at, length);
        break;
      default:
        text.insert(at, length, static_cast<char>('0' + draw(10)));
    }
  }
  return text;
}

/// Returns "read", "refused", or a description of the fault.
std::string outcome(const Original& original, const std::string& text) {
  try {
    original.read(text);
    return "read";
  } catch (const InputError&) {
    return "refused";
  } catch (const LimitError&) {
    return "refused";
  } catch (const std::exception& error) {
    return std::string("threw ") + error.what();
  }
}

}  // namespace

TEST_CASE("a damaged file is read or refused, never anything else", "[scenarios][errors]") {
  const TemporaryFolder folder;
  const auto originals = originals_of(folder.path());
  int read = 0, refused = 0;
  for (const Original& original : originals) REQUIRE(outcome(original, original.text) == "read");
  for (std::uint32_t mutant = 0; mutant < kMutants; ++mutant) {
    const Original& original = originals[mutant % originals.size()];
    const std::string what = outcome(original, mutant_of(original.text, mutant));
    INFO("seed " << kSeed << ", mutant " << mutant << " of " << original.name);
    if (what != "read" && what != "refused") FAIL_CHECK(what);
    ++(what == "read" ? read : refused);
  }
  CHECK(read >
        static_cast<int>(kMutants) / 20);  // changes in comments, sources and digits leave a file valid
  CHECK(refused > static_cast<int>(kMutants) / 4);
}
