#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace stepcast {

/// Writes events as a profile and removes the file again.
class ProfileFile {
 public:
  explicit ProfileFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("profile-" + std::to_string(getpid()) + ".json")) {
    std::ofstream(path_) << text;
  }
  ~ProfileFile() { std::filesystem::remove(path_); }
  std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// Events of a made-up profile. Times are in microseconds.
class Events {
 public:
  void range(const std::string& name, double start, double length) {
    add(R"("cat":"user_annotation","name":")" + name + R"(","tid":1,)", start, length, "");
  }
  /// @param sequence  -1: none. @param backward  a node of the backward pass
  int host(const std::string& name, double start, double length, int sequence = -1, bool backward = false,
           const std::string& shapes = "") {
    ++id_;
    std::string args = R"("External id":)" + std::to_string(id_);
    if (sequence >= 0)
      args += R"(,"Sequence number":)" + std::to_string(sequence) + R"(,"Fwd thread id":)" +
              (backward ? "1" : "0");
    if (!shapes.empty()) args += R"(,"Input Dims":)" + shapes;
    add(R"("cat":"cpu_op","name":")" + name + R"(","tid":1,)", start, length, args);
    return id_;
  }
  /// A kernel of an operator. It runs long after its launch, in another step's time.
  void kernel(const std::string& name, int id, double launched, double length, int device = 0,
              const std::string& call = "cudaLaunchKernel") {
    ++correlation_;
    const std::string link = R"("correlation":)" + std::to_string(correlation_);
    add(R"("cat":"cuda_runtime","name":")" + call + R"(","tid":1,)", launched, 1, link);
    add(R"("cat":"kernel","name":")" + name + R"(","tid":7,)", launched + 5000, length,
        link + R"(,"External id":)" + std::to_string(id) + R"(,"device":)" + std::to_string(device));
  }
  /// A copy from the host's memory.
  void copy_from_host(int id, double launched, double length) {
    ++correlation_;
    const std::string link = R"("correlation":)" + std::to_string(correlation_);
    add(R"("cat":"cuda_runtime","name":"cudaMemcpyAsync","tid":1,)", launched, 1, link);
    add(R"x("cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","tid":7,)x", launched + 5000, length,
        link + R"(,"External id":)" + std::to_string(id) + R"(,"device":0)");
  }
  /// A call of the host that launches something.
  void launch(const std::string& name, double start, double length = 1) {
    ++correlation_;
    add(R"("cat":"cuda_runtime","name":")" + name + R"(","tid":1,)", start, length,
        R"("correlation":)" + std::to_string(correlation_));
  }
  std::string text() const {
    return R"({"deviceProperties":[{"id":0,"name":"Test GPU"}],"traceEvents":[)" + text_ + "]}";
  }

 private:
  void add(const std::string& head, double start, double length, const std::string& args) {
    text_ += std::string(text_.empty() ? "" : ",") + R"({"ph":"X",)" + head + R"("pid":1,"ts":)" +
             std::to_string(start) + R"(,"dur":)" + std::to_string(length) + R"(,"args":{)" + args + "}}";
  }
  std::string text_;
  int id_ = 0, correlation_ = 0;
};

}  // namespace stepcast
