#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// One interval of activity on one track. Times are seconds since the start of the run; end >= start.
struct Span {
  std::string name;      ///< "conv1 forward", "all-reduce bucket 3"
  std::string category;  ///< "compute", "communication", "waiting", "loading": a viewer gives each its colour
  int process = 0;       ///< worker (or server); index into Timeline::processes
  int track = 0;         ///< index into Timeline::tracks
  double start = 0;      ///< [s]
  double end = 0;        ///< [s]
};

/// Activities of a run, simulated or real, for plots and trace viewers.
struct Timeline {
  std::vector<Span> spans;             ///< in any order; spans of one track of one process never overlap
  std::vector<std::string> processes;  ///< name of each process, such as "worker 0"
  /// Name of each track, the same for all processes: "compute", "communication 0".
  std::vector<std::string> tracks;
};

}  // namespace stepcast
