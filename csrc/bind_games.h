// What the bindings of games of searches have in common.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <string>
#include <vector>

#include "selfplay.h"

namespace snakekit {

template <class To, class From>
inline pybind11::array_t<To> array(const std::vector<From>& v) {
  pybind11::array_t<To> out(static_cast<pybind11::ssize_t>(v.size()));
  std::copy(v.begin(), v.end(), out.mutable_data());
  return out;
}

inline SelfPlay games_of(int snakes, int width, int height, const Settings& settings,
                         std::int64_t max_nodes, int max_depth, int max_turns, std::uint64_t seed) {
  if (snakes < 2 || snakes > 4 || snakes % 2 != 0)
    throw pybind11::value_error("snakes: expected 2 or 4, found " + std::to_string(snakes));
  if (max_nodes < 0) throw pybind11::value_error("max_nodes: negative");
  if (max_depth < 1) throw pybind11::value_error("max_depth: expected at least 1");
  if (max_turns < 1) throw pybind11::value_error("max_turns: expected at least 1");
  SelfPlay p;
  p.snakes = snakes;
  p.width = width;
  p.height = height;
  p.settings = settings;
  p.limits.max_nodes = max_nodes;
  p.limits.max_depth = max_depth;
  p.max_turns = max_turns;
  p.seed = seed;
  return p;
}

inline void check_count(const char* name, int n) {
  if (n < 1) throw pybind11::value_error(std::string(name) + ": expected at least 1");
}

inline void check_percent(const char* name, int n) {
  if (n < 0 || n > 100) throw pybind11::value_error(std::string(name) + ": expected 0..100");
}

}  // namespace snakekit
