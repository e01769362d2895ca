#include "parallel/threads/activity.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace portwave {

void Activity::refuse() const {
  if (kind() == Kind::torn) {
    throw std::logic_error(
        "there was not enough memory to restore the last snapshot, of which a part was read: "
        "restore one before anything else");
  }
  throw std::logic_error(
      kind() == Kind::told
          ? "observers are told of a step: they may read the run and set inputs, but neither step "
            "nor change it before the step has ended"
          : "the run is in a step: the functions that it calls (a part, an input, a block, an "
            "observer) can neither step nor change it, and one thread at a time may use it");
}

void Activity::expect_to_end(const char* what) const noexcept {
  if (is_none() || kind() == Kind::torn) return;  // nobody is at it
  std::fprintf(stderr,
               "portwave: %s was destroyed or moved by a function that it had called and that "
               "should have returned to it; the program cannot go on\n",
               what);
  std::abort();
}

}  // namespace portwave
