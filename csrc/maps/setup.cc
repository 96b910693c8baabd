#include "setup.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>

#include "layouts.h"
#include "random.h"

namespace snakekit {

namespace {

constexpr int kFixedSide = 7;     // square boards from here on have fixed start squares
constexpr int kRoomForAll = 121;  // smaller boards have food for at most four snakes
constexpr int kFewSnakes = 4;

bool contains(const std::vector<Point>& points, Point p) {
  return std::find(points.begin(), points.end(), p) != points.end();
}

std::string size_name(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

[[noreturn]] void refuse_snakes(int n, int width, int height) {
  throw StateError("snakes: " + std::to_string(n) + " do not fit the start squares of a " +
                   size_name(width, height) + " board");
}

[[noreturn]] void refuse_size(MapId map, int width, int height, const std::string& known) {
  throw StateError("width, height: map " + std::string(map_name(map)) + " has no " +
                   size_name(width, height) + " board, only " + known);
}

Point centre(int width, int height) { return {(width - 1) / 2, (height - 1) / 2}; }

bool fixed_starts(int width, int height) { return width == height && width >= kFixedSide; }

std::vector<Point> corner_squares(int width, int height) {
  return {{1, 1}, {1, height - 2}, {width - 2, 1}, {width - 2, height - 2}};
}

std::vector<Point> fixed_squares(int width, int height, Rng& rng) {
  const auto [mx, my] = centre(width, height);
  auto corners = corner_squares(width, height);
  std::vector<Point> edges{{1, my}, {mx, height - 2}, {width - 2, my}, {mx, 1}};
  shuffle(corners.begin(), corners.end(), rng);
  shuffle(edges.begin(), edges.end(), rng);
  const bool corners_first = rng.below(2) == 0;
  auto out = corners_first ? corners : edges;
  const auto& second = corners_first ? edges : corners;
  out.insert(out.end(), second.begin(), second.end());
  return out;
}

// Squares of one colour, so that nobody meets a neighbour of even distance head on, without the
// centre.
std::vector<Point> scattered_squares(int width, int height, Rng& rng) {
  std::vector<Point> out;
  for (int y = 0; y < height; ++y) {
    for (int x = y % 2; x < width; x += 2) {
      if (Point{x, y} != centre(width, height)) out.push_back({x, y});
    }
  }
  shuffle(out.begin(), out.end(), rng);
  return out;
}

std::vector<Point> quadrant_squares(const Layout& layout, Rng& rng) {
  std::array<std::vector<Point>, 4> quadrants;
  for (const auto& p : layout.starts) {
    const int right = p.first > layout.width / 2 ? 1 : 0;
    const int upper = p.second > layout.height / 2 ? 2 : 0;
    quadrants[right + upper].push_back(p);
  }
  for (auto& q : quadrants) shuffle(q.begin(), q.end(), rng);
  shuffle(quadrants.begin(), quadrants.end(), rng);
  std::vector<Point> out;
  for (std::size_t round = 0; round < quadrants[0].size(); ++round) {
    for (const auto& q : quadrants) out.push_back(q[round]);
  }
  return out;
}

std::vector<Point> arcade_squares(const Layout& layout, Rng& rng) {
  std::vector<Point> out = layout.starts;
  const auto middle =
      std::partition(out.begin(), out.end(), [&](Point p) { return p.first != layout.width / 2; });
  shuffle(out.begin(), middle, rng);
  std::sort(middle, out.end());
  return out;
}

std::vector<Point> layout_squares(const Layout& layout, Rng& rng) {
  if (layout.style == StartStyle::kQuadrants) return quadrant_squares(layout, rng);
  if (layout.style == StartStyle::kArcade) return arcade_squares(layout, rng);
  auto out = layout.starts;
  shuffle(out.begin(), out.end(), rng);
  return out;
}

// One food a step away diagonally: not towards the centre, not in a corner of the board and not on
// a hazard.
std::vector<Point> food_near(const SetUp& s, int width, int height, Rng& rng) {
  const Point mid = centre(width, height);
  std::vector<Point> food;
  for (const auto& [x, y] : s.starts) {
    std::vector<Point> choices;
    for (const int dx : {-1, 1}) {
      for (const int dy : {-1, 1}) {
        const Point p{x + dx, y + dy};
        if (p.first < 0 || p.second < 0 || p.first >= width || p.second >= height || p == mid ||
            contains(food, p) || contains(s.starts, p) || contains(s.hazards, p))
          continue;
        const bool away_x = (x < mid.first && dx < 0) || (x > mid.first && dx > 0);
        const bool away_y = (y < mid.second && dy < 0) || (y > mid.second && dy > 0);
        const bool corner =
            (p.first == 0 || p.first == width - 1) && (p.second == 0 || p.second == height - 1);
        if ((away_x || away_y) && !corner) choices.push_back(p);
      }
    }
    if (!choices.empty()) food.push_back(choices[rng.below(static_cast<int>(choices.size()))]);
  }
  return food;
}

std::vector<Point> random_food(const SetUp& s, int width, int height, Rng& rng) {
  std::vector<Point> free;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool near = std::any_of(s.starts.begin(), s.starts.end(), [&](Point p) {
        return std::abs(p.first - x) + std::abs(p.second - y) <= 1;
      });
      if (!near) free.push_back({x, y});
    }
  }
  shuffle(free.begin(), free.end(), rng);
  free.resize(std::min(free.size(), s.starts.size()));
  return free;
}

std::vector<Point> standard_food(const SetUp& s, int width, int height, Rng& rng) {
  if (!fixed_starts(width, height)) return random_food(s, width, height, rng);
  std::vector<Point> food;
  if (static_cast<int>(s.starts.size()) <= kFewSnakes || width * height >= kRoomForAll)
    food = food_near(s, width, height, rng);
  food.push_back(centre(width, height));
  return food;
}

// A frame one square wide, `inset` squares from the border. A frame of height 1 is its own top and
// bottom and so counts twice, as it does in the official map.
void add_ring(std::vector<Point>& out, int width, int height, int inset) {
  const int right = width - 1 - inset;
  const int top = height - 1 - inset;
  for (int x = inset; x <= right; ++x) {
    out.push_back({x, inset});
    out.push_back({x, top});
  }
  for (int y = inset + 1; y < top; ++y) {
    out.push_back({inset, y});
    out.push_back({right, y});
  }
}

std::vector<Point> rings(int width, int height) {
  std::vector<Point> out;
  for (int inset = 1; inset <= width / 2 - 2; inset += 2) {
    if (2 * inset >= height) refuse_size(MapId::kRings, width, height, "boards less flat");
    add_ring(out, width, height, inset);
  }
  return out;
}

std::vector<Point> columns(int width, int height) {
  std::vector<Point> out;
  for (int x = 1; x < width; x += 2) {
    for (int y = 1; y < height; y += 2) out.push_back({x, y});
  }
  return out;
}

std::vector<Point> pools(int side, Rng& rng) {
  using Sets = std::vector<std::vector<Point>>;
  static const Sets medium{{{3, 3}, {7, 7}}, {{3, 7}, {7, 3}}, {{3, 5}, {7, 5}}, {{5, 3}, {5, 7}}};
  static const Sets large{{{5, 5}, {5, 13}, {13, 5}, {13, 13}},
                          {{5, 10}, {10, 5}, {10, 13}, {13, 10}}};
  if (side == 7) return {{3, 3}};
  const auto& sets = side == 11 ? medium : large;
  return sets[rng.below(static_cast<int>(sets.size()))];
}

void check_size(MapId map, int width, int height) {
  const bool square = width == height;
  const int least = std::min(width, height);
  switch (map) {
    case MapId::kHealingPools:
    case MapId::kSinkholes:
      if (!square || (width != 7 && width != 11 && width != 19))
        refuse_size(map, width, height, "7x7, 11x11 and 19x19");
      break;
    case MapId::kHazardPits:
      if (!square || width != 11) refuse_size(map, width, height, "11x11");
      break;
    case MapId::kInnerWall:
    case MapId::kGrowBox:
    case MapId::kExpandBox:
      if (least < 4) refuse_size(map, width, height, "sides from 4 on");
      break;
    case MapId::kSoloMaze:
      if (least < kFixedSide) refuse_size(map, width, height, "sides from 7 on");
      break;
    default:
      break;
  }
}

void check_count(MapId map, int snakes, int most) {
  if (snakes > most)
    throw StateError("snakes: " + std::to_string(snakes) + " do not fit map " +
                     std::string(map_name(map)) + ", which takes at most " + std::to_string(most));
}

void take(SetUp& s, std::vector<Point> squares, int n, int width, int height) {
  if (n > static_cast<int>(squares.size())) refuse_snakes(n, width, height);
  squares.resize(n);
  s.starts = std::move(squares);
}

SetUp from_layout(const Layout& layout, int width, int height, int snakes, int minimum_food,
                  Rng& rng) {
  if (width != layout.width || height != layout.height)
    refuse_size(layout.map, width, height, size_name(layout.width, layout.height));
  check_count(layout.map, snakes, layout.max_snakes);
  SetUp s;
  s.hazards = layout.hazards;
  take(s, layout_squares(layout, rng), snakes, width, height);
  if (layout.style == StartStyle::kQuadrants) s.food = food_near(s, width, height, rng);
  if (layout.map == MapId::kArcadeMaze && minimum_food > 0)
    s.food.push_back({width / 2, height / 2 + 1});
  return s;
}

}  // namespace

SetUp set_up(MapId map, int width, int height, int snakes, int minimum_food, std::uint64_t seed) {
  Rng rng = stream(seed, Stream::kSetUp);
  if (const auto* layout = find_layout(map))
    return from_layout(*layout, width, height, snakes, minimum_food, rng);
  check_size(map, width, height);
  SetUp s;
  if (map == MapId::kSoloMaze) {
    // The maze itself says where its one snake begins.
    check_count(map, snakes, 1);
    return s;
  }
  if (map == MapId::kHazardPits) {
    check_count(map, snakes, kFewSnakes);
    auto corners = corner_squares(width, height);
    shuffle(corners.begin(), corners.end(), rng);
    take(s, corners, snakes, width, height);
  } else {
    take(s,
         fixed_starts(width, height) ? fixed_squares(width, height, rng)
                                     : scattered_squares(width, height, rng),
         snakes, width, height);
  }
  if (map != MapId::kEmpty) s.food = standard_food(s, width, height, rng);
  if (map == MapId::kHealingPools) s.hazards = pools(width, rng);
  if (map == MapId::kInnerWall) add_ring(s.hazards, width, height, 1);
  if (map == MapId::kRings) s.hazards = rings(width, height);
  if (map == MapId::kColumns) s.hazards = columns(width, height);
  return s;
}

}  // namespace snakekit
