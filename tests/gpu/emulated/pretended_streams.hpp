#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace stepcast::pretended {

/// Adds an operation to a stream. It runs when its stream is waited for, or before that, at a drawn moment.
/// On the default stream and while a graph is captured it runs at once.
void enqueue(cudaStream_t stream, std::function<void()> operation);

/// Runs all operations of a stream, and those of others that it waits for. A library's call does this first,
/// because it computes at once.
void drain(cudaStream_t stream);
void drain_all();

/// The stream of a library's handle, which these fakes keep in the handle's memory.
void set_stream(void* handle, cudaStream_t stream);
void drain_stream_of(void* handle);

}  // namespace stepcast::pretended
