// Checks that need the insides of a state, and work for the sanitizers.
//
//   core_test games     seeded games: copied against made and taken back, incremental against
//   rebuilt core_test threads   searches, cancellation and batches on several threads
//
// Prints what was checked; the first failure ends the program with its place and code 1.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../board.h"
#include "../encode.h"
#include "../env.h"
#include "../maps.h"
#include "../players.h"
#include "../rng.h"
#include "../rules.h"
#include "../search/search.h"
#include "check.h"
#include "threads.h"

using namespace snakekit;  // NOLINT(google-build-using-namespace): a program of its own

namespace {

struct Counts {
  long turns = 0;
  long undone = 0;
  long observations = 0;
  long searches = 0;
  long large = 0;
};

const std::array<const char*, 6> kRulesets{"standard",    "solo",    "royale",
                                           "constrictor", "wrapped", "wrapped_constrictor"};

// Coiled snakes on random squares; `dead` more snakes on the list make a small board a large state.
Board opening(Rng& rng, int width, int height, int snakes, int dead, const Settings& settings) {
  std::vector<Point> cells;
  for (int x = 0; x < width; ++x) {
    for (int y = 0; y < height; ++y) cells.emplace_back(x, y);
  }
  for (int i = static_cast<int>(cells.size()) - 1; i > 0; --i)
    std::swap(cells[i], cells[rng.below(i + 1)]);
  std::vector<Snake> list;
  const int length = 1 + rng.below(4);
  for (int i = 0; i < snakes + dead; ++i) {
    Snake s;
    s.id = std::to_string(i);
    s.health = 100 - rng.below(60);
    s.body.assign(length, cells[i < snakes ? i : 0]);
    if (i >= snakes) s.eliminated_cause = "wall-collision";
    list.push_back(s);
  }
  const int food = std::min(3, static_cast<int>(cells.size()) - snakes);
  const std::vector<Point> meals(cells.begin() + snakes, cells.begin() + snakes + food);
  std::vector<Point> hazards;
  if (rng.below(2) == 0) {
    for (const auto& p : cells) {
      for (int layers = rng.below(6) - 3; layers > 0; --layers) hazards.push_back(p);
    }
    // A layer that is still to come onto the board, as in the snail map.
    if (rng.below(4) == 0) hazards.emplace_back(0, height);
  }
  Board board(width, height, list, meals, hazards, rng.below(3), settings);
  board.visit([](auto& s) { initialise(s); });
  return board;
}

template <class T>
void check_same_snake(const State<T>& a, const State<T>& b, int i) {
  const auto& x = a.h.snake[i];
  const auto& y = b.h.snake[i];
  CHECK(x.body == y.body);
  CHECK(x.hash == y.hash);
  CHECK(x.length == y.length);
  CHECK(x.health == y.health);
  CHECK(x.cause == y.cause);
  CHECK(x.by == y.by);
  CHECK(x.out_turn == y.out_turn);
  // A snake that died on itself is not looked at again.
  if (a.alive(i)) CHECK(x.irregular == y.irregular);
  for (int j = 0; j < x.length; ++j) CHECK(a.segment(i, j) == b.segment(i, j));
}

template <class T>
void check_same(const State<T>& a, const State<T>& b) {
  CHECK(a.geo == b.geo);
  CHECK(a.rules == b.rules);
  CHECK(a.seats == b.seats);
  for (int i = 0; i < a.seats; ++i) check_same_snake(a, b, i);
  CHECK(a.h.alive == b.h.alive);
  CHECK(a.h.turn == b.h.turn);
  CHECK(a.h.num_food == b.h.num_food);
  CHECK(a.h.food == b.h.food);
  CHECK(a.h.food_hash == b.h.food_hash);
  for (int i = 0; i < a.h.num_food; ++i) CHECK(a.food[i] == b.food[i]);
  CHECK(a.hazard == b.hazard);
  CHECK(a.pending_hazard == b.pending_hazard);
  CHECK(a.hazard_hash == b.hazard_hash);
  CHECK(a.layers == b.layers);
  CHECK(a.hash() == b.hash());
}

template <class T>
Moves choose(const State<T>& s, Rng& rng) {
  Moves m;
  m.fill(kInvalidMove);
  for (int i = 0; i < s.seats; ++i) {
    if (!s.alive(i)) continue;
    switch (rng.below(8)) {
      case 0:
        m[i] = static_cast<std::int8_t>(rng.below(6) - 1);
        break;
      case 1:
        m[i] = static_cast<std::int8_t>(reflex_move(s, i));
        break;
      case 2:
      case 3:
        m[i] = static_cast<std::int8_t>(random_move(s, i, rng.next()));
        break;
      default:
        m[i] = static_cast<std::int8_t>(greedy_move(s, i, rng.next()));
    }
  }
  return m;
}

// Several turns made one after the other and taken back in reverse.
template <class T>
void check_unmake(const State<T>& start, Rng& rng, Counts& n) {
  constexpr int kDeep = 4;
  auto work = std::make_unique<State<T>>(start);
  std::vector<State<T>> seen;
  seen.reserve(kDeep);
  std::array<Undo<T>, kDeep> undo;
  for (auto& u : undo) {
    seen.push_back(*work);
    auto copied = std::make_unique<State<T>>(*work);
    const Moves m = choose(*work, rng);
    step(*copied, m);
    step(*work, m, &u);
    check_same(*work, *copied);
  }
  for (int d = kDeep - 1; d >= 0; --d) {
    unmake(*work, undo[d]);
    check_same(*work, seen[d]);
    for (int i = 0; i < work->seats; ++i) CHECK(work->h.snake[i].front == seen[d].h.snake[i].front);
    ++n.undone;
  }
}

template <class T>
void check_rebuilt(const State<T>& s) {
  auto fresh = std::make_unique<State<T>>(s);
  fresh->rebuild();
  check_same(s, *fresh);
}

struct Tracked {
  std::vector<std::uint8_t> planes = std::vector<std::uint8_t>(kV1Planes * kV1Side * kV1Side, 7);
  V1Trace trace;
};

template <class T>
void check_observations(const State<T>& s, std::vector<Tracked>& tracked, Counts& n) {
  const int rows = s.geo->height;
  const int cols = s.geo->width;
  const Arrivals<T> arrivals(s);
  std::vector<std::uint8_t> exact(static_cast<std::size_t>(kV2Planes) * rows * cols, 9);
  std::vector<std::uint8_t> padded(static_cast<std::size_t>(kV2Planes) * (rows + 2) * (cols + 3),
                                   9);
  std::vector<std::uint8_t> v1(kV1Planes * kV1Side * kV1Side, 9);
  for (int seat = 0; seat < s.seats; ++seat) {
    encode_v1(s, seat, v1.data());
    encode_v1(s, seat, tracked[seat].planes.data(), tracked[seat].trace);
    CHECK(v1 == tracked[seat].planes);
    encode_v2(s, arrivals, seat, {exact.data(), rows, cols});
    encode_v2(s, arrivals, seat, {padded.data(), rows + 2, cols + 3});
    long sum = 0;
    for (int p = 0; p < kV2Planes; ++p) {
      for (int y = 0; y < rows; ++y) {
        CHECK(std::memcmp(&exact[static_cast<std::size_t>(p * rows + y) * cols],
                          &padded[static_cast<std::size_t>(p * (rows + 2) + y) * (cols + 3)],
                          static_cast<std::size_t>(cols)) == 0);
      }
    }
    for (const auto v : exact) sum += v;
    for (const auto v : padded) sum -= v;
    CHECK(sum == 0);
    ++n.observations;
  }
}

template <class T>
void check_search(const State<T>& s, Counts& n) {
  Limits limits;
  limits.max_depth = s.living() > 3 ? 1 : 2;
  for (int seat = 0; seat < s.seats; ++seat) {
    if (!s.alive(seat)) continue;
    auto kept = std::make_unique<State<T>>(s);
    Searcher searcher(1);
    const auto first = searcher.search(s, seat, limits);
    const auto again = Searcher(1).search(s, seat, limits);
    CHECK(first.depth >= 1);
    CHECK(first.nodes > 0);
    CHECK(first.nodes == again.nodes);
    CHECK(first.score == again.score);
    CHECK(first.best == again.best);
    check_same(s, *kept);
    ++n.searches;
  }
}

template <class T>
void play(State<T>& s, Rng& rng, Counts& n) {
  const int seats = s.seats;
  std::vector<Tracked> tracked(static_cast<std::size_t>(seats));
  for (int turn = 0; turn < 60 && !s.game_over(); ++turn) {
    check_unmake(s, rng, n);
    step(s, choose(s, rng));
    check_rebuilt(s);
    spawn_food(s, rng.next());
    check_rebuilt(s);
    if (turn % 4 == 0) check_observations(s, tracked, n);
    if (turn % 16 == 5) check_search(s, n);
    for (int i = 0; i < seats; ++i) {
      if (!s.alive(i)) continue;
      CHECK(s.on_board(s.head(i)));
      CHECK(s.h.snake[i].health > 0 && s.h.snake[i].health <= kMaxHealth);
      // The neck aside, which a snake of two may turn into, a safe move is a legal one.
      if (s.h.snake[i].length > 2) CHECK((safe_mask(s, i) & ~legal_mask(s, i)) == 0);
    }
    ++n.turns;
    if constexpr (std::is_same_v<T, Large>) ++n.large;
  }
}

void play_games(int games) {
  Counts n;
  Rng rng(2024);
  const std::array<std::pair<int, int>, 9> sizes{
      {{3, 3}, {5, 5}, {7, 7}, {11, 11}, {11, 7}, {5, 9}, {19, 19}, {25, 25}, {3, 25}}};
  for (int g = 0; g < games; ++g) {
    const auto [width, height] = sizes[static_cast<std::size_t>(g) % sizes.size()];
    Settings settings;
    settings.ruleset = kRulesets[static_cast<std::size_t>(rng.below(6))];
    settings.solo = rng.below(4) == 0;
    settings.hazard_damage = rng.below(40) - 10;
    settings.minimum_food = 2;
    const int snakes = std::min(width * height - 1, 1 + rng.below(g % 3 == 0 ? 8 : 4));
    const int dead = rng.below(4) == 0 ? 5 : 0;
    Board board = opening(rng, width, height, snakes, dead, settings);
    board.visit([&](auto& s) { play(s, rng, n); });
  }
  std::printf("games %d turns %ld (large %ld) taken back %ld observations %ld searches %ld\n",
              games, n.turns, n.large, n.undone, n.observations, n.searches);
  CHECK(n.turns > 10L * games);
  CHECK(n.large > 0 && n.large < n.turns);
  CHECK(n.searches > games);
}

}  // namespace

// An exception that gets out is a failure like any other: it ends the program.
int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape)
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "games") {
    play_games(argc > 2 ? static_cast<int>(std::strtol(argv[2], nullptr, 10)) : 100);
  } else if (what == "threads") {
    run_threads();
  } else {
    std::fprintf(stderr, "usage: core_test games [COUNT] | threads\n");
    return 2;
  }
  return 0;
}
