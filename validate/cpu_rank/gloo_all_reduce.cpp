#include "validate/cpu_rank/gloo_all_reduce.hpp"

#ifdef STEPCAST_HAS_GLOO
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <memory>
#include <stdexcept>
#endif

namespace stepcast {

#ifdef STEPCAST_HAS_GLOO
namespace {

std::shared_ptr<gloo::rendezvous::Context> connected(int rank, int ranks,
                                                     const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  gloo::rendezvous::FileStore store(folder.string());
  auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  return context;
}

void add(void* sum, const void* a, const void* b, std::size_t count) {
  gloo::sum<float>(sum, a, b, count);
}

}  // namespace

LibraryAllReduce gloo_all_reduce(int rank, int ranks, const std::filesystem::path& folder) {
  LibraryAllReduce library;
  library.name = "gloo";
  library.sum = [rank, ranks, folder, context = std::shared_ptr<gloo::rendezvous::Context>()](
                    std::span<float> values, const std::vector<RankId>& group) mutable {
    if (std::ssize(group) != ranks) throw std::invalid_argument("gloo_all_reduce: expected all ranks");
    if (context == nullptr) context = connected(rank, ranks, folder);
    gloo::AllreduceOptions options(context);
    options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(add);
    gloo::allreduce(options);
  };
  return library;
}
#else
LibraryAllReduce gloo_all_reduce(int, int, const std::filesystem::path&) {
  return {.name = "gloo"};
}
#endif

}  // namespace stepcast
