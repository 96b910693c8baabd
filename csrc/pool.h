// Threads that stay: each call splits the same way, so results never depend on scheduling.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace snakekit {

class Pool {
 public:
  explicit Pool(int threads) {
    for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { serve(t); });
  }
  ~Pool() {
    stop_.store(true, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    for (auto& w : workers_) w.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls job(first, last, thread) on every thread with its share of 0..n and waits for all.
  template <class F>
  void run(int n, F&& job) {
    const int shares = threads();
    if (shares == 1 || n < 2) {
      job(0, n, 0);
      return;
    }
    job_ = [&job, n, shares](int t) {
      const auto cut = [&](int k) { return static_cast<int>(std::int64_t{n} * k / shares); };
      job(cut(t), cut(t + 1), t);
    };
    left_.store(shares - 1, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
    job_(0);
    for (int spins = 0; left_.load(std::memory_order_acquire) != 0; ++spins) {
      if (spins < kSpins) continue;
      const int left = left_.load(std::memory_order_acquire);
      if (left != 0) left_.wait(left, std::memory_order_acquire);
    }
  }

 private:
  static constexpr int kSpins = 2000;  // some microseconds: a step is short, a wake-up is not

  void serve(int t) {
    std::uint32_t seen = 0;
    for (;;) {
      for (int spins = 0; round_.load(std::memory_order_acquire) == seen; ++spins) {
        if (spins >= kSpins) round_.wait(seen, std::memory_order_acquire);
      }
      ++seen;
      if (stop_.load(std::memory_order_relaxed)) return;
      job_(t);
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
    }
  }

  std::vector<std::thread> workers_;
  std::function<void(int)> job_;
  std::atomic<std::uint32_t> round_{0};
  std::atomic<int> left_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace snakekit
