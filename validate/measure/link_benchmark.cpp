#include "validate/measure/link_benchmark.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>

#include "kernels/timing/host_info.hpp"
#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/runs/input_loader.hpp"
#include "strategies/collectives/algorithm_choice.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

namespace {

using What = LinkMeasurement::What;

constexpr std::int64_t kFootprint = 16'000'000;  // floats; more than the caches hold

class LinkBenchmark {
 public:
  LinkBenchmark(Transport& transport, const LinkBenchmarkOptions& options)
      : transport_(transport),
        options_(options),
        group_(options.group == 0 ? transport.ranks() : options.group) {}

  LinkMeasurements run() {
    if (transport_.ranks() < 2) return {};
    for (int round = 0; round < options_.rounds; ++round) {
      if (!options_.table_only) measure_messages();
      if (options_.table_only && options_.one_way) measure_one_way(1 << 16);
      if (!options_.table_only || group_ < transport_.ranks()) measure_shifts();
      measure_all_reduces();
    }
    LinkMeasurements links;
    for (const Measured& one : measured_)
      links.push_back(link_measurement(one.what, one.algorithm, one.bytes, one.repeats));
    return links;
  }

 private:
  struct Measured {
    What what;
    std::string algorithm;
    double bytes;
    Repeats repeats;  ///< repeats of all rounds
  };

  void measure_one_way(std::int64_t smallest) {
    sweep_sizes(What::half_round_trip, "", smallest,
                [this](std::int64_t n) { ping_pong(n, transport_.rank() < RankId{2}); });
  }

  void measure_messages() {
    measure_one_way(4);
    if (transport_.ranks() > 3) {
      sweep_sizes(What::pairs, "", 4, [this](std::int64_t n) {
        ping_pong(n, (transport_.rank().value | 1) < transport_.ranks());
      });
    }
  }

  void measure_shifts() {
    sweep_sizes(What::shift_replace, "", 4, [this](std::int64_t n) { shift(n, OnReceive::copy); });
    sweep_sizes(What::shift_add, "", 4, [this](std::int64_t n) { shift(n, OnReceive::reduce); });
  }

  void measure_all_reduces() {
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling,
                                      Algorithm::recursive_doubling, Algorithm::double_tree}) {
      if (algorithm != Algorithm::ring && options_.table_only) continue;
      const std::string name = algorithm_names()[ordinal(algorithm)];
      sweep_sizes(What::all_reduce, name, 16,
                  [this, algorithm](std::int64_t n) { all_reduce(algorithm, n); });
    }
    const std::vector<RankId> ranks = first_ranks(transport_.ranks());
    for (const LibraryAllReduce& library : options_.compared) {
      sweep_sizes(What::all_reduce, library.name, 16, [&](std::int64_t n) {
        library.sum({buffer(n), static_cast<std::size_t>(n)}, ranks);
      });
    }
  }

  void accumulate(What what, const std::string& algorithm, double bytes, const Repeats& more) {
    auto found = std::find_if(measured_.begin(), measured_.end(), [&](const Measured& one) {
      return one.what == what && one.algorithm == algorithm && one.bytes == bytes;
    });
    if (found == measured_.end()) found = measured_.insert(found, {what, algorithm, bytes, {}});
    std::vector<double>& seconds = found->repeats.seconds;
    seconds.insert(seconds.end(), more.seconds.begin(), more.seconds.end());
    std::vector<double>& stolen = found->repeats.stolen;
    stolen.insert(stolen.end(), more.stolen.begin(), more.stolen.end());
    found->repeats.cpu_seconds += more.cpu_seconds / options_.rounds;
  }

  /// Returns another region of memory in each call, which is not in the cache, as after a pass over a
  /// network.
  float* buffer(std::int64_t elements) {
    const std::int64_t all = std::max(elements, kFootprint);
    if (std::ssize(buffer_) < all) buffer_.assign(all, 0);
    if (next_ + elements > all) next_ = 0;
    float* region = buffer_.data() + next_;
    next_ += (elements + 15) / 16 * 16;
    return region;
  }

  void sweep_sizes(What what, const std::string& algorithm, std::int64_t smallest,
                   const std::function<void(std::int64_t)>& once) {
    if (options_.on_progress)
      options_.on_progress(algorithm.empty() ? to_string(what) : to_string(what) + " " + algorithm);
    for (std::int64_t bytes = smallest; bytes <= options_.max_bytes; bytes *= 2) {
      buffer(bytes / 4);
      const Repeats repeats = time_repeated(
          transport_, options_.budget / options_.rounds, [&] { once(bytes / 4); },
          what == What::all_reduce ? options_.pause : 0);
      double middle = 0;
      if (transport_.is_rank_0()) {
        accumulate(what, algorithm, bytes, repeats);
        middle = median_of(undisturbed_seconds(repeats));
      }
      if (broadcast_from_rank_0(transport_, middle) * (what == What::half_round_trip ? 2 : 1) >
          options_.max_seconds)
        break;
    }
    known_.clear();
  }

  /// Sends a message there and back. Callers halve the time.
  void ping_pong(std::int64_t elements, bool takes_part) {
    if (!takes_part) return;
    const RankId peer(transport_.rank().value ^ 1);
    if (transport_.rank() < peer) {
      send(transport_, peer, buffer(elements), elements);
      receive(transport_, peer, buffer(elements), elements);
    } else {
      receive(transport_, peer, buffer(elements), elements);
      send(transport_, peer, buffer(elements), elements);
    }
  }

  void shift(std::int64_t elements, OnReceive on_receive) {
    const int rank = transport_.rank().value, first = rank / group_ * group_, place = rank - first;
    const Slice half{0, elements};
    Round round{
        {.way = Transfer::Way::send, .peer = first + (place + 1) % group_, .slice = half, .after = {}},
        {.way = Transfer::Way::receive,
         .peer = first + (place + group_ - 1) % group_,
         .slice = {elements, 2 * elements},
         .on_receive = on_receive,
         .after = {}}};
    execute_rounds(transport_, {round}, buffer(2 * elements));
  }

  void all_reduce(Algorithm algorithm, std::int64_t elements) {
    const Bytes bytes{4 * static_cast<double>(elements)};
    auto& rounds = known_[elements];
    if (rounds.empty()) {
      const auto schedule = all_reduce_schedule({.algorithm = algorithm}, {transport_.ranks(), 1}, bytes);
      rounds = rounds_of(*schedule, transport_.rank().value, elements);
    }
    execute_rounds(transport_, rounds, buffer(elements));
  }

  Transport& transport_;
  const LinkBenchmarkOptions& options_;
  int group_;
  std::vector<float> buffer_;
  std::int64_t next_ = 0;  ///< element of buffer_ that was unused for the longest time
  std::map<std::int64_t, std::vector<Round>> known_;
  std::vector<Measured> measured_;  ///< filled on rank 0 only
};

}  // namespace

LinkMeasurement link_measurement(What what, const std::string& algorithm, double bytes,
                                 const Repeats& repeats) {
  const double share = what == What::half_round_trip || what == What::pairs ? 0.5 : 1;
  const std::vector<double> seconds = undisturbed_seconds(repeats);
  LinkMeasurement one{what, algorithm};
  one.bytes = bytes;
  one.seconds = share * median_of(seconds);
  one.low = share * quantile(seconds, 0.25);
  one.high = share * quantile(seconds, 0.75);
  one.repeats = seconds.size();
  one.cpu_seconds = share * repeats.cpu_seconds;
  return one;
}

LinkMeasurements measure_links(Transport& transport, const LinkBenchmarkOptions& options) {
  return LinkBenchmark(transport, options).run();
}

namespace {

constexpr std::int64_t kLoads[] = {4096, 1 << 18, 1 << 20, 4 << 20, 16 << 20};  // bytes
constexpr int kLoadRepeats = 24, kFewestLoadPairs = 16, kMostLoadPairs = 128;
constexpr double kLoadPairsSeconds = 6;  // of all pairs of computations together, about

/// Loads of one rank, on the thread that loads the input of a real run, and computations between them.
class StorageBenchmark {
 public:
  StorageBenchmark(Transport& transport, PollingPolicy& polling, const std::filesystem::path& folder,
                   const std::function<void()>& compute)
      : transport_(transport),
        polling_(polling),
        compute_(compute),
        completions_(&polling),
        loader_(folder, std::ranges::max(kLoads), &polling) {}

  /// Times of loads that all ranks begin together after a computation, on the slowest rank [s].
  std::vector<double> waited_loads(std::int64_t bytes) {
    const ComputeScope computing(&polling_);
    std::vector<double> seconds;
    for (int i = 0; i < kLoadRepeats; ++i) {
      compute_();
      barrier(transport_);
      const Instant begin = now();
      start(bytes);
      completions_.await_next();
      seconds.push_back(max_over_ranks(transport_, now().wall - begin.wall));
    }
    return seconds;
  }

  /// Time of a computation. @param bytes  of a load that begins with it; 0: none
  Instant computation(std::int64_t bytes) {
    barrier(transport_);
    const ComputeScope computing(&polling_);
    const Instant begin = now();
    if (bytes > 0) start(bytes);
    compute_();
    const Instant time = between(begin, now());
    if (bytes > 0) completions_.await_next();
    return time;
  }

 private:
  void start(std::int64_t bytes) {
    loader_.start(bytes, [this](std::exception_ptr error) {
      auto operation = std::make_shared<Operation>();
      operation->error = std::move(error);
      completions_.post(operation);
    });
  }

  Transport& transport_;
  PollingPolicy& polling_;
  const std::function<void()>& compute_;
  CompletionQueue completions_;
  InputLoader loader_;  // declared last: its thread uses the other members
};

/// The most bytes, in whole MiB, that a rank loads within 3/4 of a computation; 0: less than one. The same on
/// all ranks.
std::int64_t load_within(Transport& transport, const LinkMeasurements& waited, double computation) {
  constexpr double kMebibyte = 1 << 20;
  const auto storage = measured_storage(waited, 1);
  const double bytes = storage ? (0.75 * computation - storage->latency.value) * storage->bandwidth.value : 0;
  const double most = std::ranges::max(kLoads);
  const double whole = kMebibyte * std::floor(std::clamp(bytes, 0.0, most) / kMebibyte);
  return static_cast<std::int64_t>(broadcast_from_rank_0(transport, whole));
}

LinkMeasurement load_measurement(What what, std::int64_t bytes, double seconds,
                                 const std::vector<double>& samples) {
  LinkMeasurement one{what};
  one.bytes = bytes;
  one.seconds = seconds;
  one.low = quantile(samples, 0.25);
  one.high = quantile(samples, 0.75);
  one.repeats = samples.size();
  return one;
}

/// The samples of all ranks, on rank 0.
std::vector<double> of_all_ranks(Transport& transport, const std::vector<double>& own) {
  std::vector<double> all;
  for (const auto& rank : gather_on_rank_0(transport, own)) all.insert(all.end(), rank.begin(), rank.end());
  return all;
}

}  // namespace

LinkMeasurements measure_storage(Transport& transport, PollingPolicy& polling,
                                 const std::filesystem::path& folder, const std::function<void()>& compute) {
  StorageBenchmark benchmark(transport, polling, folder, compute);
  LinkMeasurements rows;
  for (const std::int64_t bytes : kLoads) {
    const std::vector<double> seconds = benchmark.waited_loads(bytes);
    if (transport.is_rank_0())
      rows.push_back(load_measurement(What::storage, bytes, uninterrupted_mean(seconds), seconds));
  }
  return rows;
}

LinkMeasurements measure_compute_beside_load(Transport& transport, PollingPolicy& polling,
                                             const std::filesystem::path& folder,
                                             const std::function<void()>& compute,
                                             const LinkMeasurements& storage) {
  StorageBenchmark benchmark(transport, polling, folder, compute);
  std::vector<double> alone;
  for (int i = 0; i < 5; ++i) alone.push_back(benchmark.computation(0).wall);
  const double computation = broadcast_from_rank_0(transport, median_of(alone));
  const std::int64_t bytes = load_within(transport, storage, computation);
  if (bytes == 0) return {};
  const int pairs = std::clamp<int>(kLoadPairsSeconds / (2 * computation), kFewestLoadPairs, kMostLoadPairs);
  std::vector<double> longer, off_core;
  double stolen = 0;  // by loads: with them less without them
  for (int i = 0; i < pairs; ++i) {
    const bool loads_first = i % 2 == 0;
    const StolenShare in_both;
    const Instant first = benchmark.computation(loads_first ? bytes : 0);
    const double in_first = in_both.seconds();
    const Instant second = benchmark.computation(loads_first ? 0 : bytes);
    const double in_second = in_both.seconds() - in_first;
    const Instant more = loads_first ? between(second, first) : between(first, second);
    longer.push_back(more.wall);
    off_core.push_back(more.wall - more.cpu);
    stolen += loads_first ? in_first - in_second : in_second - in_first;
  }
  longer = of_all_ranks(transport, longer);
  off_core = of_all_ranks(transport, off_core);
  if (!transport.is_rank_0()) return {};
  LinkMeasurement one = load_measurement(What::compute_beside_load, bytes, mean(longer), longer);
  one.off_core_seconds = mean(off_core);
  one.stolen_seconds = stolen / pairs;
  return {one};
}

std::optional<MeasuredStorage> measured_storage(const LinkMeasurements& links, int sharing) {
  double least_bytes = 0, least = 0, most_bytes = 0, most = 0;
  for (const LinkMeasurement& one : links) {
    if (one.what != What::storage) continue;
    if (least_bytes == 0 || one.bytes < least_bytes) least_bytes = one.bytes, least = one.seconds;
    if (one.bytes > most_bytes) most_bytes = one.bytes, most = one.seconds;
  }
  if (most_bytes <= least_bytes || most <= least) return std::nullopt;
  const double rate = (most_bytes - least_bytes) / (most - least);
  return MeasuredStorage{{sharing * rate}, {std::max(0.0, least - least_bytes / rate)}};
}

double load_slowdown(const LinkMeasurements& links) {
  const auto storage = measured_storage(links, 1);
  const LinkMeasurement* beside = first_of(links, What::compute_beside_load);
  if (!storage || beside == nullptr) return 1;
  const double load = (storage->latency + Bytes{beside->bytes} / storage->bandwidth).value;
  return compute_slowdown(load, load, load + beside->seconds);
}

}  // namespace stepcast
