#pragma once

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "core/error.hpp"
#include "models/pytorch_profile/profile.hpp"

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

using AddMore = std::function<void(Events&, double start)>;

/// Forward passes of a dense layer, a ReLU and a loss: 10 us each, from `t` on.
inline void add_forward(Events& events, double t, int sequence) {
  events.kernel("sgemm", events.host("aten::linear", t + 10, 8, sequence, false, "[[2,4],[4,4],[4]]"), t + 11,
                10);
  events.kernel("clamp", events.host("aten::relu", t + 50, 8, sequence + 1, false, "[[2,4]]"), t + 51, 10);
  events.kernel("nll", events.host("aten::mse_loss", t + 90, 8, sequence + 2, false, "[[2,4],[2,4],[]]"),
                t + 91, 10);
}

inline void add_backward(Events& events, double t, int sequence) {
  events.kernel("b", events.host("MseLossBackward0", t + 210, 8, sequence + 2, true, "[[]]"), t + 211, 10);
  events.kernel("b", events.host("ReluBackward0", t + 230, 8, sequence + 1, true, "[[2,4]]"), t + 231, 10);
  events.kernel("b", events.host("AddmmBackward0", t + 250, 8, sequence, true, "[[2,4]]"), t + 251, 10);
  events.host("torch::autograd::AccumulateGrad", t + 270, 8, -1, false, "[[4]]");
  events.host("torch::autograd::AccumulateGrad", t + 290, 8, -1, false, "[[4,4]]");
}

/// Three steps of 500 us.
inline std::string steps(const AddMore& more) {
  Events events;
  for (int step = 1; step <= 3; ++step) {
    const double t = 1000.0 * step;
    events.range("ProfilerStep#" + std::to_string(step), t, 500);
    add_forward(events, t, 10 * step);
    add_backward(events, t, 10 * step);
    more(events, t);
  }
  return events.text();
}

struct ImportedSteps {
  Attribution all;
  Trace trace;
  Model model;
};

inline ImportedSteps imported_steps(const std::string& text, double ordinary_step = 0) {
  const ProfileFile file(text);
  const Profile profile = read_profile(file.name());
  ImportedSteps result{attribute(profile), {}, {}};
  const ProfileNetwork network = profile_network("p", result.all.steps.front().operators, 2, "net", {});
  CHECK(network.fault.empty());
  result.model = network.model;
  result.trace = profile_trace(profile, result.all, {network.model, network.match}, 2, ordinary_step);
  return result;
}

inline std::string refusal_of_steps(const std::string& text) {
  try {
    imported_steps(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

inline bool has_flag(const Trace& trace, const std::string& part) {
  for (const std::string& flag : trace.flags) {
    if (flag.find(part) != std::string::npos) return true;
  }
  return false;
}

inline bool has_note(const Trace& trace, const std::string& note) {
  return std::find(trace.notes.begin(), trace.notes.end(), note) != trace.notes.end();
}

inline std::string with_words(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace stepcast
