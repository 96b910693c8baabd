// Parts of the Python module, one file each. Everything that loops runs without the GIL.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "board.h"
#include "search/evaluate.h"

namespace snakekit {

// float32 copy of uint8 observations [n, planes, rows, cols], divided by the planes' scale.
pybind11::array_t<float> scaled(int version, const pybind11::array_t<std::uint8_t>& planes);

// The default weights with some replaced, by their names. Throws value_error for unknown ones.
using GivenWeights = std::optional<std::map<std::string, int>>;
using GivenValue = std::optional<std::shared_ptr<LearnedValue>>;
EvalWeights read_weights(const GivenWeights& given);
// The shipped evaluation if neither is given; with weights alone no network judges.
Evaluation read_evaluation(const GivenWeights& weights, const GivenValue& learned);

void bind_board(pybind11::module_& m);
void bind_search(pybind11::module_& m);
void bind_env(pybind11::module_& m);
void bind_nash(pybind11::module_& m);
void bind_selfplay(pybind11::module_& m);
void bind_value(pybind11::module_& m);
void bind_measures(pybind11::module_& m);

inline void check_seat(const Board& b, int seat) {
  if (seat < 0 || seat >= b.seats())
    throw pybind11::index_error("seat " + std::to_string(seat) + " is outside 0.." +
                                std::to_string(b.seats() - 1));
}

inline void check_living(const Board& b, int seat) {
  check_seat(b, seat);
  if (!b.visit([&](const auto& s) { return s.alive(seat); }))
    throw pybind11::value_error("seat " + std::to_string(seat) + " is dead");
}

// f(state, seat) for a seat that exists.
template <class F>
auto at_seat(const Board& b, int seat, F&& f) {
  check_seat(b, seat);
  return b.visit([&](const auto& s) { return f(s, seat); });
}

inline void check_version(int version) {
  if (version != 1 && version != 2)
    throw pybind11::value_error("encoder version " + std::to_string(version) +
                                " is unknown, expected 1 or 2");
}

}  // namespace snakekit
