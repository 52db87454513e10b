#include "validate/cluster_guard.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "report/child_process.hpp"
#include "scenarios/data_files.hpp"

namespace stepcast {
namespace {

FinishedChild netcluster(std::vector<std::string> words, const std::filesystem::path& folder) {
  words.insert(words.begin(), (data_folder() / "tools" / "netcluster").string());
  return run_child(words, folder);
}

}  // namespace

ClusterGuard::ClusterGuard(const Cluster& cluster, std::filesystem::path folder)
    : folder_(std::move(folder)) {
  if (cluster.kind != Cluster::Kind::netcluster) return;
  std::vector<std::string> words{"up",       std::to_string(cluster.ranks), "--rate", rate_text(cluster.rate),
                                 "--packet", std::to_string(cluster.packet)};
  if (cluster.racks == 2) {
    words.insert(words.end(), {"--racks", "2", "--uplink", rate_text(cluster.uplink)});
  }
  const FinishedChild child = netcluster(words, folder_);
  if (!child.started) throw InputError("tools/netcluster is not there, or bash is not");
  if (child.status == 0) {
    up_ = true;
    return;
  }
  std::string why = child.errors.substr(0, child.errors.find('\n'));
  throw InputError(fmt::format("--cluster: {}", why.empty() ? "tools/netcluster failed" : why));
}

ClusterGuard::~ClusterGuard() {
  if (!up_) return;
  try {
    netcluster({"down"}, folder_);
  } catch (const std::exception&) {  // the ranks' results count more; `tools/netcluster down` mends it
  }
}

}  // namespace stepcast
