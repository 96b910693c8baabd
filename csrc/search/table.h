// Transposition table, shared by the threads of one search: lock-free, and torn entries are misses.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace snakekit {

enum class Bound : std::uint8_t { kNone, kUpper, kLower, kExact };

struct Entry {
  std::int16_t score = 0;
  std::uint16_t reply = 0;  // joint reply that refuted the move, two bits a seat
  std::uint8_t depth = 0;
  std::uint8_t move = 0;
  Bound bound = Bound::kNone;
};

class Table {
 public:
  explicit Table(int megabytes) {
    std::size_t n = 256;
    while (n * 2 * sizeof(Bucket) <= static_cast<std::size_t>(megabytes) << 20) n *= 2;
    buckets_.reset(allocate(n));
    mask_ = n - 1;
  }

  // Entries of earlier searches stay usable and are the first to be replaced.
  void next_generation() { ++generation_; }

  [[nodiscard]] bool find(std::uint64_t key, Entry& out) const {
    for (const Slot& slot : buckets_[key & mask_]) {
      const auto data = slot.data.load(std::memory_order_relaxed);
      if ((slot.check.load(std::memory_order_relaxed) ^ data) != key || data == 0) continue;
      out = unpack(data);
      return true;
    }
    return false;
  }

  // Two tiers: the deepest entries of this generation keep their slots, and one slot takes
  // whatever comes, since most of what is asked for again is recent.
  void store(std::uint64_t key, const Entry& e) {
    Bucket& bucket = buckets_[key & mask_];
    Slot* chosen = &bucket[kSlots - 1];
    int least = e.depth + 1;
    for (int i = 0; i < kSlots; ++i) {
      const auto data = bucket[i].data.load(std::memory_order_relaxed);
      if ((bucket[i].check.load(std::memory_order_relaxed) ^ data) == key) {
        chosen = &bucket[i];
        break;
      }
      if (i < kSlots - 1 && worth(data) < least) {
        least = worth(data);
        chosen = &bucket[i];
      }
    }
    const auto data = pack(e);
    chosen->check.store(key ^ data, std::memory_order_relaxed);
    chosen->data.store(data, std::memory_order_relaxed);
  }

  void prefetch(std::uint64_t key) const { __builtin_prefetch(&buckets_[key & mask_]); }

 private:
  static constexpr int kSlots = 4;
  // The key is stored xor the data, so that halves from two writers do not match any key.
  struct Slot {
    std::atomic<std::uint64_t> check{0};
    std::atomic<std::uint64_t> data{0};
  };
  struct alignas(64) Bucket : std::array<Slot, kSlots> {};

  [[nodiscard]] std::uint64_t pack(const Entry& e) const {
    return std::uint64_t{static_cast<std::uint16_t>(e.score)} | std::uint64_t{e.reply} << 16 |
           std::uint64_t{e.depth} << 32 | std::uint64_t{e.move} << 40 |
           static_cast<std::uint64_t>(e.bound) << 44 | std::uint64_t{generation_} << 48;
  }
  static Entry unpack(std::uint64_t d) {
    Entry e;
    e.score = static_cast<std::int16_t>(d & 0xffff);
    e.reply = static_cast<std::uint16_t>(d >> 16);
    e.depth = static_cast<std::uint8_t>(d >> 32);
    e.move = static_cast<std::uint8_t>((d >> 40) & 15);
    e.bound = static_cast<Bound>((d >> 44) & 15);
    return e;
  }
  [[nodiscard]] int worth(std::uint64_t d) const {
    if (d == 0) return -1;
    const bool current = static_cast<std::uint8_t>(d >> 48) == generation_;
    return static_cast<std::uint8_t>(d >> 32) + (current ? 0 : -kMaxAge);
  }
  static constexpr int kMaxAge = 256;

  // Large pages if the system has them: every look is a miss, and of small pages also in the
  // processor's table of pages.
  static constexpr std::size_t kLargePage = std::size_t{2} << 20;
  static Bucket* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(Bucket);
    const std::size_t alignment = std::min(bytes, kLargePage);
    void* memory = std::aligned_alloc(alignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
#ifdef __linux__
    if (alignment == kLargePage) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    auto* buckets = static_cast<Bucket*>(memory);
    std::uninitialized_value_construct_n(buckets, n);
    return buckets;
  }
  struct Free {
    void operator()(Bucket* b) const { std::free(b); }
  };

  std::unique_ptr<Bucket[], Free> buckets_;
  std::size_t mask_ = 0;
  std::uint8_t generation_ = 0;
};

}  // namespace snakekit
