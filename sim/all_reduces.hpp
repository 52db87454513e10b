#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "sim/network.hpp"
#include "sim/simulate.hpp"

namespace stepcast {

/// The collectives that a run will play, known before it starts: for every buffer size a schedule (the
/// cheapest, where the choice is automatic), and the form in which they are simulated.
///
/// Rule for `form: automatic`: coupled, where it is known to be within 1 % of every message. Not so are
/// pipelines (double trees) and, where several collectives run at once, those whose latencies take 5 % of
/// their time or more: these runs are played message by message up to 30,000 messages a step, and above that
/// by the form "coupled, roughly". Collectives that run at once are cut into 8 segments.
class AllReduces {
 public:
  AllReduces(const Simulation& simulation, const Topology& topology);

  SimNetwork& network() { return *network_; }
  int pattern(Bytes buffer) const;                    ///< -1: nothing to do
  int load_pattern() const { return load_pattern_; }  ///< -1: input costs nothing
  int segments() const { return segments_; }
  std::string form_name() const { return form_name_; }
  std::string algorithm_names() const;

 private:
  struct Chosen {
    AllReduceChoice choice;
    std::shared_ptr<const Schedule> schedule;
    int pattern = -1;
  };
  using ScheduleKey = std::pair<int, int>;  ///< candidate index, tree pieces

  std::set<double> buffers() const;
  void choose(double buffer);
  int candidate_pattern(const AllReduceChoice& choice, std::size_t index, Bytes buffer);
  void add_load();
  bool cheap_form_is_close(bool several) const;
  double messages_a_step() const;
  Form resolve_form();
  std::unique_ptr<SimNetwork> with_chosen(Form form);

  const Simulation& simulation_;
  Placement placement_;
  Group group_;
  std::unique_ptr<SimNetwork> network_;  ///< at first all candidates, then what was chosen
  std::map<ScheduleKey, int> known_;     ///< pattern of a candidate
  std::map<double, Chosen> chosen_;      ///< by bytes of the buffer
  int load_pattern_ = -1;
  int segments_ = 1;
  std::string form_name_;
};

}  // namespace stepcast
