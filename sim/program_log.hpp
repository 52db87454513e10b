#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strategies/plan/plan.hpp"

namespace stepcast {

/// An operation that a program started, and the operations that must end before it starts.
struct LoggedOperation {
  enum class Kind : char {
    compute,     ///< the device runs a layer, or arithmetic of the strategy
    host,        ///< the host works, and nothing else of the rank needs it but what comes after it
    collective,  ///< of the plan
    send,        ///< a message to a role
    receive,     ///< the message that the program received, whoever sent it
  };

  Kind kind{};
  std::string name = {};         ///< "conv1 forward"
  double seconds = 0;            ///< compute, host: duration alone on the device [s]
  CollectiveId collective = {};  ///< collective
  std::size_t call = 0;          ///< collective: number of earlier calls of the program on its communicator
  Message message = {};          ///< send, receive
  RoleId peer = {};              ///< send, receive: the role at the other end
  std::int64_t sent = -1;  ///< send, receive: index of the send in the log of its sender; -1: never received
  std::vector<std::int64_t> after = {};  ///< indices of earlier operations of the same program
};

/// The operations of one program, in the order in which it started them. What depends on what follows from
/// the program, not from dates: an operation comes after all that the program has waited for, and after the
/// operation before it on its stream.
class ProgramLog {
 public:
  /// A resource of a rank that does one operation after the other: the device, or a stream of a communicator.
  using Stream = std::pair<int, std::size_t>;
  static constexpr Stream kDevice{-1, 0}, kLoads{-2, 0}, kNone{-3, 0};

  RoleId role{};
  int first = 0, members = 1;  ///< the members of the role for which the program stands
  std::vector<LoggedOperation> operations;

  /// Adds an operation on a stream. @returns its index
  std::int64_t add(LoggedOperation operation, Stream stream);
  /// The program waited for this operation; all that it starts from now on comes after it.
  void waited_for(std::int64_t operation);
  /// The program waited for the device to have done all that was issued.
  void synchronized() { waited_for(last_on(kDevice)); }
  /// Index of the latest operation on a stream; -1: none.
  std::int64_t last_on(Stream stream) const;

 private:
  std::vector<std::int64_t> waited_;  ///< none of which comes after another
  std::map<Stream, std::int64_t> last_;
};

}  // namespace stepcast
