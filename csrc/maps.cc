#include "maps.h"

#include <type_traits>

#include "maps/food.h"
#include "maps/hazards.h"
#include "maps/maze.h"
#include "maps/setup.h"

namespace snakekit {

namespace {

MapId known_map(const std::string& name) {
  if (const auto id = find_map(name)) return *id;
  std::string all;
  for (const auto n : kMapNames) all += (all.empty() ? "" : ", ") + std::string(n);
  throw StateError("settings.map: '" + excerpt(name, 40) + "' is unknown, expected one of " + all);
}

Board maze_game(int width, int height, const std::string& id, std::uint64_t seed,
                const Settings& settings) {
  const Maze maze = make_maze(width, height, 0, seed);
  std::vector<Point> hazards;
  for (int c = 0; c < width * height; ++c) {
    if (maze.hazard[c] != 0) hazards.push_back({c % width, c / width});
  }
  Snake s;
  s.id = id;
  s.body = {maze.start, maze.entrance, maze.entrance};
  return {width, height, {s}, {maze.food}, hazards, 0, settings};
}

Board plain_game(const SetUp& start, int width, int height, const std::vector<std::string>& ids,
                 const Settings& settings) {
  std::vector<Snake> snakes;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Snake s;
    s.id = ids[i];
    s.body.assign(3, start.starts[i]);
    snakes.push_back(s);
  }
  return {width, height, snakes, start.food, start.hazards, 0, settings};
}

}  // namespace

Board new_game(int width, int height, const std::vector<std::string>& ids, std::uint64_t seed,
               const Settings& settings) {
  if (width < kMinSide || width > kMaxSide || height < kMinSide || height > kMaxSide)
    throw StateError("width, height: " + std::to_string(width) + "x" + std::to_string(height) +
                     " is outside 3x3..25x25");
  const MapId map = known_map(settings.map);
  const auto start =
      set_up(map, width, height, static_cast<int>(ids.size()), settings.minimum_food, seed);
  Board board = map == MapId::kSoloMaze && !ids.empty()
                    ? maze_game(width, height, ids[0], seed, settings)
                    : plain_game(start, width, height, ids, settings);
  board.visit([](auto& s) { initialise(s); });
  return board;
}

template <class T>
void spawn_food(State<T>& s, std::uint64_t seed) {
  spawn_by_rule(s, seed, false);
}

template <class T>
void update_map(State<T>& s, std::uint64_t seed) {
  switch (s.rules.map) {
    case MapId::kStandard:
      spawn_by_rule(s, seed, false);
      return;
    case MapId::kEmpty:
      return;
    case MapId::kCastleWall:
    case MapId::kCastleWallLg:
    case MapId::kCastleWallXl:
      spawn_castle_food(s, seed);
      return;
    case MapId::kArcadeMaze:
      spawn_arcade_food(s, seed);
      return;
    case MapId::kSoloMaze:
      if constexpr (std::is_same_v<T, Large>) next_maze(s, seed);
      return;
    case MapId::kIslandsBridges:
    case MapId::kIslandsBridgesLg:
    case MapId::kRiversBridges:
    case MapId::kRiversBridgesLg:
    case MapId::kRiversBridgesXl:
      spawn_by_rule(s, seed, true);
      return;
    case MapId::kSnailMode:
      spawn_by_rule(s, seed, false);
      if constexpr (std::is_same_v<T, Large>) trail_hazards(s);
      return;
    default:
      spawn_by_rule(s, seed, false);
      // The engine counts a turn only after its map has run.
      if (s.h.turn > 0) change_hazards(s, seed, s.h.turn - 1);
      return;
  }
}

template <class T>
void advance(State<T>& s, const Moves& moves, std::uint64_t seed) {
  if (s.game_over()) return;
  step(s, moves);
  const int every = s.rules.shrink_every;
  if (s.rules.royale && every > 0) shrink_to(s, seed, s.h.turn / every);
  update_map(s, seed);
}

#define SNAKEKIT_MAPS(T)                              \
  template void spawn_food(State<T>&, std::uint64_t); \
  template void update_map(State<T>&, std::uint64_t); \
  template void advance(State<T>&, const Moves&, std::uint64_t)

SNAKEKIT_MAPS(Small);
SNAKEKIT_MAPS(Large);

}  // namespace snakekit
