// Fixed-size set of board cells, one bit a cell.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace snakekit {

// Without the instruction, std::popcount is a call.
inline int ones(std::uint64_t v) {
#ifdef __POPCNT__
  return std::popcount(v);
#else
  v -= (v >> 1) & 0x5555555555555555ULL;
  v = (v & 0x3333333333333333ULL) + ((v >> 2) & 0x3333333333333333ULL);
  v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
  return static_cast<int>((v * 0x0101010101010101ULL) >> 56);
#endif
}

template <int Words>
struct Bits {
  std::array<std::uint64_t, Words> w{};

  static Bits one(int i) {
    Bits b;
    b.set(i);
    return b;
  }

  [[nodiscard]] bool test(int i) const { return (w[i >> 6] >> (i & 63)) & 1U; }
  void set(int i) { w[i >> 6] |= std::uint64_t{1} << (i & 63); }
  void clear(int i) {
    // All words: one word written and both read at once by the next operation would wait.
    if constexpr (Words <= 2) {
      for (int j = 0; j < Words; ++j) w[j] &= ~(std::uint64_t{(i >> 6) == j ? 1U : 0U} << (i & 63));
    } else {
      w[i >> 6] &= ~(std::uint64_t{1} << (i & 63));
    }
  }

  [[nodiscard]] bool any() const {
    std::uint64_t x = 0;
    for (auto v : w) x |= v;
    return x != 0;
  }
  [[nodiscard]] int count() const {
    int n = 0;
    for (auto v : w) n += ones(v);
    return n;
  }

  // Shift towards higher or lower cells, 0 < n < 64.
  [[nodiscard]] Bits up(int n) const {
    Bits r;
    for (int i = Words - 1; i > 0; --i) r.w[i] = (w[i] << n) | (w[i - 1] >> (64 - n));
    r.w[0] = w[0] << n;
    return r;
  }
  [[nodiscard]] Bits down(int n) const {
    Bits r;
    for (int i = 0; i < Words - 1; ++i) r.w[i] = (w[i] >> n) | (w[i + 1] << (64 - n));
    r.w[Words - 1] = w[Words - 1] >> n;
    return r;
  }

  Bits& operator|=(const Bits& o) {
    for (int i = 0; i < Words; ++i) w[i] |= o.w[i];
    return *this;
  }
  Bits& operator&=(const Bits& o) {
    for (int i = 0; i < Words; ++i) w[i] &= o.w[i];
    return *this;
  }
  friend Bits operator|(Bits a, const Bits& b) { return a |= b; }
  friend Bits operator&(Bits a, const Bits& b) { return a &= b; }
  friend Bits operator~(Bits a) {
    for (auto& v : a.w) v = ~v;
    return a;
  }
  friend bool operator==(const Bits&, const Bits&) = default;

  template <class F>
  void for_each(F&& f) const {
    for (int i = 0; i < Words; ++i)
      for (std::uint64_t v = w[i]; v != 0; v &= v - 1) f(i * 64 + std::countr_zero(v));
  }
};

}  // namespace snakekit
