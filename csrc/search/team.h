// What the threads of one search share besides the table: which moves are being searched, so that
// another thread takes them last and finds their results (Kerrigan's simplified ABDADA).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace snakekit {

class Team {
 public:
  [[nodiscard]] bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  void stop() { stop_.store(true, std::memory_order_relaxed); }

  // A move is known by a hash of the position, the move and the depth. Wrong answers cost time
  // only.
  [[nodiscard]] bool busy(std::uint64_t h) const {
    return slot(h).load(std::memory_order_relaxed) == h;
  }
  void enter(std::uint64_t h) { slot(h).store(h, std::memory_order_relaxed); }
  void leave(std::uint64_t h) {
    if (busy(h)) slot(h).store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t kSlots = 1 << 12;
  std::atomic<std::uint64_t>& slot(std::uint64_t h) { return slots_[h % kSlots]; }
  [[nodiscard]] const std::atomic<std::uint64_t>& slot(std::uint64_t h) const {
    return slots_[h % kSlots];
  }

  std::array<std::atomic<std::uint64_t>, kSlots> slots_{};
  std::atomic<bool> stop_{false};
};

}  // namespace snakekit
