#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace portwave::detail {

/// `size` doubles of scratch for the life of this object, contents unspecified.
///
/// Small requests live on the stack. Larger ones reuse a buffer that the thread keeps, one per
/// nesting level, so that a callback which itself needs scratch is safe. Allocates only when a
/// thread asks for more than ever before at that level.
class Workspace {
 public:
  explicit Workspace(std::size_t size) {
    if (size <= kOnStack) {
      data_ = small_.data();
      return;
    }
    Pool& pool = this_thread();
    if (pool.depth == pool.buffers.size()) pool.buffers.emplace_back();
    std::vector<double>& buffer = pool.buffers[pool.depth];
    if (buffer.size() < size) buffer.resize(size);
    data_ = buffer.data();
    pooled_ = true;
    ++pool.depth;
  }
  ~Workspace() {
    if (pooled_) --this_thread().depth;
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  double* data() { return data_; }

 private:
  static constexpr std::size_t kOnStack = 512;

  struct Pool {
    std::size_t depth = 0;
    std::vector<std::vector<double>> buffers;
  };
  static Pool& this_thread() {
    thread_local Pool pool;
    return pool;
  }

  alignas(64) std::array<double, kOnStack> small_;
  double* data_ = nullptr;
  bool pooled_ = false;
};

}  // namespace portwave::detail
