// A board of any supported size behind one type, with the names that the rules do not need.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "rules.h"
#include "state.h"

namespace snakekit {

using Point = std::pair<int, int>;

// Impossible input; the message begins with the path of the field.
class StateError : public std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

struct Settings {
  std::string ruleset = "standard";  // any other name than the six known ones means standard
  bool solo = false;
  int food_spawn_chance = 15;
  int minimum_food = 1;
  int hazard_damage = 14;
  int shrink_every = 25;
  std::string map = "standard";  // an unknown name has the standard map's food and no more

  [[nodiscard]] Rules rules() const;  // throws StateError
};

struct Snake {
  std::string id;
  int health = kMaxHealth;
  std::vector<Point> body;       // head first
  std::string eliminated_cause;  // empty while alive
  std::string eliminated_by;
  int eliminated_on_turn = 0;
};

inline constexpr int kMaxAlive = 8;

const char* cause_name(Cause c);

// The start of a text for a message, never cut inside a UTF-8 character.
std::string excerpt(const std::string& text, std::size_t limit);

class Board {
 public:
  // Throws StateError for anything that no game can show.
  Board(int width, int height, const std::vector<Snake>& snakes, const std::vector<Point>& food,
        const std::vector<Point>& hazards, int turn, const Settings& settings);

  template <class F>
  decltype(auto) visit(F&& f) {
    return std::visit(std::forward<F>(f), state_);
  }
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), state_);
  }

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }
  [[nodiscard]] int seats() const { return static_cast<int>(ids_.size()); }
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] std::vector<Snake> snakes() const;
  [[nodiscard]] std::vector<Point> food() const;
  [[nodiscard]] std::vector<Point> hazards() const;  // sorted, a point once per layer

  friend bool operator==(const Board& a, const Board& b);

 private:
  template <class T>
  void fill(State<T>& s, const std::vector<Snake>& snakes, const std::vector<Point>& food,
            const std::vector<Point>& hazards, int turn);

  int width_;
  int height_;
  Settings settings_;
  std::vector<std::string> ids_;
  std::vector<std::string> given_by_;  // killers of snakes that were dead on arrival
  std::variant<State<Small>, State<Large>> state_;
};

}  // namespace snakekit
