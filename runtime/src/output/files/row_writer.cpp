#include "output/files/row_writer.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace portwave {

RowWriter::RowWriter(std::size_t longest, Write write) : write_(std::move(write)) {
  for (std::vector<double>& block : blocks_) block.resize(std::max(kBlockNumbers, longest));
  block_ = &blocks_[0];
  free_.reserve(kBlocks);
  full_.reserve(kBlocks);
  for (int i = 1; i < kBlocks; ++i) free_.push_back(&blocks_[i]);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // No more threads are allowed: whoever steps writes.
  }
}

RowWriter::~RowWriter() {
  if (!thread_.joinable()) return;
  if (!process_.is_own()) {
    // There is no such thread here, but it counts as one that waits.
    thread_.detach();
    static_cast<void>(changed_.release());
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_->notify_all();
  thread_.join();
}

void RowWriter::throw_failure() {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void RowWriter::refuse_in_child() const {
  if (process_.is_own()) return;
  throw std::runtime_error("results are written by the process that began them, not by its child");
}

void RowWriter::hand_over() {
  refuse_in_child();
  if (!thread_.joinable()) return write_({block_->data(), std::exchange(used_, 0)});
  std::unique_lock lock(mutex_);
  throw_failure();
  if (used_ > 0) full_.push_back({block_, std::exchange(used_, 0)});
  changed_->notify_all();
  if (free_.empty()) {
    ++waits_;
    const auto start = std::chrono::steady_clock::now();
    changed_->wait(lock, [this] { return !free_.empty() || failure_ != nullptr; });
    waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    throw_failure();
  }
  block_ = free_.back();
  free_.pop_back();
}

void RowWriter::drain() {
  refuse_in_child();
  if (used_ > 0) hand_over();
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  changed_->wait(lock, [this] { return (full_.empty() && !writing_) || failure_ != nullptr; });
  throw_failure();
}

void RowWriter::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_->wait(lock, [this] { return ends_ || !full_.empty(); });
    if (ends_) return;
    const Full next = full_.front();
    full_.erase(full_.begin());
    writing_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      write_({next.block->data(), next.used});
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    writing_ = false;
    free_.push_back(next.block);
    changed_->notify_all();
    if (failure == nullptr) continue;
    failure_ = failure;
    full_.clear();
    changed_->wait(lock, [this] { return ends_; });
    return;
  }
}

}  // namespace portwave
