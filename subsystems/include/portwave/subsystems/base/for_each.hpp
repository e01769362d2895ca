#pragma once

#include <type_traits>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Runs body(0) … body(count − 1), in any order and possibly at once, and returns when all are done. Bodies
/// with different i must write to different places, so that results do not depend on the executor. This
/// class runs them one after another on the calling thread.
class ForEach {
 public:
  virtual ~ForEach() = default;

  template <class Body>
  void operator()(int count, const Body& body) const {
    run(
        count, [](const void* b, int i) { (*static_cast<const Body*>(b))(i); }, &body);
  }

 protected:
  virtual void run(int count, void (*call)(const void* body, int i), const void* body) const {
    for (int i = 0; i < count; ++i) call(body, i);
  }
};

}  // namespace portwave
