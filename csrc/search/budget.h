// When a search has to stop, and when going on would be of no use.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "search.h"

namespace snakekit {

using Clock = std::chrono::steady_clock;

// The hard limit in time and positions, and how fast iterations grow.
class Budget {
 public:
  explicit Budget(const Limits& limits)
      : begin_(Clock::now()),
        nodes_(limits.max_nodes),
        micros_(limits.budget_us),
        optimum_(limits.optimum) {}

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  [[nodiscard]] bool limited() const { return nodes_ > 0 || micros_ > 0; }
  [[nodiscard]] bool late() const {
    return micros_ > 0 && 1e6 * seconds() >= share_ * static_cast<double>(micros_);
  }
  [[nodiscard]] bool out_of_nodes(std::int64_t nodes) const {
    return nodes_ > 0 && static_cast<double>(nodes) >= share_ * static_cast<double>(nodes_);
  }
  // Leaves only this share of the limits to what follows; the whole of them again with 1.
  void allow(double share) { share_ = share; }

  // What is gone of the nearer limit, 0..1 until it is reached.
  [[nodiscard]] double used(std::int64_t nodes) const {
    double share = 0;
    if (nodes_ > 0) share = static_cast<double>(nodes) / static_cast<double>(nodes_);
    if (micros_ > 0) share = std::max(share, 1e6 * seconds() / static_cast<double>(micros_));
    return share / share_;
  }

  // To be told of every completed iteration.
  void iterated(std::int64_t nodes, bool changed) {
    growth_ = last_ > 0 ? static_cast<double>(nodes - before_) / static_cast<double>(last_) : 0;
    last_ = std::max<std::int64_t>(nodes - before_, 1);
    before_ = nodes;
    settled_ = changed ? 0 : settled_ + 1;
  }

  // Nothing that the next iteration is likely to reach in time would change the move.
  [[nodiscard]] bool enough(std::int64_t nodes) const;

 private:
  Clock::time_point begin_;
  std::int64_t nodes_;
  std::int64_t micros_;
  double optimum_;
  double share_ = 1;         // of the limits that may be used now
  std::int64_t before_ = 0;  // nodes at the end of the last iteration
  std::int64_t last_ = 0;    // nodes of the last iteration
  double growth_ = 0;        // of the last iteration over the one before
  int settled_ = 0;          // iterations since the best move changed
};

inline constexpr double kLeastGrowth = 1.5;
inline constexpr double kMostGrowth = 6;
inline constexpr double kFirstMove = 0.5;  // of an iteration's cost
inline constexpr int kSettled = 2;         // iterations

inline bool Budget::enough(std::int64_t nodes) const {
  if (!limited() || last_ == 0) return false;
  const double gone = used(nodes);
  const double next = gone * static_cast<double>(last_) / static_cast<double>(nodes) *
                      std::clamp(growth_, kLeastGrowth, kMostGrowth);
  // The best move comes first and takes the most; with less than that an iteration decides nothing.
  if (1 - gone < kFirstMove * next) return true;
  return settled_ >= kSettled && gone + next > optimum_;
}

}  // namespace snakekit
