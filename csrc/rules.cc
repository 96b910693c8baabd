#include "rules.h"

#include <algorithm>

namespace snakekit {

namespace {

// Positive damage cannot take a snake below 0, negative cannot lift it over 100.
int after_hazard(int health, int layers, int damage) {
  for (int i = 0; i < layers; ++i) health = std::clamp(health - damage, 0, kMaxHealth);
  return health;
}

template <class T>
void move_snake(State<T>& s, int seat, int move, Undo<T>* undo) {
  auto& k = s.h.snake[seat];
  auto& ring = s.ring[seat];
  constexpr int mask = T::kRing - 1;
  const auto old_head = ring[k.front];
  const auto new_head = s.geo->next[old_head][move];
  const auto popped = ring[(k.front + k.length - 1) & mask];
  if (undo != nullptr) undo->popped[seat] = popped;
  k.hash = (k.hash - kHash.segment[popped] * kHash.power[k.length - 1]) * kHashBase +
           kHash.segment[new_head];
  if (k.length > 1) {
    const auto new_tail = ring[(k.front + k.length - 2) & mask];
    if (new_tail != popped && s.on_board(popped)) k.body.clear(popped);
    if (s.on_board(old_head)) k.body.set(old_head);
  }
  k.front = static_cast<std::int16_t>((k.front - 1) & mask);
  ring[k.front] = new_head;
  if (k.irregular) [[unlikely]]
    s.rebuild_body(seat);
}

template <class T>
void grow(State<T>& s, int seat) {
  auto& k = s.h.snake[seat];
  constexpr int mask = T::kRing - 1;
  if (k.length >= T::kRing - 1) [[unlikely]]
    return;
  const auto tail = s.tail(seat);
  s.ring[seat][(k.front + k.length) & mask] = tail;
  k.hash += kHash.segment[tail] * kHash.power[k.length];
  if (k.length == 1 && s.on_board(tail)) k.body.set(tail);
  ++k.length;
}

template <class T>
void remove_food(State<T>& s, int cell, Undo<T>* undo) {
  const auto begin = s.food.begin();
  const auto end = begin + s.h.num_food;
  const auto at = std::find(begin, end, cell);
  if (undo != nullptr) {
    undo->eaten_at[undo->num_eaten] = static_cast<std::int16_t>(at - begin);
    undo->eaten[undo->num_eaten++] = static_cast<typename T::Cell>(cell);
  }
  std::copy(at + 1, end, at);
  --s.h.num_food;
  s.h.food.clear(cell);
  s.h.food_hash ^= kHash.food[cell];
}

template <class T>
void feed(State<T>& s, Undo<T>* undo) {
  std::array<int, T::kSnakes> eaten;
  int n = 0;
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i) || s.h.snake[i].cause != Cause::kNone) continue;
    const int head = s.head(i);
    if (!s.on_board(head) || !s.h.food.test(head)) continue;
    s.h.snake[i].health = kMaxHealth;
    grow(s, i);
    if (std::find(eaten.begin(), eaten.begin() + n, head) == eaten.begin() + n) eaten[n++] = head;
  }
  for (int i = 0; i < n; ++i) remove_food(s, eaten[i], undo);
}

// Layers under a head, which may have left the board over the top into pending ones.
template <class T>
int layers_at(const State<T>& s, int head) {
  if (s.on_board(head)) return s.layers[head];
  if (!s.pending_hazard) return 0;
  const auto [x, y] = s.geo->point(head);
  if (x < 0 || x >= s.geo->width || y < s.geo->height) return 0;
  return s.layers[y * s.geo->width + x];
}

template <class T>
void damage(State<T>& s) {
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i)) continue;
    const int head = s.head(i);
    const int layers = layers_at(s, head);
    if (layers == 0 || (s.on_board(head) && s.h.food.test(head))) continue;
    auto& k = s.h.snake[i];
    k.health = static_cast<std::int16_t>(after_hazard(k.health, layers, s.rules.hazard_damage));
    if (k.health <= 0) k.cause = Cause::kHazard;
  }
}

// The longest of the others that satisfy `hits`, the earliest seat among equals; -1 if none.
template <class T, class F>
int longest(const State<T>& s, std::uint32_t standing, int self, F&& hits) {
  int best = -1;
  for (int i = 0; i < s.seats; ++i) {
    if (i == self || ((standing >> i) & 1) == 0 || !hits(i)) continue;
    if (best < 0 || s.h.snake[i].length > s.h.snake[best].length) best = i;
  }
  return best;
}

struct Verdict {
  Cause cause = Cause::kNone;
  int by = -1;
};

template <class T>
Verdict collide(const State<T>& s, std::uint32_t standing, int i) {
  const int head = s.head(i);
  if (s.h.snake[i].body.test(head)) return {Cause::kSelf, i};
  const int body = longest(s, standing, i, [&](int j) { return s.h.snake[j].body.test(head); });
  if (body >= 0) return {Cause::kBody, body};
  const int killer = longest(s, standing, i, [&](int j) {
    return s.head(j) == head && s.h.snake[j].length >= s.h.snake[i].length;
  });
  if (killer >= 0) return {Cause::kHead, killer};
  return {};
}

template <class T>
void eliminate(State<T>& s) {
  const std::int32_t turn = s.h.turn + 1;
  std::uint32_t standing = 0;
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i)) continue;
    auto& k = s.h.snake[i];
    if (k.cause == Cause::kNone) {
      if (k.health <= 0) {
        k.cause = Cause::kHealth;
      } else if (!s.on_board(s.head(i))) {
        k.cause = Cause::kWall;
      } else {
        standing |= 1U << i;
      }
    }
  }
  // Bodies and heads of all that stand; a snake that shares its head's cell with none of them
  // lives.
  typename State<T>::Set blocked;
  typename State<T>::Set heads;
  bool contact = false;
  for (int i = 0; i < s.seats; ++i) {
    if (((standing >> i) & 1) == 0) continue;
    blocked |= s.h.snake[i].body;
    const int head = s.head(i);
    contact |= heads.test(head);
    heads.set(head);
  }
  std::uint32_t out = s.h.alive & ~standing;
  if (contact || (heads & blocked).any()) {
    std::array<Verdict, T::kSnakes> verdict;
    for (int i = 0; i < s.seats; ++i) {
      if ((standing >> i) & 1) verdict[i] = collide(s, standing, i);
    }
    for (int i = 0; i < s.seats; ++i) {
      if (((standing >> i) & 1) == 0 || verdict[i].cause == Cause::kNone) continue;
      s.h.snake[i].cause = verdict[i].cause;
      s.h.snake[i].by = static_cast<std::int8_t>(verdict[i].by);
      out |= 1U << i;
    }
  }
  for (int i = 0; i < s.seats; ++i) {
    if ((out >> i) & 1) s.h.snake[i].out_turn = turn;
  }
  s.h.alive = static_cast<std::uint16_t>(s.h.alive & ~out);
}

template <class T>
void constrict(State<T>& s) {
  s.h.num_food = 0;
  s.h.food = {};
  s.h.food_hash = 0;
  for (int i = 0; i < s.seats; ++i) {
    s.h.snake[i].health = kMaxHealth;
    if (!s.tail_stacked(i)) grow(s, i);
  }
}

}  // namespace

template <class T>
int default_move(const State<T>& s, int seat) {
  if (s.h.snake[seat].length < 2) return kUp;
  const auto head = s.head(seat);
  const auto neck = s.segment(seat, 1);
  if (head == neck) return kUp;
  for (int m = 0; m < kMoves; ++m) {
    if (s.geo->next[neck][m] == head) return m;
  }
  return kUp;
}

template <class T>
void step(State<T>& s, const Moves& moves, Undo<T>* undo) {
  if (undo != nullptr) {
    undo->header = s.h;
    undo->num_eaten = 0;
  }
  if (s.game_over()) return;
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i)) continue;
    const bool valid = moves[i] >= 0 && moves[i] < kMoves;
    move_snake(s, i, valid ? static_cast<int>(moves[i]) : default_move(s, i), undo);
    --s.h.snake[i].health;
  }
  if (s.hazard.any() || s.pending_hazard) damage(s);
  feed(s, undo);
  eliminate(s);
  if (s.rules.constrictor) constrict(s);
  ++s.h.turn;
}

template <class T>
void initialise(State<T>& s) {
  if (s.rules.constrictor && !s.game_over()) constrict(s);
}

template <class T>
void unmake(State<T>& s, const Undo<T>& undo) {
  // Not s.h.num_food: constrictor has set that to zero and left the array as it was.
  auto end = s.food.begin() + undo.header.num_food - undo.num_eaten;
  for (int i = undo.num_eaten - 1; i >= 0; --i, ++end) {
    const auto at = s.food.begin() + undo.eaten_at[i];
    std::copy_backward(at, end, end + 1);
    *at = undo.eaten[i];
  }
  const auto moved = undo.header.alive;
  const bool over = undo.header.turn == s.h.turn;
  s.h = undo.header;
  if (over) return;
  for (int i = 0; i < s.seats; ++i) {
    if (((moved >> i) & 1) == 0) continue;
    const auto& k = s.h.snake[i];
    s.ring[i][(k.front + k.length - 1) & (T::kRing - 1)] = undo.popped[i];
  }
}

template <class T>
int legal_mask(const State<T>& s, int seat) {
  const auto head = s.head(seat);
  const bool has_neck = s.h.snake[seat].length > 1;
  int mask = 0;
  for (int m = 0; m < kMoves; ++m) {
    const auto to = s.geo->next[head][m];
    if (!s.on_board(to)) continue;
    if (has_neck && to == s.segment(seat, 1)) continue;
    mask |= 1 << m;
  }
  return mask;
}

namespace {

// Could hunger or hazards take this snake out this turn? Then its body may not block anyone.
// Food saves it from both.
template <class T>
bool may_starve(const State<T>& s, int seat) {
  const int health = s.h.snake[seat].health - 1;
  const bool harmed = s.rules.hazard_damage > 0 && s.hazard.any();
  if (health > 0 && !harmed) return false;
  const auto head = s.head(seat);
  for (int m = 0; m < kMoves; ++m) {
    const auto to = s.geo->next[head][m];
    if (!s.on_board(to) || s.h.food.test(to)) continue;
    const int left =
        s.hazard.test(to) ? after_hazard(health, s.layers[to], s.rules.hazard_damage) : health;
    if (left <= 0) return true;
  }
  return false;
}

template <class T>
bool dies_at(const State<T>& s, int seat, int to) {
  // A single segment grows onto its own head and collides with itself.
  if (s.h.food.test(to)) return s.h.snake[seat].length == 1;
  const int health = s.h.snake[seat].health - 1;
  if (!s.hazard.test(to)) return health <= 0;
  return after_hazard(health, s.layers[to], s.rules.hazard_damage) <= 0;
}

}  // namespace

template <class T>
int safe_mask(const State<T>& s, int seat) {
  typename State<T>::Set blocked;
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i)) continue;
    if (i != seat && may_starve(s, i)) continue;
    const auto& k = s.h.snake[i];
    auto body = k.body;
    // Feeding grows behind a tail that has moved on, so only a stacked tail stays.
    if (k.length > 1 && !k.irregular && !s.tail_stacked(i)) body.clear(s.tail(i));
    if (k.irregular) {
      body = {};
      for (int j = 1; j < k.length - 1; ++j) body.set(s.segment(i, j));
    }
    // The head becomes the neck, which nobody can enter.
    if (k.length > 1) body.set(s.head(i));
    blocked |= body;
  }
  const auto head = s.head(seat);
  int mask = 0;
  for (int m = 0; m < kMoves; ++m) {
    const auto to = s.geo->next[head][m];
    if (s.on_board(to) && !blocked.test(to) && !dies_at(s, seat, to)) mask |= 1 << m;
  }
  return mask;
}

#define SNAKEKIT_RULES(T)                                \
  template int default_move(const State<T>&, int);       \
  template void step(State<T>&, const Moves&, Undo<T>*); \
  template void initialise(State<T>&);                   \
  template void unmake(State<T>&, const Undo<T>&);       \
  template int legal_mask(const State<T>&, int);         \
  template int safe_mask(const State<T>&, int)

SNAKEKIT_RULES(Small);
SNAKEKIT_RULES(Large);

}  // namespace snakekit
