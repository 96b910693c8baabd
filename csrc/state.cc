#include "state.h"

#include <algorithm>

namespace snakekit {

namespace {

constexpr HashTables make_tables() noexcept {
  HashTables t;
  for (std::size_t i = 0; i < t.segment.size(); ++i)
    t.segment[i] = segment_key(static_cast<int>(i));
  for (std::size_t i = 0; i < t.food.size(); ++i) t.food[i] = mix64(0xf00dULL << 32 | i);
  t.power[0] = 1;
  for (std::size_t i = 1; i < t.power.size(); ++i) t.power[i] = t.power[i - 1] * kHashBase;
  return t;
}

std::uint64_t layers_key(int cell, int layers) {
  return mix64(static_cast<std::uint64_t>(cell) << 8 | static_cast<std::uint64_t>(layers));
}

}  // namespace

constinit const HashTables kHash = make_tables();

template <class T>
void State<T>::rebuild_body(int s) {
  auto& k = h.snake[s];
  k.body = Set{};
  k.irregular = false;
  Set seen;
  int end = k.length;  // segments from here on are the stack at the tail
  while (end > 1 && segment(s, end - 1) == segment(s, end - 2)) --end;
  for (int i = 0; i < k.length; ++i) {
    const int c = segment(s, i);
    if (!on_board(c)) continue;
    if (i < end && seen.test(c)) k.irregular = true;
    seen.set(c);
    if (i > 0) k.body.set(c);
  }
}

template <class T>
void State<T>::add_food(Cell c) {
  food[h.num_food++] = c;
  h.food.set(c);
  h.food_hash ^= kHash.food[c];
}

template <class T>
void State<T>::clear_food() {
  h.num_food = 0;
  h.food = Set{};
  h.food_hash = 0;
}

template <class T>
void State<T>::set_layers(int c, int n) {
  const auto key = [&](int layer) { return layer == 0 ? 0 : layers_key(c, layer); };
  const int kept = std::clamp(n, 0, kMaxLayers);
  hazard_hash += key(kept) - key(layers[c]);
  layers[c] = static_cast<std::uint8_t>(kept);
  if (kept == 0) {
    hazard.clear(c);
  } else {
    hazard.set(c);
  }
}

template <class T>
void State<T>::rebuild_hazards() {
  hazard = Set{};
  hazard_hash = 0;
  pending_hazard = false;
  for (int c = 0; c < std::min(2 * geo->cells, T::kLayers); ++c) {
    if (layers[c] == 0) continue;
    if (on_board(c)) {
      hazard.set(c);
    } else {
      pending_hazard = true;
    }
    hazard_hash += layers_key(c, layers[c]);
  }
}

template <class T>
void State<T>::rebuild() {
  h.food = Set{};
  h.food_hash = 0;
  for (int i = 0; i < h.num_food; ++i) {
    h.food.set(food[i]);
    h.food_hash ^= kHash.food[food[i]];
  }
  rebuild_hazards();
  for (int s = 0; s < seats; ++s) {
    auto& k = h.snake[s];
    k.hash = 0;
    for (int i = 0; i < k.length; ++i) k.hash += kHash.segment[segment(s, i)] * kHash.power[i];
    rebuild_body(s);
  }
}

template struct State<Small>;
template struct State<Large>;

}  // namespace snakekit
