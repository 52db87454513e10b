#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>

#include "runtime/transport/progress_thread.hpp"

namespace stepcast {

/// A file of random bytes that stands for the input of one rank. It has no name, so that nothing is left
/// behind when the rank is killed.
class RankInput {
 public:
  /// Writes the file into the file system of `folder`.
  /// @param largest  the most bytes of one read; the file is a few times as long, within limits
  /// @throws std::runtime_error if the file cannot be written
  RankInput(const std::filesystem::path& folder, std::int64_t largest);
  RankInput(const RankInput&) = delete;
  ~RankInput();

  /// Reads the next `bytes`, rounded up to whole blocks, and begins again at the end of the file. The page
  /// cache is left out (O_DIRECT) or, where the file system has no such reads, emptied before
  /// (posix_fadvise).
  /// @throws std::runtime_error if reading fails
  void read(std::int64_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  int descriptor_;
  bool direct_ = false;
  std::int64_t size_, at_ = 0;
  std::unique_ptr<std::byte[], Free> buffer_;
};

/// Loads the input of a rank on a thread of its own, in the order of the calls, as a data loader with
/// prefetch does.
class InputLoader {
 public:
  /// @param polling    policy of the rank's core; null: no thread polls by it
  /// @param heartbeat  of the thread, as in ProgressThread; may be null
  InputLoader(const std::filesystem::path& folder, std::int64_t largest, PollingPolicy* polling = nullptr,
              std::atomic<std::uint64_t>* heartbeat = nullptr)
      : file_(folder, largest), polling_(polling), thread_(heartbeat) {}

  /// @param loaded  called on the loader's thread when the bytes are read; null, or the error
  void start(std::int64_t bytes, std::function<void(std::exception_ptr)> loaded);
  ProgressThread& thread() { return thread_; }

 private:
  RankInput file_;
  PollingPolicy* polling_;
  ProgressThread thread_;  // declared last: it uses the file
};

}  // namespace stepcast
