#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/network/network.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Maps elements of a model's parameters (or gradients), numbered in the model's order, to elements of a
/// network's memory, where arrays are padded and aligned.
class ParameterLayout {
 public:
  explicit ParameterLayout(const Network& network);

  std::int64_t model_elements() const { return arrays_.back().model; }
  std::int64_t stored_elements() const { return arrays_.back().stored; }
  /// The slice of the memory that holds a slice of the model. Adjacent slices of the model are adjacent in
  /// memory; the slice of a whole array includes its padding.
  Slice stored(const Slice& of_model) const;

 private:
  struct Start {
    std::int64_t model = 0, stored = 0;
  };

  std::int64_t stored(std::int64_t of_model) const;

  std::vector<Start> arrays_;  ///< first element of each array, in order; the last entry is the end
};

/// All trainable arrays of a network in the order and with the padding of its memory (host or device), after
/// all work that was submitted to the backend.
std::vector<float> stored_parameters(const Network& network);
/// Writes them back. @param values  as many elements as stored_parameters returns
void store_parameters(const float* values, Network& network);

/// Parameters of a model, one array after the other in the model's order, running statistics included. Arrays
/// of layers that a shard of the model does not have are empty.
using Parameters = std::vector<std::vector<float>>;

Parameters read_parameters(Network& network);
/// Writes those arrays of the whole model that the network has.
void write_parameters(Network& network, const Parameters& parameters);

/// Writes a line of text, "stepcast parameters MODEL NUMBERS", and the values as little-endian float32.
void save_checkpoint(const std::filesystem::path& file, const Model& model, const Parameters& parameters);
/// @throws InputError for a file that is not a checkpoint, or is one of another model
Parameters load_checkpoint(const std::filesystem::path& file, const Model& model);

/// Host copy of the parameters and gradients of a network whose device memory the host cannot access.
///
/// Collectives and messages `fetch` the parts that they read and `store` the parts that they wrote.
/// Arithmetic on the host maps spans (`map_to_host`), which hold the device's values until `unmap` stores
/// them.
class HostMirror {
 public:
  /// @param network  its backend has a device memory; it outlives the mirror
  explicit HostMirror(Network& network);

  std::span<float> parameters() const { return {values_.host.get(), elements_}; }
  std::span<float> gradients() const { return {gradients_.host.get(), elements_}; }

  /// The device address of a part of the mirror; null for memory that is not the mirror's.
  float* on_device(std::span<const float> part);

  /// Copies a part from the device when the device's work before the event is done.
  void fetch(std::span<float> part, const DeviceMemory::Event& after);
  /// Copies a part to the device.
  void store(std::span<const float> part);

  /// Copies a part from the device, except for elements that are mapped already. Elements outside the part
  /// are not touched: they may be in transfer, and either the host or the device may have the newer value.
  void map_to_host(std::span<float> part);
  /// Stores all mapped parts. Mapped spans are stale from now on.
  void unmap();
  /// The device address of these values: the mirror's own for a part of it, else that of a copy.
  const float* uploaded(std::span<const float> values);

  DeviceMemory& device() const { return device_; }
  /// Returns when the device has finished all submitted work.
  void finish() const { network_.backend().finish(); }

 private:
  struct MappedArray {
    std::shared_ptr<float> host;
    float* device = nullptr;
    /// Mapped parts: begin to end; they neither overlap nor touch.
    std::map<std::size_t, std::size_t> ranges = {};
  };

  /// The array of the mirror that this memory belongs to; null: none.
  MappedArray* mapped_array(std::span<const float> part);
  void copy_to_host(const MappedArray& mapped, std::size_t begin, std::size_t end);

  Network& network_;
  DeviceMemory& device_;
  std::size_t elements_;
  MappedArray values_, gradients_;
  std::shared_ptr<float> scratch_;  ///< device memory of `uploaded`; allocated when it is first needed
};

}  // namespace stepcast
