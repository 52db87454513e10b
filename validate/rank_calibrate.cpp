#include "validate/rank_calibrate.hpp"

#include "kernels/backend.hpp"
#include "kernels/network.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "scenarios/data_files.hpp"
#include "scenarios/library.hpp"
#include "validate/measure_links.hpp"
#include "validate/measure_sharing.hpp"

namespace stepcast {

void rank_calibrate(const RankRun& run, bool quick) {
  LinkMeasurement options;
  options.table_only = quick;
  const bool netcluster = run.cluster.kind == Cluster::Kind::netcluster;
  if (netcluster) options.pause = 0.01;  // queues and buckets are as between steps
  if (quick) {
    options.longest = 0.15;
    options.rounds = netcluster ? 2 : 4;  // links that a clock paces are the same from second to second
  }
  if (!quick) options.most_bytes = 140e6;
  options.group = run.cluster.ranks / run.cluster.racks;
  // MPI's own sums over slow links take far longer than ours and tell nothing more.
  if (!quick && !netcluster) options.library_all_reduce = run.library_all_reduce;
  options.say = [&run](const std::string& what) { say(run.state, ("measuring " + what).c_str()); };
  std::vector<Row> rows = measure_links(run.transport, options);

  options.say("what ranks take from each other");
  Library library;
  const YamlNode name = command_line_name("small-cnn");
  const auto backend = make_onednn_backend();
  Network network(*backend, library.model(YamlValue(name, "model")), {.batch = 8});
  const double seconds = quick && netcluster ? 0.1 : 0.5;
  const std::vector<Row> sharing = measure_sharing(run.transport, run.leisure, network, seconds);
  rows.insert(rows.end(), sharing.begin(), sharing.end());
  if (run.transport.rank() == 0)
    write_atomically(run.folder / "links.jsonl", to_json_lines({"calibrate", rows}));
}

}  // namespace stepcast
