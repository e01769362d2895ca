#pragma once

#include <cstdint>

namespace portwave {

/// Of the process in which it was made. A process that forks gives its child copies of objects, but
/// none of its threads: whoever waits for one waits forever there. Nor may the child touch what both
/// see, such as files that are being written.
class ProcessStamp {
 public:
  ProcessStamp();

  /// False in a child that was forked since. Costs a load.
  bool is_own() const;

 private:
  std::uint64_t forks_;  ///< of the forks that led to this process
};

}  // namespace portwave
