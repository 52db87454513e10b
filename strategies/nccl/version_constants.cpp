#include <algorithm>
#include <cmath>
#include <limits>

#include "strategies/nccl/collective_time.hpp"

namespace stepcast {

namespace {

/// All constants of this file: NVIDIA/nccl, src/graph/tuning.cc of 2.6.2 (its latencies are those
/// of 2.5.6), 2.7.8 (as in forks that keep its tables), 2.8.4, 2.16 (latencies as in 2.8.4), 2.20.3
/// and 2.28.3. Between these, the first version of a row was not looked up, and 2.10, 2.18 and 2.22 are
/// assumed. Versions 2.3 and 2.4 have no such tables; they take those of 2.6, without LL128 and, in 2.3,
/// without trees (release notes of 2.4 and 2.5).
constexpr std::array kTuning{
    NcclTuning{203,
               {4.4, 4.4, 0},
               {3.6, 3.6, 8.4},
               {.5, 1.9, 28},
               {.4, 2.5, 5.7},
               {1, 1.9, 28},
               {1, 2.5, 5.7},
               {5, 7.5, 50},
               {.9, 2.5, 6.6},
               120.0 / 128,
               .9,
               1 / 3.0,
               7 / 9.0,
               {1, 1, 1}},
    NcclTuning{207,
               {4.4, 4.4, 0},
               {3.6, 10, 8.4},
               {.52, 1.2, 28},
               {.47, 1.9, 3.4},
               {1, 1.9, 28},
               {1, 2.5, 5.7},
               {5, 8.5, 50},
               {2.7, 4, 9.6},
               .92,
               .9,
               1 / 3.8,
               .915,
               {1.9, 1.9, 1.9}},
    NcclTuning{208,
               {4.4, 4.4, 0},
               {3.6, 10, 8.4},
               {.52, 1.25, 28},
               {.47, 1.9, 3.4},
               {1, 1.9, 28},
               {1, 2.5, 5.7},
               {5, 8.5, 28},
               {2.7, 4, 9.6},
               .92,
               .92,
               1 / 3.8,
               .915,
               {1.9, 1.9, 1.9}},
    NcclTuning{210,
               {4.4, 4.4, 0},
               {3.6, 10, 8.4},
               {.52, 1.25, 28},
               {.47, 1.9, 3.4},
               {1, 1.9, 28},
               {1, 2.5, 5.7},
               {5, 8.5, 28},
               {2.7, 4, 9.6},
               .92,
               .92,
               1 / 3.8,
               120.0 / 128,
               {1.9, 1.9, 1.5}},
    NcclTuning{218,
               {6.8, 14, 0},
               {6.6, 14, 8.4},
               {.6, 1.25, 28},
               {.6, 1.9, 3.4},
               {1, 1.9, 28},
               {1, 2.5, 5.7},
               {5, 8.5, 28},
               {2.7, 4, 14},
               .92,
               .92,
               1 / 3.8,
               120.0 / 128,
               {1.9, 1.4, 1.4}},
    NcclTuning{222,
               {6.8, 14, 8.4},
               {6.6, 14, 8.4},
               {.6, 1.25, 4},
               {.6, 1.9, 3.4},
               {1, 1.9, 4},
               {1, 2.5, 5.7},
               {5, 8.5, 14},
               {2.7, 4, 14},
               .92,
               .92,
               1 / 3.8,
               120.0 / 128,
               {1.9, 1.4, 1.4}},
};

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr std::array kNoLimits{kNoLimit, kNoLimit, kNoLimit};

constexpr std::array kVoltaLl{39.0, 39.0, 20.4};
constexpr std::array kAmpereLl{87.7, 22.5, 19.0};

/// A channel's LL128 of all-reduce, all-gather, reduce-scatter, broadcast and reduce: NVIDIA's measurements
/// on six channels (`ll128MaxBw`, later `ll128MaxBwPerCh`).
constexpr std::array kLl128Of206{16.7, 18.3, 15.2, 18.8, 12.0};
constexpr std::array kLl128Of208{16.9, 18.3, 15.2, 18.8, 12.0};
constexpr std::array kLl128{20.0, 20.0, 20.0, 20.0, 20.0};

constexpr std::array kTreesOf206{110.0, 110.0, 80.0};
constexpr double kTreeLl128Of207 = 16.7 * 7 / 9;
constexpr double kAmpereChannels = 235;  ///< up to 2.17

constexpr NcclLimits kVolta206{kVoltaLl,    kNoLimits,   kNoLimits,   {},
                               kLl128Of206, kTreesOf206, kTreesOf206, kNoLimit};
constexpr NcclLimits kVolta207{kVoltaLl,    {kTreeLl128Of207, kTreeLl128Of207, kTreeLl128Of207},
                               kNoLimits,   {},
                               kLl128Of206, kTreesOf206,
                               kTreesOf206, kNoLimit};
constexpr NcclLimits kAmpere207{kAmpereLl,       {kTreeLl128Of207, kTreeLl128Of207, kTreeLl128Of207},
                                kNoLimits,       {},
                                kLl128Of206,     kTreesOf206,
                                {130, 130, 105}, kAmpereChannels};
constexpr NcclLimits kVolta208{kVoltaLl,    {16.9, 16.9, 16.9}, {26.5, 18.5, 10}, {},
                               kLl128Of208, kNoLimits,          kNoLimits,        kNoLimit};
constexpr NcclLimits kAmpere208{kAmpereLl,   {16.9, 16.9, 16.9}, {24, 22.5, 16}, {},
                                kLl128Of208, kNoLimits,          kNoLimits,      kAmpereChannels};
constexpr NcclLimits kVolta{kVoltaLl, {20, 20, 20}, {26.5, 18.5, 10}, {},
                            kLl128,   kNoLimits,    kNoLimits,        kNoLimit};
constexpr NcclLimits kAmpere210{kAmpereLl, {20, 20, 20}, {24, 23.6, 17.8}, {},
                                kLl128,    kNoLimits,    kNoLimits,        kAmpereChannels};
constexpr NcclLimits kAmpere{kAmpereLl, {20, 20, 20}, {24, 23.6, 17.8}, {},
                             kLl128,    kNoLimits,    kNoLimits,        kNoLimit};
constexpr NcclLimits kHopper{
    {141, 45, 35}, {36.7, 36.7, 29}, {38.7, 41.4, 36}, {0, 57.7, 45.5}, {36.7, 36.7, 36.7, 36.7, 36.7},
    kNoLimits,     kNoLimits,        kNoLimit};
constexpr NcclLimits kBlackwell{
    {282, 90, 70}, {55.6, 31.67, 20}, {70, 42.8, 24}, {0, 96, 43.1}, {73.4, 73.4, 73.4, 73.4, 73.4},
    kNoLimits,     kNoLimits,         kNoLimit};

/// Corrections for sizes of 64 B, 128 B and so on, by powers of two.
using TreeCorrection = std::array<std::array<double, 23>, 3>;
constexpr TreeCorrection kCorrection206{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .5, .5, .6, .7, .8, .9, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .8, .7, .7, .7, .6, .6, .7, .7, .8, .8, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9, 1},
}};
constexpr TreeCorrection kCorrection207{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9, 1},
}};
constexpr TreeCorrection kCorrection208{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, .92, .92},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};
constexpr TreeCorrection kCorrection210{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

const TreeCorrection& correction_of(int version) {
  if (version < 207) return kCorrection206;
  if (version < 208) return kCorrection207;
  return version < 210 ? kCorrection208 : kCorrection210;
}

}  // namespace

const NcclTuning& nccl_tuning(int version) {
  const auto next = std::find_if(kTuning.begin() + 1, kTuning.end(),
                                 [=](const NcclTuning& row) { return version < row.first_version; });
  return *(next - 1);
}

const NcclLimits& nccl_limits(int version, int compute_capability) {
  if (compute_capability >= 100) return kBlackwell;
  if (compute_capability >= 90) return kHopper;
  const bool ampere = compute_capability >= 80;
  if (version < 207) return kVolta206;
  if (version < 208) return ampere ? kAmpere207 : kVolta207;
  if (version < 210) return ampere ? kAmpere208 : kVolta208;
  if (!ampere) return kVolta;
  return version < 218 ? kAmpere210 : kAmpere;
}

double nccl_tree_correction(int version, NcclProtocol protocol, double bytes) {
  const double power = std::floor(std::log2(std::max(1.0, bytes / 64)));
  const auto& row = correction_of(version).at(static_cast<std::size_t>(protocol));
  return power < static_cast<double>(row.size()) ? row[static_cast<std::size_t>(power)] : 1;
}

}  // namespace stepcast
