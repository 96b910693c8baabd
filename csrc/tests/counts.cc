// Fixed amounts of work for counting instructions: counts {rules|v1|v2|search} REPEATS.
//
// The difference between two runs, divided by the difference in units, is what one unit costs; the
// start of the program cancels out. The units done are printed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../encode.h"
#include "../maps.h"
#include "../players.h"
#include "../search/search.h"

namespace {

using snakekit::Moves;
using snakekit::Small;
using snakekit::State;

constexpr int kGames = 16;
constexpr int kTurns = 120;

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

long rules(const std::vector<Game>& games) {
  long units = 0;
  for (const auto& g : games) {
    auto s = g.start;
    for (const auto& m : g.moves) snakekit::step(s, m);
    units += s.h.turn;
  }
  return units;
}

long encode(const std::vector<Game>& games, int version, std::vector<std::uint8_t>& out) {
  long units = 0;
  for (const auto& g : games) {
    for (const auto& s : g.states) {
      if (version == 1) {
        for (int i = 0; i < s.seats; ++i) {
          if (s.alive(i)) snakekit::encode_v1(s, i, out.data());
        }
      } else {
        const snakekit::Arrivals<Small> arrivals(s);
        for (int i = 0; i < s.seats; ++i) {
          if (s.alive(i)) snakekit::encode_v2(s, arrivals, i, {out.data(), 11, 11});
        }
      }
      ++units;
    }
  }
  return units;
}

long search(const std::vector<Game>& games) {
  long nodes = 0;
  for (const auto& g : games) {
    snakekit::Searcher searcher(1);
    snakekit::Limits limits;
    limits.max_depth = 3;
    nodes += static_cast<long>(searcher.search(g.states[g.states.size() / 2], 0, limits).nodes);
  }
  return nodes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string what = argv[1];
  const int repeats = std::atoi(argv[2]);
  // Searches are of duels: four snakes would make the count mostly one position's.
  const std::vector<std::string> ids = what == "search"
                                           ? std::vector<std::string>{"a", "b"}
                                           : std::vector<std::string>{"a", "b", "c", "d"};
  std::vector<Game> games;
  for (int i = 0; i < kGames; ++i) games.push_back(record(i, ids));
  std::vector<std::uint8_t> out(32768);
  long units = 0;
  for (int i = 0; i < repeats; ++i) {
    if (what == "rules") units += rules(games);
    if (what == "v1") units += encode(games, 1, out);
    if (what == "v2") units += encode(games, 2, out);
    if (what == "search") units += search(games);
  }
  std::printf("%ld\n", units);
  return 0;
}
