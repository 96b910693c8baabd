#include "board.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

namespace snakekit {

namespace {

constexpr std::array<const char*, 7> kCauseNames{"",
                                                 "hazard",
                                                 "out-of-health",
                                                 "wall-collision",
                                                 "snake-self-collision",
                                                 "snake-collision",
                                                 "head-collision"};

Cause parse_cause(const std::string& field, const std::string& name) {
  for (std::size_t i = 0; i < kCauseNames.size(); ++i) {
    if (name == kCauseNames[i]) return static_cast<Cause>(i);
  }
  throw StateError(field + ": unknown cause '" + excerpt(name, 40) + "'");
}

std::string at(const char* field, std::size_t i) {
  return std::string(field) + "[" + std::to_string(i) + "]";
}

void check_range(const std::string& field, int value, int low, int high) {
  if (value < low || value > high) {
    throw StateError(field + ": " + std::to_string(value) + " is outside " + std::to_string(low) +
                     ".." + std::to_string(high));
  }
}

std::string show(Point p) {
  return "(" + std::to_string(p.first) + ", " + std::to_string(p.second) + ")";
}

// Excess of segments over distinct cells: what the ring must hold beyond the board.
int body_excess(const Snake& s) {
  const std::set<Point> cells(s.body.begin(), s.body.end());
  return static_cast<int>(s.body.size() - cells.size());
}

void check_snake(const std::string& field, const Snake& s, int width, int height) {
  if (s.body.empty()) throw StateError(field + ".body: empty, expected at least one segment");
  check_range(field + ".health", s.health, 0, kMaxHealth);
  const bool dead = !s.eliminated_cause.empty();
  const int slack = dead ? Large::kBorder : 0;
  for (std::size_t i = 0; i < s.body.size(); ++i) {
    const auto [x, y] = s.body[i];
    if (x < -slack || y < -slack || x >= width + slack || y >= height + slack) {
      throw StateError(field + ".body[" + std::to_string(i) + "]: " + show(s.body[i]) +
                       " is off the " + std::to_string(width) + "x" + std::to_string(height) +
                       " board");
    }
  }
  if (s.body.size() > Large::kRing - 2 || body_excess(s) > Large::kMaxBodyExcess) {
    throw StateError(field + ".body: " + std::to_string(s.body.size()) + " segments are too many");
  }
}

bool fits_small(int width, int height, const std::vector<Snake>& snakes,
                const std::vector<Point>& hazards) {
  if (width * height > 121 || snakes.size() > Small::kSnakes) return false;
  if (std::any_of(hazards.begin(), hazards.end(), [&](Point p) { return p.second >= height; }))
    return false;
  return std::all_of(snakes.begin(), snakes.end(), [&](const Snake& s) {
    return body_excess(s) <= Small::kMaxBodyExcess &&
           std::all_of(s.body.begin(), s.body.end(), [&](Point p) {
             return p.first >= -1 && p.second >= -1 && p.first <= width && p.second <= height;
           });
  });
}

void check_cells(const char* field, const std::vector<Point>& points, int width, int height) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto [x, y] = points[i];
    if (x < 0 || y < 0 || x >= width || y >= height)
      throw StateError(at(field, i) + ": " + show(points[i]) + " is off the board");
  }
}

}  // namespace

std::string excerpt(const std::string& text, std::size_t limit) {
  const auto continues = [&] { return (static_cast<unsigned char>(text[limit]) & 0xc0U) == 0x80U; };
  while (limit > 0 && limit < text.size() && continues()) --limit;
  return text.substr(0, limit);
}

const char* cause_name(Cause c) { return kCauseNames[static_cast<std::size_t>(c)]; }

Rules Settings::rules() const {
  check_range("settings.food_spawn_chance", food_spawn_chance, 0, 100);
  check_range("settings.minimum_food", minimum_food, 0, 625);
  check_range("settings.hazard_damage", hazard_damage, -1000, 1000);
  check_range("settings.shrink_every", shrink_every, 0, 30000);
  Rules r;
  r.wrapped = ruleset == "wrapped" || ruleset == "wrapped_constrictor";
  r.constrictor = ruleset == "constrictor" || ruleset == "wrapped_constrictor";
  r.royale = ruleset == "royale";
  r.solo = solo || ruleset == "solo";
  r.hazard_damage = static_cast<std::int16_t>(hazard_damage);
  r.food_spawn_chance = static_cast<std::int16_t>(food_spawn_chance);
  r.minimum_food = static_cast<std::int16_t>(minimum_food);
  r.shrink_every = static_cast<std::int16_t>(shrink_every);
  r.map = find_map(map).value_or(MapId::kStandard);
  return r;
}

template <class T>
void Board::fill(State<T>& s, const std::vector<Snake>& snakes, const std::vector<Point>& food,
                 const std::vector<Point>& hazards, int turn) {
  // Padding and unused slots enter no comparison, but defined bytes keep copies reproducible.
  std::memset(static_cast<void*>(&s), 0, sizeof s);
  s.rules = settings_.rules();
  s.geo = &Geometry<T>::get(width_, height_, s.rules.wrapped);
  s.seats = static_cast<std::uint8_t>(snakes.size());
  s.h.turn = turn;
  for (int i = 0; i < s.seats; ++i) {
    auto& k = s.h.snake[i];
    const Snake& in = snakes[i];
    k.length = static_cast<std::int16_t>(in.body.size());
    k.health = static_cast<std::int16_t>(in.health);
    k.cause = parse_cause(at("snakes", i) + ".eliminated_cause", in.eliminated_cause);
    k.out_turn = in.eliminated_on_turn;
    k.by = -1;
    if (k.cause == Cause::kNone) s.h.alive = static_cast<std::uint16_t>(s.h.alive | 1U << i);
    for (int j = 0; j < k.length; ++j)
      s.ring[i][j] = s.geo->code(in.body[j].first, in.body[j].second);
  }
  for (const auto& [x, y] : food) s.food[s.h.num_food++] = s.geo->code(x, y);
  for (const auto& [x, y] : hazards) ++s.layers[y * width_ + x];
  s.rebuild();
}

Board::Board(int width, int height, const std::vector<Snake>& snakes,
             const std::vector<Point>& food, const std::vector<Point>& hazards, int turn,
             const Settings& settings)
    : width_(width), height_(height), settings_(settings) {
  check_range("width", width, kMinSide, kMaxSide);
  check_range("height", height, kMinSide, kMaxSide);
  check_range("turn", turn, 0, 1'000'000'000);
  if (snakes.size() > Large::kSnakes)
    throw StateError("snakes: " + std::to_string(snakes.size()) +
                     " are listed, at most 16 are supported");
  int alive = 0;
  for (std::size_t i = 0; i < snakes.size(); ++i) {
    check_snake(at("snakes", i), snakes[i], width, height);
    if (snakes[i].eliminated_cause.empty()) ++alive;
    if (std::find(ids_.begin(), ids_.end(), snakes[i].id) != ids_.end())
      throw StateError(at("snakes", i) + ".id: '" + excerpt(snakes[i].id, 60) +
                       "' is listed twice");
    ids_.push_back(snakes[i].id);
    given_by_.push_back(snakes[i].eliminated_by);
  }
  if (alive > kMaxAlive)
    throw StateError("snakes: " + std::to_string(alive) + " are alive, at most 8 are supported");
  check_cells("food", food, width, height);
  check_cells("hazards", hazards, width, 2 * height);
  std::set<Point> seen;
  for (std::size_t i = 0; i < food.size(); ++i) {
    if (!seen.insert(food[i]).second)
      throw StateError(at("food", i) + ": " + show(food[i]) + " is listed twice");
  }
  std::vector<Point> sorted = hazards;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 255; i < sorted.size(); ++i) {
    if (sorted[i] == sorted[i - 255])
      throw StateError("hazards: more than 255 layers at " + show(sorted[i]));
  }
  if (!needs_large_board(settings.rules().map) && fits_small(width, height, snakes, hazards)) {
    fill(state_.emplace<State<Small>>(), snakes, food, hazards, turn);
  } else {
    fill(state_.emplace<State<Large>>(), snakes, food, hazards, turn);
  }
}

std::vector<Snake> Board::snakes() const {
  return visit([&](const auto& s) {
    std::vector<Snake> out(ids_.size());
    for (int i = 0; i < s.seats; ++i) {
      const auto& k = s.h.snake[i];
      Snake& o = out[i];
      o.id = ids_[i];
      o.health = k.health;
      o.body.reserve(k.length);
      for (int j = 0; j < k.length; ++j) o.body.push_back(s.geo->point(s.segment(i, j)));
      o.eliminated_cause = cause_name(k.cause);
      o.eliminated_by = k.by >= 0 ? ids_[k.by] : given_by_[i];
      o.eliminated_on_turn = k.out_turn;
    }
    return out;
  });
}

std::vector<Point> Board::food() const {
  return visit([&](const auto& s) {
    std::vector<Point> out;
    out.reserve(s.h.num_food);
    for (int i = 0; i < s.h.num_food; ++i) out.push_back(s.geo->point(s.food[i]));
    return out;
  });
}

std::vector<Point> Board::hazards() const {
  return visit([&](const auto& s) {
    std::vector<Point> out;
    const int end = s.pending_hazard ? 2 * s.geo->cells : s.geo->cells;
    for (int c = 0; c < end; ++c) {
      out.insert(out.end(), s.layers[c], Point{c % width_, c / width_});
    }
    std::sort(out.begin(), out.end());
    return out;
  });
}

bool operator==(const Board& a, const Board& b) {
  const auto same = [](const Snake& x, const Snake& y) {
    return x.id == y.id && x.health == y.health && x.body == y.body &&
           x.eliminated_cause == y.eliminated_cause && x.eliminated_by == y.eliminated_by &&
           x.eliminated_on_turn == y.eliminated_on_turn;
  };
  const auto turn = [](const Board& x) { return x.visit([](const auto& s) { return s.h.turn; }); };
  const auto sa = a.snakes();
  const auto sb = b.snakes();
  return a.width_ == b.width_ && a.height_ == b.height_ && turn(a) == turn(b) &&
         a.settings_.rules() == b.settings_.rules() && a.food() == b.food() &&
         a.hazards() == b.hazards() && std::equal(sa.begin(), sa.end(), sb.begin(), sb.end(), same);
}

}  // namespace snakekit
