#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace stepcast::fake {

/// An operation of a stream. @return false while it must wait for other streams or ranks; the stream then
/// stands still and tries it again
using Operation = std::function<bool()>;

/// Adds an operation to a stream. It runs when its stream is waited for, or before that, at a drawn moment.
/// While a graph is captured it becomes a part of the graph and does not run. On the default stream it runs
/// at once.
void enqueue(cudaStream_t stream, std::function<void()> operation);
void enqueue_waiting(cudaStream_t stream, Operation operation);

/// Called on the host when an operation begins to be added to a stream, and when it has been added. May be
/// empty.
std::function<void(bool added)>& enqueue_observer();

/// Returns when all operations of a stream are done. Throws if for 20 s no stream has done anything: a real
/// GPU would hang.
void drain(cudaStream_t stream);
/// The same for all streams of the calling thread's GPU.
void drain_all();

/// The stream of a library's handle.
void set_stream(void* handle, cudaStream_t stream);
void drain_stream_of(void* handle);
/// Adds a library's work to the stream of its handle.
void enqueue_on(void* handle, std::function<void()> operation);

/// The calling thread's GPU, and the number of GPUs that the fake has.
int& current_device();
int& device_count();

}  // namespace stepcast::fake
