#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "parallel/threads/process_stamp.hpp"

namespace portwave {

/// Takes rows of numbers from a thread that steps, and has them written by one of its own.
///
/// Rows lie in a few blocks: filling one takes no lock, and a block that is full is handed over. Where
/// the writer cannot keep up, the thread that steps waits for a block; no row is lost. Memory is that of
/// the blocks, and is allocated at construction. If the system gives no thread, the stepping thread writes.
/// In a child of the process that made it rows are refused.
class RowWriter {
 public:
  /// Writes the rows of a block, in order, on the thread of the writer. What it throws is thrown from
  /// the next call of `row` that needs a block, or of `drain`; rows after that are dropped.
  using Write = std::function<void(std::span<const double> rows)>;

  /// `longest`: most numbers of a row.
  RowWriter(std::size_t longest, Write write);
  /// Drops rows that are not yet written.
  ~RowWriter();
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;

  /// Space for a row of `size` numbers, to be filled before the next call.
  std::span<double> row(std::size_t size) {
    if (block_->size() - used_ < size) hand_over();
    used_ += size;
    return {block_->data() + used_ - size, size};
  }
  /// Waits until all rows are written.
  void drain();

  /// How often the thread that steps had to wait for the writer, and how long in all [s].
  std::int64_t waits() const { return waits_; }
  double waited_s() const { return waited_s_; }

 private:
  static constexpr int kBlocks = 4;
  static constexpr std::size_t kBlockNumbers = std::size_t{1} << 15;

  struct Full {
    std::vector<double>* block;
    std::size_t used;
  };

  void hand_over();
  void run();
  void throw_failure();
  void refuse_in_child() const;

  Write write_;
  std::vector<double> blocks_[kBlocks];
  std::vector<double>* block_;  // being filled
  std::size_t used_ = 0;
  std::int64_t waits_ = 0;
  double waited_s_ = 0.0;

  ProcessStamp process_;
  std::mutex mutex_;  // of what follows
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::vector<std::vector<double>*> free_;
  std::vector<Full> full_;  // in order
  bool writing_ = false;
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // the last to be made: it uses all the others
};

}  // namespace portwave
