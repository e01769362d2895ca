#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace portwave {

/// While it lives, numbers below 2.2e-308 count as zero on this thread, if `wanted`.
///
/// In a large structure what one end does decays towards the other, down to subnormal numbers, on
/// which processors are a hundred times slower. They do not vanish by themselves: the smallest, times
/// 0.9, rounds to itself. Nothing on processors other than x86-64 and AArch64.
class SubnormalFlush {
 public:
  explicit SubnormalFlush(bool wanted) : wanted_(wanted) {
    if (!wanted_) return;
    before_ = control();
    set_control(before_ | kFlush);
  }
  ~SubnormalFlush() {
    if (wanted_) set_control((control() & kFlags) | (before_ & ~kFlags));
  }
  SubnormalFlush(const SubnormalFlush&) = delete;
  SubnormalFlush& operator=(const SubnormalFlush&) = delete;

 private:
  // The clobbers keep loads and stores, and so the arithmetic between them, on their side.
#if defined(__SSE2__)
  using Control = std::uint32_t;
  static constexpr Control kFlush = 0x8040;  // results, and operands
  static constexpr Control kFlags = 0x003f;  // exceptions that were raised
  static Control control() { return _mm_getcsr(); }
  static void set_control(Control value) { asm volatile("ldmxcsr %0" : : "m"(value) : "memory"); }
#elif defined(__aarch64__)
  using Control = std::uint64_t;
  static constexpr Control kFlush = Control{1} << 24;
  static constexpr Control kFlags = 0;
  static Control control() {
    Control value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value) : : "memory");
    return value;
  }
  static void set_control(Control value) { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
#else
  using Control = std::uint32_t;
  static constexpr Control kFlush = 0, kFlags = 0;
  static Control control() { return 0; }
  static void set_control(Control /*value*/) {}
#endif

  bool wanted_;
  Control before_ = 0;
};

}  // namespace portwave
