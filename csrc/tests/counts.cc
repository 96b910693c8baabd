// Fixed amounts of work for counting: counts {rules|v1|v2|v3|search|search4} REPEATS.
//
// The difference between two runs, divided by the difference in units, is what one unit costs; the
// start of the program cancels out. Printed: units done, calls of the measured function, and how
// often the heap was asked for memory within them.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "../encode.h"
#include "../maps.h"
#include "../nash/encode_all.h"
#include "../players.h"
#include "../search/search.h"

namespace {
long g_allocations = 0;

void* counted(std::size_t size, std::size_t alignment) {
  ++g_allocations;
  if (size == 0) size = 1;
  // aligned_alloc wants whole multiples of the alignment.
  void* memory = alignment == 0 ? std::malloc(size)
                                : std::aligned_alloc(
                                      alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

// The array and nothrow forms call these.
void* operator new(std::size_t size) { return counted(size, 0); }
void* operator new(std::size_t size, std::align_val_t a) {
  return counted(size, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace {

using snakekit::Moves;
using snakekit::Small;
using snakekit::State;

constexpr int kGames = 16;
constexpr int kTurns = 120;
constexpr int kSnakes = 4;

struct Game {
  State<Small> start;
  std::vector<Moves> moves;
  std::vector<State<Small>> states;  // every seventh position
};

Game record(std::uint64_t seed, const std::vector<std::string>& ids) {
  Game g;
  const auto board = snakekit::new_game(11, 11, ids, seed, {});
  board.visit([&]<class T>(const State<T>& s) {
    if constexpr (std::is_same_v<T, Small>) g.start = s;
  });
  auto s = g.start;
  while (!s.game_over() && s.h.turn < kTurns) {
    Moves m;
    m.fill(-1);
    for (int i = 0; i < s.seats; ++i) {
      if (s.alive(i)) m[i] = static_cast<std::int8_t>(snakekit::greedy_move(s, i, seed));
    }
    if (s.h.turn % 7 == 0) g.states.push_back(s);
    g.moves.push_back(m);
    snakekit::step(s, m);
  }
  return g;
}

struct Done {
  long units = 0;
  long calls = 0;
  long allocations = 0;
};

// Runs `work` as one call and adds up what it asked of the heap.
template <class F>
void timed(Done& done, F&& work) {
  const long before = g_allocations;
  work();
  done.allocations += g_allocations - before;
  ++done.calls;
}

void rules(const std::vector<Game>& games, Done& done) {
  for (const auto& g : games) {
    auto s = g.start;
    for (const auto& m : g.moves) timed(done, [&] { snakekit::step(s, m); });
    done.units += s.h.turn;
  }
}

void encode(const State<Small>& s, int version, std::uint8_t* out) {
  if (version == 3) {
    snakekit::encode_v3(s, kSnakes, {out, 11, 11});
    return;
  }
  if (version == 1) {
    for (int i = 0; i < s.seats; ++i) {
      if (s.alive(i)) snakekit::encode_v1(s, i, out);
    }
    return;
  }
  const snakekit::Arrivals<Small> arrivals(s);
  for (int i = 0; i < s.seats; ++i) {
    if (s.alive(i)) snakekit::encode_v2(s, arrivals, i, {out, 11, 11});
  }
}

void encode_all(const std::vector<Game>& games, int version, Done& done) {
  std::vector<std::uint8_t> out(32768);
  // The first of each kind makes what all later ones use.
  if (done.calls == 0) {
    for (const auto& g : games) encode(g.states.back(), version, out.data());
  }
  for (const auto& g : games) {
    for (const auto& s : g.states) {
      timed(done, [&] { encode(s, version, out.data()); });
      ++done.units;
    }
  }
}

void search(const std::vector<Game>& games, int depth, Done& done) {
  for (const auto& g : games) {
    const auto& state = g.states[g.states.size() / 2];
    if (!state.alive(0)) continue;
    snakekit::Searcher searcher(1);
    snakekit::Limits limits;
    // The first search makes what all later ones use.
    limits.max_depth = 1;
    limits.max_n = false;
    searcher.search(state, 0, limits);
    limits = {};
    limits.max_depth = depth;
    timed(done, [&] { done.units += static_cast<long>(searcher.search(state, 0, limits).nodes); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[1];
  const int repeats = std::atoi(argv[2]);
  const std::vector<std::string> ids = what == "search"
                                           ? std::vector<std::string>{"a", "b"}
                                           : std::vector<std::string>{"a", "b", "c", "d"};
  std::vector<Game> games;
  for (int i = 0; i < kGames; ++i) games.push_back(record(i, ids));
  Done done;
  for (int i = 0; i < repeats; ++i) {
    if (what == "rules") rules(games, done);
    if (what == "v1") encode_all(games, 1, done);
    if (what == "v2") encode_all(games, 2, done);
    if (what == "v3") encode_all(games, 3, done);
    if (what == "search") search(games, 6, done);
    if (what == "search4") search(games, 3, done);
  }
  std::printf("%ld %ld %ld\n", done.units, done.calls, done.allocations);
  return 0;
}
