#include "bind_nash.h"

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <cmath>
#include <memory>
#include <optional>

#include "bind.h"
#include "nash/stage.h"

namespace snakekit {

namespace {

using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Boards = std::vector<const Board*>;
using Solved = py::typing::Tuple<py::typing::List<Array>, Array, float>;
using ManySolved = py::typing::Tuple<Array, Array, Array>;
using GamesSolved = py::typing::Tuple<Array, Array, Array, Array>;
using ZeroSum = py::typing::Tuple<py::array_t<double>, py::array_t<double>, double>;

Method method_named(const std::string& name) {
  if (name == "auto") return Method::kAuto;
  if (name == "full") return Method::kFull;
  if (name == "sampled") return Method::kSampled;
  if (name == "exact") return Method::kExact;
  throw py::value_error("method: expected auto, full, sampled or exact, found '" + name + "'");
}

RegretOptions options_of(int iterations, const std::string& method, bool linear, bool optimistic,
                         std::uint64_t seed) {
  if (iterations < 1) throw py::value_error("iterations: expected at least 1");
  return {iterations, method_named(method), linear, optimistic, seed};
}

template <class Numbers>
void check_finite(const Numbers& numbers, const std::string& name) {
  const auto* x = numbers.data();
  for (py::ssize_t i = 0; i < numbers.size(); ++i) {
    if (!std::isfinite(x[i])) throw py::value_error(name + ": expected finite numbers");
  }
}

Solved solve_stage(const Floats& utility, int iterations, const std::string& method, bool linear,
                   bool optimistic, std::uint64_t seed,
                   const std::optional<std::vector<std::optional<Floats>>>& fixed) {
  StageShape shape;
  shape.seats = static_cast<int>(utility.ndim()) - 1;
  if (shape.seats < 1 || shape.seats > kMaxStageSeats ||
      utility.shape(shape.seats) != shape.seats || utility.size() == 0)
    throw py::value_error("utility: expected float [actions of seat 0, ..., seats], 1 to 8 seats");
  check_finite(utility, "utility");
  for (int s = 0; s < shape.seats; ++s) shape.actions[s] = static_cast<int>(utility.shape(s));
  const RegretOptions options = options_of(iterations, method, linear, optimistic, seed);
  if (options.method == Method::kExact && (shape.seats != 2 || fixed))
    throw py::value_error("method: exact is for two seats that both choose");
  std::array<const float*, kMaxStageSeats> kept{};
  if (fixed) {
    if (static_cast<int>(fixed->size()) != shape.seats)
      throw py::value_error("fixed: expected an entry for each seat");
    for (int s = 0; s < shape.seats; ++s) {
      const auto& policy = (*fixed)[s];
      if (!policy) continue;
      if (policy->size() != shape.actions[s])
        throw py::value_error("fixed[" + std::to_string(s) + "]: expected a probability an action");
      kept[s] = policy->data();
    }
  }
  std::vector<float> policy(shape.policy_size());
  py::array_t<float> value(shape.seats);
  float gap = 0;
  const float* u = utility.data();
  float* v = value.mutable_data();
  {
    const py::gil_scoped_release nogil;
    StageSolver().solve(shape, u, options, policy.data(), v, &gap, fixed ? kept.data() : nullptr);
  }
  py::list policies;
  const float* p = policy.data();
  for (int s = 0; s < shape.seats; ++s) {
    policies.append(py::array_t<float>(shape.actions[s], p));
    p += shape.actions[s];
  }
  return Solved(py::make_tuple(policies, value, gap));
}

// Many games of equal shape: utility [games, actions of seat 0, ..., seats].
ManySolved solve_stages(const Floats& utility, int iterations, const std::string& method,
                        std::uint64_t seed) {
  StageShape shape;
  shape.seats = static_cast<int>(utility.ndim()) - 2;
  if (shape.seats < 1 || shape.seats > kMaxStageSeats ||
      utility.shape(shape.seats + 1) != shape.seats || utility.size() == 0)
    throw py::value_error("utility: expected float [games, actions of seat 0, ..., seats]");
  check_finite(utility, "utility");
  for (int s = 0; s < shape.seats; ++s) shape.actions[s] = static_cast<int>(utility.shape(s + 1));
  RegretOptions options = options_of(iterations, method, true, true, seed);
  if (options.method == Method::kExact && shape.seats != 2)
    throw py::value_error("method: exact is for two seats");
  const py::ssize_t games = utility.shape(0);
  py::array_t<float> policy({games, static_cast<py::ssize_t>(shape.policy_size())});
  py::array_t<float> value({games, static_cast<py::ssize_t>(shape.seats)});
  py::array_t<float> gap(games);
  const float* u = utility.data();
  float* p = policy.mutable_data();
  float* v = value.mutable_data();
  float* g = gap.mutable_data();
  {
    const py::gil_scoped_release nogil;
    StageSolver solver;
    for (py::ssize_t i = 0; i < games; ++i) {
      options.seed = seed + static_cast<std::uint64_t>(i);
      solver.solve(shape, u, options, p, v, g++);
      u += shape.joints() * shape.seats;
      p += shape.policy_size();
      v += shape.seats;
    }
  }
  return ManySolved(py::make_tuple(policy, value, gap));
}

ZeroSum zero_sum(const Doubles& matrix) {
  if (matrix.ndim() != 2 || matrix.size() == 0)
    throw py::value_error("matrix: expected float [m, n], the payoffs of the row player");
  check_finite(matrix, "matrix");
  const auto m = static_cast<int>(matrix.shape(0));
  const auto n = static_cast<int>(matrix.shape(1));
  py::array_t<double> row(m);
  py::array_t<double> col(n);
  const double* a = matrix.data();
  double* r = row.mutable_data();
  double* c = col.mutable_data();
  double value = 0;
  {
    const py::gil_scoped_release nogil;
    std::vector<double> tableau;
    value = solve_zero_sum(a, m, n, r, c, tableau);
  }
  return ZeroSum(py::make_tuple(row, col, value));
}

void check_boards(const Boards& boards) {
  for (const Board* board : boards) {
    if (board == nullptr) throw py::type_error("boards: None is not a State");
  }
}

std::unique_ptr<StageGames> stage_games(const Boards& boards, int slots, int limit, int kept,
                                        const std::optional<Floats>& priors) {
  check_slots(slots);
  if (limit < 1 || limit > 1 << 16) throw py::value_error("limit: expected 1 to 65536");
  if (kept < 0 || kept > limit) throw py::value_error("kept: expected 1 to limit, or 0 for limit");
  check_boards(boards);
  if (priors &&
      (priors->ndim() != 3 || priors->shape(0) != static_cast<py::ssize_t>(boards.size()) ||
       priors->shape(1) != slots || priors->shape(2) != kMoves))
    throw py::value_error("priors: expected float32 [boards, slots, 4]");
  const float* p = priors ? priors->data() : nullptr;
  auto games = std::make_unique<StageGames>(slots, limit, kept > 0 ? kept : limit);
  const py::gil_scoped_release nogil;
  games->load(boards, p);
  return games;
}

GamesSolved solve_games(StageGames& games, const Floats& outcomes, int iterations,
                        const std::string& method, bool logits, float draw_worth,
                        std::uint64_t seed, const std::optional<Floats>& fixed) {
  check_share(draw_worth, "draw_worth");
  const float* given = outcomes_of(games.leaves(), outcomes);
  const RegretOptions options = options_of(iterations, method, true, true, seed);
  const py::ssize_t n = games.games();
  const py::ssize_t slots = games.leaves().slots();
  if (fixed && (fixed->ndim() != 3 || fixed->shape(0) != n || fixed->shape(1) != slots ||
                fixed->shape(2) != kMoves))
    throw py::value_error("fixed: expected float32 [games, slots, 4], NaN where a seat learns");
  const float* kept = fixed ? fixed->data() : nullptr;
  py::array_t<float> policy({n, slots, py::ssize_t{kMoves}});
  py::array_t<float> outcome({n, slots + 1});
  py::array_t<float> value({n, slots});
  py::array_t<float> gap(n);
  const StageResults out{policy.mutable_data(), outcome.mutable_data(), value.mutable_data(),
                         gap.mutable_data()};
  {
    const py::gil_scoped_release nogil;
    games.solve(given, logits, draw_worth, options, out, kept);
  }
  return GamesSolved(py::make_tuple(policy, outcome, value, gap));
}

void bind_solvers(py::module_& m) {
  m.def("solve_stage", &solve_stage, py::arg("utility"), py::kw_only(), py::arg("iterations") = 256,
        py::arg("method") = "auto", py::arg("linear") = true, py::arg("optimistic") = true,
        py::arg("seed") = 0, py::arg("fixed") = py::none(),
        "Regret matching on a one-shot game: utility float32 [actions of seat 0, ..., seats]. "
        "Returns the average policies (a list of float32 arrays), their utilities float32 [seats] "
        "and NashConv. `auto` samples beyond 256 joint actions; `exact` is the linear program of "
        "two seats, taken as zero-sum; `fixed` has for each seat a policy to keep, or None.");
  m.def("solve_stages", &solve_stages, py::arg("utility"), py::kw_only(),
        py::arg("iterations") = 256, py::arg("method") = "auto", py::arg("seed") = 0,
        "The same for many games of one shape, [games, actions of seat 0, ..., seats]: policies "
        "float32 [games, actions of all seats], utilities [games, seats], NashConv [games].");
  m.def("solve_zero_sum", &zero_sum, py::arg("matrix"),
        "Optimal strategies and value of the game whose row player gets matrix [m, n].");
}

void bind_stages(py::module_& m) {
  py::class_<StageGames>(m, "StageGames",
                         "All joint moves of some boards, before food spawns. Slots are a board's "
                         "living seats in order; outcomes are chances to win by slot, then that of "
                         "a draw. One thread at a time.")
      .def(py::init(&stage_games), py::arg("boards"), py::kw_only(), py::arg("slots"),
           py::arg("limit") = kFullInformation, py::arg("kept") = 0, py::arg("priors") = py::none(),
           "Candidates are the moves that are not certain death, where there are any. A board with "
           "more than `limit` joint moves is cut to `kept` of them (0: `limit`), without the least "
           "likely moves by `priors` float32 [boards, slots, 4].")
      .def_property_readonly("games", &StageGames::games)
      .def_property_readonly(
          "leaves", [](const StageGames& g) { return g.leaves().leaves(); },
          "Number of successors in which the game goes on.")
      .def_property_readonly(
          "lines", [](const StageGames& g) { return g.leaves().lines(); },
          "Number of all joint moves.")
      .def_property_readonly(
          "seats",
          [](const StageGames& g) {
            py::array_t<std::int8_t> out({py::ssize_t{g.games()}, py::ssize_t{g.leaves().slots()}});
            g.seats(out.mutable_data());
            return out;
          },
          "int8 [games, slots]: the seat in each slot, -1 for none.")
      .def_property_readonly(
          "cut",
          [](const StageGames& g) {
            py::array_t<bool> out(py::ssize_t{g.games()});
            g.cut(reinterpret_cast<std::uint8_t*>(out.mutable_data()));
            return out;
          },
          "bool [games]: boards with more joint moves than `limit`.")
      .def_property_readonly(
          "candidates",
          [](const StageGames& g) {
            py::array_t<bool> out(
                {py::ssize_t{g.games()}, py::ssize_t{g.leaves().slots()}, py::ssize_t{kMoves}});
            g.candidates(reinterpret_cast<std::uint8_t*>(out.mutable_data()));
            return out;
          },
          "bool [games, slots, 4]: the moves that take part.")
      .def(
          "encode_roots",
          [](const StageGames& g) {
            return encoded(g.leaves(), g.games(), [&](auto* out) { g.encode_roots(out); });
          },
          "Observations v3 of the boards: uint8 [games, planes, rows, cols].")
      .def(
          "encode",
          [](const StageGames& g) {
            return encoded(g.leaves(), g.leaves().leaves(),
                           [&](auto* out) { g.leaves().encode(out); });
          },
          "Observations v3 of the open successors: uint8 [leaves, planes, rows, cols].")
      .def(
          "solve", &solve_games, py::arg("outcomes"), py::kw_only(), py::arg("iterations") = 256,
          py::arg("method") = "auto", py::arg("logits") = true, py::arg("draw_worth") = 1.0F,
          py::arg("seed") = 0, py::arg("fixed") = py::none(),
          "Equilibria from float32 [leaves, slots + 1] (logits or probabilities over the leaf's "
          "own slots): policy [games, slots, 4], outcome [games, slots + 1], utility [games, "
          "slots], NashConv [games]. Utilities are chances to win plus equal parts of the draw "
          "times `draw_worth`. `fixed` float32 [games, slots, 4] has policies that seats keep, NaN "
          "where a seat learns; NashConv is then that of those who learn.")
      .def(
          "deepen",
          [](const StageGames& g, int limit) {
            auto deeper = std::make_unique<StageGames>(g.leaves().slots(), limit, limit);
            const py::gil_scoped_release nogil;
            deeper->load_leaves(g);
            return deeper;
          },
          py::arg("limit") = kFullInformation,
          "The games of the open successors, one each, in their order.");
}

Bytes encode_all(const Boards& boards, int slots) {
  check_slots(slots);
  check_boards(boards);
  if (boards.empty()) throw py::value_error("boards: empty, expected at least one");
  const int height = boards[0]->height();
  const int width = boards[0]->width();
  for (const Board* board : boards) {
    const int living = board->visit([](const auto& s) { return s.living(); });
    if (living > slots || board->height() != height || board->width() != width)
      throw StateError(
          "boards: expected boards of one size with at most as many living snakes as "
          "slots");
  }
  const py::ssize_t planes = v3_planes(slots);
  Bytes out(
      {static_cast<py::ssize_t>(boards.size()), planes, py::ssize_t{height}, py::ssize_t{width}});
  auto* data = out.mutable_data();
  const py::gil_scoped_release nogil;
  for (const Board* board : boards) {
    board->visit([&](const auto& s) { encode_v3(s, slots, {data, height, width}); });
    data += planes * height * width;
  }
  return out;
}

}  // namespace

void bind_nash(py::module_& m) {
  m.attr("MAX_SLOTS") = kMaxSlots;
  m.attr("FULL_INFORMATION") = kFullInformation;
  m.def(
      "all_seat_planes",
      [](int slots) {
        check_slots(slots);
        return v3_planes(slots);
      },
      py::arg("slots"), "Planes of observation v3, which shows all seats.");
  m.def(
      "all_seat_scale",
      [](int slots) {
        check_slots(slots);
        return v3_scale(slots);
      },
      py::arg("slots"), "Divisors of the planes of observation v3.");
  m.attr("ALL_SEAT_COMMON") = static_cast<int>(kV3Common);
  m.attr("ALL_SEAT_BLOCK") = static_cast<int>(kV3Slot);
  m.def("encode_all", &encode_all, py::arg("boards"), py::kw_only(), py::arg("slots"),
        "Observations v3 of boards of one size: uint8 [boards, planes, rows, cols]; row 0 is y = "
        "0. The first planes are common to all; each slot then has a block of its own.");
  bind_solvers(m);
  bind_stages(m);
  bind_plans(m);
}

}  // namespace snakekit
