#include "models/cost/allocator/caching_allocator.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

using namespace stepcast;

namespace {

constexpr double kMiB = 0x1p20;

Bytes mib(double count) {
  return {count * kMiB};
}

/// The same allocator as a list of segments, each a list of free or taken parts in order of address, which
/// is searched from the beginning.
class SlowAllocator {
 public:
  int allocate(double bytes) {
    const double size = allocated_block({bytes}).value;
    const bool small = size <= kMiB;
    Part* best = nullptr;
    std::vector<Part>* where = nullptr;
    for (auto& segment : segments_) {
      for (Part& part : segment) {
        const bool fits = part.owner < 0 && part.small == small && part.size >= size;
        if (fits && (best == nullptr || part.size < best->size)) {
          best = &part;
          where = &segment;
        }
      }
    }
    if (best == nullptr) {
      const double whole = small              ? 2 * kMiB
                           : size < 10 * kMiB ? 20 * kMiB
                                              : std::ceil(size / kMiB / 2) * 2 * kMiB;
      segments_.push_back({{whole, -1, small}});
      where = &segments_.back();
      best = &where->front();
    }
    const double rest = best->size - size;
    best->owner = next_;
    if (small ? rest >= 512 : rest > kMiB) {
      best->size = size;
      where->insert(where->begin() + (best - where->data()) + 1, {rest, -1, small});
    }
    return next_++;
  }

  void free(int owner) {
    for (auto& segment : segments_) {
      for (Part& part : segment) part.owner = part.owner == owner ? -1 : part.owner;
      for (std::size_t i = segment.size(); i-- > 1;) {
        if (segment[i].owner >= 0 || segment[i - 1].owner >= 0) continue;
        segment[i - 1].size += segment[i].size;
        segment.erase(segment.begin() + i);
      }
    }
  }

  double allocated() const {
    return sum([](const Part& part, bool) { return part.owner >= 0; });
  }
  double reserved() const {
    return sum([](const Part&, bool) { return true; });
  }
  double in_use() const {
    return sum([](const Part&, bool used) { return used; });
  }

 private:
  struct Part {
    double size = 0;
    int owner = -1;
    bool small = false;
  };

  template <class Counts>
  double sum(const Counts& counts) const {
    double bytes = 0;
    for (const auto& segment : segments_) {
      const bool used =
          std::any_of(segment.begin(), segment.end(), [](const Part& p) { return p.owner >= 0; });
      for (const Part& part : segment) bytes += counts(part, used) ? part.size : 0;
    }
    return bytes;
  }

  std::vector<std::vector<Part>> segments_;
  int next_ = 0;
};

}  // namespace

TEST_CASE("tensors share segments of 2 and of 20 MiB, and those of 10 MiB and more have their own",
          "[models]") {
  CachingAllocator allocator;
  CHECK(allocator.allocate({0}) == CachingAllocator::kNoBlock);
  allocator.allocate({1});
  CHECK(allocator.allocated() == Bytes{512});
  CHECK(allocator.reserved() == mib(2));
  allocator.allocate(mib(1));
  CHECK(allocator.reserved() == mib(2));
  allocator.allocate(mib(1.5));
  allocator.allocate(mib(9));
  CHECK(allocator.reserved() == mib(22));
  allocator.allocate(mib(10.5));
  CHECK(allocator.reserved() == mib(34));
  CHECK(allocator.in_use() == allocator.reserved());
}

TEST_CASE("a freed segment holds a tensor that is not larger, and no larger one", "[models]") {
  CachingAllocator allocator;
  const auto first = allocator.allocate(mib(12));
  const auto second = allocator.allocate(mib(14));
  allocator.free(first);
  allocator.free(second);
  CHECK(allocator.allocated() == Bytes{});
  CHECK(allocator.in_use() == Bytes{});
  CHECK(allocator.reserved() == mib(26));
  allocator.allocate(mib(26));  // 12 and 14 MiB are two segments
  CHECK(allocator.reserved() == mib(52));
  allocator.allocate(mib(11));  // of the 12
  CHECK(allocator.in_use() == mib(38));
  allocator.allocate(mib(1.5));  // less than 1 MiB remained of the 12
  CHECK(allocator.in_use() == mib(52));
  CHECK(allocator.reserved() == mib(52));
}

TEST_CASE("the caching allocator does what a slow search over all segments does", "[models]") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    CachingAllocator allocator;
    SlowAllocator slow;
    std::vector<std::pair<CachingAllocator::Block, int>> live;
    for (int step = 0; step < 400; ++step) {
      if (live.empty() || random() % 5 < 3) {
        const double bytes = 1 + (random() % 4096) * (random() % 3 == 0 ? 300.0 : 9000.0);
        live.emplace_back(allocator.allocate({bytes}), slow.allocate(bytes));
      } else {
        const std::size_t which = random() % live.size();
        allocator.free(live[which].first);
        slow.free(live[which].second);
        live.erase(live.begin() + which);
      }
      REQUIRE(allocator.allocated() == Bytes{slow.allocated()});
      REQUIRE(allocator.in_use() == Bytes{slow.in_use()});
      REQUIRE(allocator.reserved() == Bytes{slow.reserved()});
    }
    for (const auto& [block, owner] : live) allocator.free(block);
    CHECK(allocator.allocated() == Bytes{});
    CHECK(allocator.in_use() == Bytes{});
  }
}
