// An MPI program for smpirun: runs one exchange and prints the simulated seconds that it takes.
// Usage: exchanges ring|recursive_doubling|halo BYTES
//
// Rounds are those of stepcast's schedules: a rank enters a round when its own sends and receives of the
// round before are done. smpirun must send every message when both of its ranks are ready
// (--cfg=smpi/send-is-detached-thresh:0 --cfg=smpi/async-small-thresh:0).
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int kEnvelope = 16;  // bytes that SMPI 3.32 adds to each message

/// Starts to send `bytes` to a rank, the envelope included.
void send(std::vector<char>& buffer, int to, int bytes, std::vector<MPI_Request>& requests) {
  requests.emplace_back();
  MPI_Isend(buffer.data(), bytes - kEnvelope, MPI_CHAR, to, 0, MPI_COMM_WORLD, &requests.back());
}

void receive(std::vector<char>& buffer, int from, int bytes, std::vector<MPI_Request>& requests) {
  requests.emplace_back();
  MPI_Irecv(buffer.data(), bytes - kEnvelope, MPI_CHAR, from, 0, MPI_COMM_WORLD, &requests.back());
}

void wait(std::vector<MPI_Request>& requests) {
  MPI_Waitall(requests.size(), requests.data(), MPI_STATUSES_IGNORE);
}

/// Sends to one rank and receives from another, both at once.
void exchange(std::vector<char>& buffer, int to, int from, int bytes) {
  std::vector<MPI_Request> requests;
  receive(buffer, from, bytes, requests);
  send(buffer, to, bytes, requests);
  wait(requests);
}

/// Reduce-scatter and all-gather round the ring, each of P - 1 rounds of 1 / P of the buffer.
void ring_all_reduce(std::vector<char>& buffer, int rank, int ranks, int bytes) {
  for (int round = 0; round < 2 * (ranks - 1); ++round)
    exchange(buffer, (rank + 1) % ranks, (rank + ranks - 1) % ranks, bytes / ranks);
}

/// Exchanges the whole buffer at the distances 1, 2, 4 ...; the number of ranks is a power of two.
void recursive_doubling_all_reduce(std::vector<char>& buffer, int rank, int ranks, int bytes) {
  for (int distance = 1; distance < ranks; distance *= 2)
    exchange(buffer, rank ^ distance, rank ^ distance, bytes);
}

/// Exchanges with both neighbours on a line, all four messages at once.
void halo_exchange(std::vector<char>& buffer, int rank, int ranks, int bytes) {
  std::vector<MPI_Request> requests;
  for (const int other : {rank - 1, rank + 1}) {
    if (other < 0 || other >= ranks) continue;
    receive(buffer, other, bytes, requests);
    send(buffer, other, bytes, requests);
  }
  wait(requests);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string name = argc > 1 ? argv[1] : "";
  const int bytes = argc > 2 ? std::atoi(argv[2]) : 0;
  std::vector<char> buffer(bytes);
  const double start = MPI_Wtime();
  if (name == "ring") ring_all_reduce(buffer, rank, ranks, bytes);
  if (name == "recursive_doubling") recursive_doubling_all_reduce(buffer, rank, ranks, bytes);
  if (name == "halo") halo_exchange(buffer, rank, ranks, bytes);
  // All ranks start at the date 0, so the last one to end says how long it took.
  std::printf("seconds %.17g\n", MPI_Wtime() - start);
  MPI_Finalize();
}
