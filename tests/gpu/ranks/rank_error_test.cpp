#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "gpu/ranks/gpu_rank.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast {

TEST_CASE("the first error of a rank is the one that is kept", "[gpu-ranks][faults]") {
  const TemporaryFolder folder;
  RankOptions options;
  options.rank = 1;
  options.folder = folder.path().string();
  write_rank_error(options, std::runtime_error("an illegal memory access"));
  write_rank_error(options, RankLost("rank 1 gave up"));
  CHECK(read_file(folder.path() / "rank-1.error") == "fault an illegal memory access\n");
  CHECK(entries(folder.path()) == 1);
}

}  // namespace stepcast
