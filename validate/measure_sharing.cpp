#include "validate/measure_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "kernels/memory.hpp"
#include "kernels/stopwatch.hpp"
#include "report/statistics.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "validate/communication_thread.hpp"
#include "validate/completions.hpp"
#include "validate/play.hpp"

namespace stepcast {
namespace {

constexpr double kMostSlowdown = 100;  // of `strategy.compute_slowdown`
constexpr std::size_t kStream = 16'000'000;

/// What a program has its communication thread do while it computes.
struct Beside {
  std::function<void()> compute;
  std::function<void(const std::function<void()>&)> submit;
  std::function<void()> wait;  ///< for what was submitted
};

std::vector<Row> measure_memory(Transport& transport, double budget) {
  const auto a = allocate_floats(kStream), b = allocate_floats(kStream), c = allocate_floats(kStream);
  const auto stream = [&] {
    for (std::size_t i = 0; i < kStream; ++i) c.get()[i] = a.get()[i] + b.get()[i];
  };
  std::vector<Row> rows;
  const Repeats alone = repeated(transport, budget, [&] {
    if (transport.rank() == 0) stream();
  });
  const Repeats together = repeated(transport, budget, stream);
  if (transport.rank() != 0) return {};
  rows.push_back(link_row("memory_alone", "", 12.0 * kStream, alone));
  rows.push_back(link_row("memory_together", "", 12.0 * kStream, together));
  return rows;
}

/// Elements of a sum that takes about `seconds`, and the rounds of it.
std::int64_t elements_for(Transport& transport, double seconds) {
  std::int64_t elements = 4096;
  std::vector<float> buffer;
  while (elements < 64'000'000) {
    buffer.assign(static_cast<std::size_t>(elements), 0);
    const auto rounds = rounds_of(ring_all_reduce({transport.ranks(), 1}), transport.rank(), elements);
    const Repeats repeats = repeated(transport, 0, [&] { play(transport, rounds, buffer.data()); });
    const double took = shared_value(transport, transport.rank() == 0 ? median_of(undisturbed(repeats)) : 0);
    if (took > seconds / 2) break;
    elements *= 2;
  }
  return elements;
}

/// What messages between stages cost a core that has work to do, as all ranks send one and receive one beside
/// a step: out of a tensor, into a letter, away; and in, out of the letter, into a tensor. What this takes
/// longer than the longer of step and messages alone, whichever thread it is that works.
std::vector<Row> measure_message_host(Transport& transport, Backend& backend, const Beside& beside,
                                      double budget) {
  constexpr std::int64_t kFewest = 1 << 14, kMost = 1 << 20;  // floats
  const int next = (transport.rank() + 1) % transport.ranks();
  const int before = (transport.rank() + transport.ranks() - 1) % transport.ranks();
  const auto memory = allocate_floats(kStream);
  std::vector<Row> rows;
  for (std::int64_t size = kFewest; size <= kMost; size *= 4) {
    std::int64_t place = 0;
    const Round round{{.way = Move::Way::send, .peer = next, .slice = {size, 2 * size}, .after = {}},
                      {.way = Move::Way::receive,
                       .peer = before,
                       .slice = {2 * size, 3 * size},
                       .arrival = Arrival::replace,
                       .after = {}}};
    const auto tensor = backend.make_activations({1, 64, size / 64, 1});
    const auto with_message = [&] {
      if ((place += 4 * size) + 4 * size > static_cast<std::int64_t>(kStream))
        place = 0;  // not in the caches
      float* piece = memory.get() + place;
      tensor->copy_to(piece);
      std::copy_n(piece, size, piece + size);
      beside.submit([&] { play(transport, {round}, piece); });
      beside.compute();
      beside.wait();
      std::copy_n(piece + 2 * size, size, piece + 3 * size);
      tensor->copy_from(piece + 3 * size);
    };
    const auto message_alone = [&] {
      beside.submit([&] { play(transport, {round}, memory.get() + place); });
      beside.wait();
    };
    std::vector<Repeats> turns =
        repeated_in_turn(transport, budget, {beside.compute, message_alone, with_message});
    if (transport.rank() != 0) continue;
    for (std::size_t i = 0; i < turns[2].seconds.size(); ++i)
      turns[2].seconds[i] -= std::max(turns[0].seconds[i], turns[1].seconds[i]);
    Row row = link_row("message_host", "", 4.0 * static_cast<double>(size), turns[2]);
    row.set("seconds", std::max(0.0, *row.number("seconds")));
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

double compute_slowdown(double compute, double collective, double together) {
  const double lost = std::max(0.0, together - std::max(compute, collective));
  if (lost >= collective * (1 - 1 / kMostSlowdown)) return kMostSlowdown;
  return collective / (collective - lost);
}

std::vector<Row> measure_sharing(Transport& transport, Leisure& leisure, Network& network, double budget) {
  std::vector<Row> rows = measure_memory(transport, budget);
  const auto compute = [&] {
    const Computing computing(&leisure);
    network.step();
  };
  const Repeats steps = repeated(transport, budget / 4, compute);
  const double step = shared_value(transport, transport.rank() == 0 ? median_of(undisturbed(steps)) : 0);
  const std::int64_t elements = elements_for(transport, step / 2);
  std::vector<float> buffer(static_cast<std::size_t>(elements), 0);
  const auto rounds = rounds_of(ring_all_reduce({transport.ranks(), 1}), transport.rank(), elements);
  const auto sum = [&] { play(transport, rounds, buffer.data()); };
  Completions completions(&leisure, [&] { transport.hurry(); });
  CommunicationThread thread(nullptr, &leisure);  // last: it uses the other
  const Beside beside{compute,
                      [&](const std::function<void()>& work) {
                        thread.submit([&completions, work] {
                          work();
                          completions.post(std::make_shared<Operation>());
                        });
                      },
                      [&completions] { completions.next(); }};
  const auto both = [&] {
    beside.submit(sum);
    compute();
    beside.wait();
  };
  std::vector<Repeats> turns = repeated_in_turn(transport, 4 * budget, {compute, sum, both});
  const Repeats handed = repeated(transport, budget, [&] {
    beside.submit([] {});
    beside.wait();
  });
  const std::vector<Row> messages = measure_message_host(transport, network.backend(), beside, budget);
  if (transport.rank() != 0) return {};
  rows.insert(rows.end(), messages.begin(), messages.end());
  const double bytes = 4.0 * static_cast<double>(elements);
  rows.push_back(link_row("compute_alone", "", 0, turns[0]));
  rows.push_back(link_row("all_reduce_alone", "ring", bytes, turns[1]));
  rows.push_back(link_row("compute_beside", "ring", bytes, turns[2]));
  const double alone = median_of(undisturbed(turns[0]));
  rows.back().set("seconds", alone + median_difference(turns[2], turns[0]));
  rows.push_back(link_row("hand_over", "", 0, handed));
  return rows;
}

}  // namespace stepcast
