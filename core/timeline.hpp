#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// One stretch of activity on one track. Times are seconds since the start of the run; end >= start.
struct Span {
  std::string name;      ///< "conv1 forward", "all-reduce bucket 3"
  std::string category;  ///< "compute", "communication", "waiting", "loading": one colour each in a viewer
  int process = 0;       ///< worker (or server); index into Timeline::processes
  int track = 0;         ///< index into Timeline::tracks
  double start = 0;      ///< [s]
  double end = 0;        ///< [s]
};

/// What a run did: the only thing that the simulated and the real world hand over for drawing.
struct Timeline {
  std::vector<Span> spans;             ///< in any order; spans of one track of one process never overlap
  std::vector<std::string> processes;  ///< name of each process, such as "worker 0"
  std::vector<std::string>
      tracks;  ///< name of each track, the same for all processes: "compute", "communication 0"
};

}  // namespace stepcast
