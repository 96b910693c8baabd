// Transposition table: buckets of two, the deeper or newer entry is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace snakekit {

enum class Bound : std::uint8_t { kNone, kUpper, kLower, kExact };

struct Entry {
  std::uint64_t key = 0;
  std::int16_t score = 0;
  std::uint16_t reply = 0;  // joint reply that refuted the move, two bits a seat
  std::uint8_t depth = 0;
  Bound bound = Bound::kNone;
  std::uint8_t generation = 0;
  std::uint8_t move = 0;
};
static_assert(sizeof(Entry) == 16);

class Table {
 public:
  explicit Table(int megabytes) {
    std::size_t n = 1024;
    while (n * 2 * sizeof(Entry) <= static_cast<std::size_t>(megabytes) << 20) n *= 2;
    entries_.resize(n);
    mask_ = n - 2;
  }

  void next_generation() { ++generation_; }

  [[nodiscard]] const Entry* find(std::uint64_t key) const {
    const Entry* e = &entries_[key & mask_];
    if (e[0].key == key && e[0].bound != Bound::kNone) return &e[0];
    if (e[1].key == key && e[1].bound != Bound::kNone) return &e[1];
    return nullptr;
  }

  void store(Entry fresh) {
    fresh.generation = generation_;
    Entry* e = &entries_[fresh.key & mask_];
    if (e[0].key != fresh.key && (e[1].key == fresh.key || worth(e[1]) < worth(e[0]))) ++e;
    *e = fresh;
  }

 private:
  [[nodiscard]] int worth(const Entry& e) const {
    if (e.bound == Bound::kNone) return -1;
    return e.depth + (e.generation == generation_ ? 64 : 0);
  }

  std::vector<Entry> entries_;
  std::size_t mask_;
  std::uint8_t generation_ = 0;
};

}  // namespace snakekit
