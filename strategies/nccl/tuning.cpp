#include "strategies/nccl/tuning.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast {
namespace {

/// src/graph/tuning.cc of NCCL 2.5.6, of 2.8.4 (the same still in 2.17), of 2.20.3 (2.18 on) and of 2.28.3;
/// which version between 2.20 and 2.28 brought the last row was not looked up: 2.22 is assumed. Versions 2.3
/// and 2.4 have no such tables; they take those of 2.5, without LL128 and, in 2.3, without trees (release
/// notes of 2.4 and 2.5).
constexpr std::array kLatencies{
    NcclLatencies{203,
                  {4.4, 4.4, 0},
                  {3.6, 3.6, 8.4},
                  {.5, 1.9, 28},
                  {.4, 2.5, 5.7},
                  {1, 1.9, 28},
                  {1, 2.5, 5.7},
                  {5, 7.5, 50},
                  {.9, 2.5, 6.6}},
    NcclLatencies{206,
                  {4.4, 4.4, 0},
                  {3.6, 10, 8.4},
                  {.52, 1.25, 28},
                  {.47, 1.9, 3.4},
                  {1, 1.9, 28},
                  {1, 2.5, 5.7},
                  {5, 8.5, 28},
                  {2.7, 4, 9.6}},
    NcclLatencies{218,
                  {6.8, 14, 0},
                  {6.6, 14, 8.4},
                  {.6, 1.25, 28},
                  {.6, 1.9, 3.4},
                  {1, 1.9, 28},
                  {1, 2.5, 5.7},
                  {5, 8.5, 28},
                  {2.7, 4, 14}},
    NcclLatencies{222,
                  {6.8, 14, 8.4},
                  {6.6, 14, 8.4},
                  {.6, 1.25, 4},
                  {.6, 1.9, 3.4},
                  {1, 1.9, 4},
                  {1, 2.5, 5.7},
                  {5, 8.5, 14},
                  {2.7, 4, 14}},
};

constexpr NcclLimits kVolta{{39, 39, 20.4}, {20, 20, 20}, {20, 20, 20}, {26.5, 18.5, 10}, {}};
constexpr NcclLimits kAmpere{{87.7, 22.5, 19}, {20, 20, 20}, {20, 20, 20}, {24, 23.6, 17.8}, {}};
constexpr NcclLimits kHopper{
    {141, 45, 35}, {36.7, 36.7, 36.7}, {36.7, 36.7, 29}, {38.7, 41.4, 36}, {0, 57.7, 45.5}};
constexpr NcclLimits kBlackwell{
    {282, 90, 70}, {73.4, 73.4, 73.4}, {55.6, 31.67, 20}, {70, 42.8, 24}, {0, 96, 43.1}};

/// Corrections for sizes of 64 B, 128 B and so on, by powers of two.
constexpr std::array<std::array<double, 23>, 3> kTreeCorrection{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

}  // namespace

const NcclLatencies& nccl_latencies(int version) {
  const auto next = std::find_if(kLatencies.begin() + 1, kLatencies.end(),
                                 [=](const NcclLatencies& row) { return version < row.first_version; });
  return *(next - 1);
}

const NcclLimits& nccl_limits(int compute_capability) {
  if (compute_capability >= 100) return kBlackwell;
  if (compute_capability >= 90) return kHopper;
  return compute_capability >= 80 ? kAmpere : kVolta;
}

double nccl_tree_correction(int protocol, double bytes) {
  const double power = std::floor(std::log2(std::max(1.0, bytes / 64)));
  const auto& row = kTreeCorrection.at(static_cast<std::size_t>(protocol));
  return power < static_cast<double>(row.size()) ? row[static_cast<std::size_t>(power)] : 1;
}

}  // namespace stepcast
