#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "runtime/rendezvous/store.hpp"
#include "runtime/rendezvous/tcp_store.hpp"

namespace stepcast {
namespace {

using Clock = std::chrono::steady_clock;

/// Store with one file for each value.
class FileStore : public Store {
 public:
  FileStore(std::filesystem::path folder, int rank, double seconds)
      : folder_(std::move(folder)), rank_(rank), seconds_(seconds) {
    check_writable(folder_);
  }

  void put(const std::string& key, const std::string& value) override {
    const std::filesystem::path file = file_of(rank_, key);
    if (std::filesystem::exists(file))
      throw std::runtime_error(store_repeated_text(rank_, key, folder_.string()));
    write_atomically(file, value);
  }

  std::string get(int rank, const std::string& key) override {
    const auto end = Clock::now() + std::chrono::duration<double>(seconds_);
    const std::filesystem::path file = file_of(rank, key);
    while (!std::filesystem::exists(file)) {
      if (Clock::now() > end) throw RankLost(store_timeout_text(rank, key, folder_.string(), seconds_));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return read_file(file);
  }

 private:
  std::filesystem::path file_of(int rank, const std::string& key) const {
    return folder_ / fmt::format("{}-of-rank-{}", key, rank);
  }

  std::filesystem::path folder_;
  int rank_;
  double seconds_;
};

}  // namespace

std::unique_ptr<Store> open_store(const std::string& where, int rank, double seconds) {
  const std::string file = "file:", tcp = "tcp:";
  if (where.starts_with(file) && where.size() > file.size())
    return std::make_unique<FileStore>(where.substr(file.size()), rank, seconds);
  if (where.starts_with(tcp)) return open_tcp_store(where, rank, seconds);
  throw InputError(fmt::format("--store: expected file:FOLDER or tcp:ADDRESS:PORT, got \"{}\"", where));
}

}  // namespace stepcast
