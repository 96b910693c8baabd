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

  // Iterations of another kind follow, of which those until now tell nothing. They may take as long
  // as those did, even with the move settled.
  void begin_anew(std::int64_t nodes) {
    optimum_ = std::max(optimum_, 2 * used(nodes));
    before_ = nodes;
    last_ = 0;
    growth_ = 0;
    settled_ = 0;
  }

  // Nothing that the next iteration is likely to reach in time would change the move. With less
  // than the share `least` of it, it decides nothing.
  [[nodiscard]] bool enough(std::int64_t nodes, double least) const;

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
// Iterations that a best move has to stand for; each that is missing allows twice as much.
inline constexpr int kSettled = 2;

inline bool Budget::enough(std::int64_t nodes, double least) const {
  if (!limited() || last_ == 0) return false;
  const double gone = used(nodes);
  const double next = gone * static_cast<double>(last_) / static_cast<double>(nodes) *
                      std::clamp(growth_, kLeastGrowth, kMostGrowth);
  if (1 - gone < least * next) return true;
  const int missing = std::max(0, kSettled - settled_);
  return gone + next > optimum_ * (1 << missing);
}

}  // namespace snakekit
