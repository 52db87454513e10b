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
/// The constants of a version: those of the version before, but for what `change` sets.
template <class Constants, class Change>
constexpr Constants changed(Constants before, const Change& change) {
  change(before);
  return before;
}

constexpr NcclTuning kTuning203{.first_version = 203,
                                .tree_base = {4.4, 4.4, 0},
                                .ring_base = {3.6, 3.6, 8.4},
                                .tree_nvlink = {.5, 1.9, 28},
                                .ring_nvlink = {.4, 2.5, 5.7},
                                .tree_pcie = {1, 1.9, 28},
                                .ring_pcie = {1, 2.5, 5.7},
                                .tree_network = {5, 7.5, 50},
                                .ring_network = {.9, 2.5, 6.6},
                                .ring_ll128 = 120.0 / 128,
                                .tree = .9,
                                .tree_ll = 1 / 3.0,
                                .tree_ll128 = 7 / 9.0,
                                .plateau = {1, 1, 1}};
constexpr NcclTuning kTuning207 = changed(kTuning203, [](NcclTuning& of) {
  of.first_version = 207;
  of.ring_base = {3.6, 10, 8.4};
  of.tree_nvlink = {.52, 1.2, 28};
  of.ring_nvlink = {.47, 1.9, 3.4};
  of.tree_network = {5, 8.5, 50};
  of.ring_network = {2.7, 4, 9.6};
  of.ring_ll128 = .92;
  of.tree_ll = 1 / 3.8;
  of.tree_ll128 = .915;
  of.plateau = {1.9, 1.9, 1.9};
});
constexpr NcclTuning kTuning208 = changed(kTuning207, [](NcclTuning& of) {
  of.first_version = 208;
  of.tree_nvlink = {.52, 1.25, 28};
  of.tree_network = {5, 8.5, 28};
  of.tree = .92;
});
constexpr NcclTuning kTuning210 = changed(kTuning208, [](NcclTuning& of) {
  of.first_version = 210;
  of.tree_ll128 = 120.0 / 128;
  of.plateau = {1.9, 1.9, 1.5};
});
constexpr NcclTuning kTuning218 = changed(kTuning210, [](NcclTuning& of) {
  of.first_version = 218;
  of.tree_base = {6.8, 14, 0};
  of.ring_base = {6.6, 14, 8.4};
  of.tree_nvlink = {.6, 1.25, 28};
  of.ring_nvlink = {.6, 1.9, 3.4};
  of.ring_network = {2.7, 4, 14};
  of.plateau = {1.9, 1.4, 1.4};
});
constexpr NcclTuning kTuning222 = changed(kTuning218, [](NcclTuning& of) {
  of.first_version = 222;
  of.tree_base = {6.8, 14, 8.4};
  of.tree_nvlink = {.6, 1.25, 4};
  of.tree_pcie = {1, 1.9, 4};
  of.tree_network = {5, 8.5, 14};
});
constexpr std::array kTuning{kTuning203, kTuning207, kTuning208, kTuning210, kTuning218, kTuning222};

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

constexpr NcclLimits kVolta206{.ll = kVoltaLl,
                               .tree_ll128 = kNoLimits,
                               .tree = kNoLimits,
                               .nvls_tree = {},
                               .ring_ll128 = kLl128Of206,
                               .all_trees = kTreesOf206,
                               .all_trees_ll128 = kTreesOf206,
                               .all = kNoLimit};
constexpr NcclLimits kVolta207 = changed(kVolta206, [](NcclLimits& of) {
  of.tree_ll128 = {kTreeLl128Of207, kTreeLl128Of207, kTreeLl128Of207};
});
constexpr NcclLimits kAmpere207 = changed(kVolta207, [](NcclLimits& of) {
  of.ll = kAmpereLl;
  of.all_trees_ll128 = {130, 130, 105};
  of.all = kAmpereChannels;
});
constexpr NcclLimits kVolta208 = changed(kVolta207, [](NcclLimits& of) {
  of.tree_ll128 = {16.9, 16.9, 16.9};
  of.tree = {26.5, 18.5, 10};
  of.ring_ll128 = kLl128Of208;
  of.all_trees = of.all_trees_ll128 = kNoLimits;
});
constexpr NcclLimits kAmpere208 = changed(kVolta208, [](NcclLimits& of) {
  of.ll = kAmpereLl;
  of.tree = {24, 22.5, 16};
  of.all = kAmpereChannels;
});
constexpr NcclLimits kVolta = changed(kVolta208, [](NcclLimits& of) {
  of.tree_ll128 = {20, 20, 20};
  of.ring_ll128 = kLl128;
});
constexpr NcclLimits kAmpere210 = changed(kVolta, [](NcclLimits& of) {
  of.ll = kAmpereLl;
  of.tree = {24, 23.6, 17.8};
  of.all = kAmpereChannels;
});
constexpr NcclLimits kAmpere = changed(kAmpere210, [](NcclLimits& of) { of.all = kNoLimit; });
constexpr NcclLimits kHopper = changed(kAmpere, [](NcclLimits& of) {
  of.ll = {141, 45, 35};
  of.tree_ll128 = {36.7, 36.7, 29};
  of.tree = {38.7, 41.4, 36};
  of.nvls_tree = {0, 57.7, 45.5};
  of.ring_ll128 = {36.7, 36.7, 36.7, 36.7, 36.7};
});
constexpr NcclLimits kBlackwell = changed(kHopper, [](NcclLimits& of) {
  of.ll = {282, 90, 70};
  of.tree_ll128 = {55.6, 31.67, 20};
  of.tree = {70, 42.8, 24};
  of.nvls_tree = {0, 96, 43.1};
  of.ring_ll128 = {73.4, 73.4, 73.4, 73.4, 73.4};
});

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
  const auto& row = correction_of(version).at(ordinal(protocol));
  return power < row.size() ? row[static_cast<std::size_t>(power)] : 1;
}

}  // namespace stepcast
