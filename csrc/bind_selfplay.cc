#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "bind.h"
#include "bind_games.h"

namespace py = pybind11;

namespace snakekit {

namespace {

using Sample = std::tuple<py::array_t<std::int32_t>, py::array_t<std::int32_t>, py::array_t<float>,
                          py::array_t<std::int64_t>>;

py::array_t<float> play(const GivenWeights& a, const GivenWeights& b, std::int64_t first,
                        int starts, int snakes, int width, int height, const Settings& settings,
                        std::int64_t max_nodes, int max_depth, int max_turns, std::uint64_t seed,
                        int threads) {
  const auto games =
      games_of(snakes, width, height, settings, max_nodes, max_depth, max_turns, seed);
  check_count("starts", starts);
  check_count("threads", threads);
  const Evaluation of_a = read_evaluation(a, std::nullopt);
  const Evaluation of_b = read_evaluation(b, std::nullopt);
  std::vector<float> points;
  {
    const py::gil_scoped_release nogil;
    points = self_play(of_a, of_b, games, first, starts, threads);
  }
  return array<float>(points).reshape({py::ssize_t{starts}, py::ssize_t{line_ups(snakes)}});
}

Sample sample(const GivenWeights& given, std::int64_t first, int games, int every,
              int random_percent, int snakes, int width, int height, const Settings& settings,
              std::int64_t max_nodes, int max_depth, int max_turns, std::uint64_t seed,
              int threads) {
  auto play = games_of(snakes, width, height, settings, max_nodes, max_depth, max_turns, seed);
  check_count("games", games);
  check_count("every", every);
  check_count("threads", threads);
  check_percent("random_percent", random_percent);
  play.random_percent = random_percent;
  const Evaluation evaluation = read_evaluation(given, std::nullopt);
  Positions found;
  {
    const py::gil_scoped_release nogil;
    found = sample_positions(evaluation, play, first, games, every, threads);
  }
  py::array_t<std::int32_t> terms(
      {static_cast<py::ssize_t>(found.terms.size()), py::ssize_t{kTerms}});
  auto* out = terms.mutable_data();
  for (const auto& row : found.terms) out = std::copy(row.begin(), row.end(), out);
  return {terms, array<std::int32_t>(found.living), array<float>(found.result),
          array<std::int64_t>(found.game)};
}

}  // namespace

void bind_selfplay(py::module_& m) {
  py::tuple terms(kTerms);
  for (int i = 0; i < kTerms; ++i) terms[i] = std::string(kTermNames[i]);
  m.attr("TERMS") = terms;
  m.def(
      "evaluation_terms",
      [](const Board& board, int seat) {
        check_living(board, seat);
        return at_seat(board, seat, [](const auto& s, int us) {
          const Terms t = evaluation_terms(s, us);
          return std::vector<int>(t.begin(), t.end());
        });
      },
      py::arg("state"), py::arg("seat"),
      "What the evaluation sees in a position, by the names in TERMS.");
  m.def(
      "evaluate",
      [](const Board& board, int seat, const GivenWeights& weights, const GivenValue& learned) {
        check_living(board, seat);
        const Evaluation e = read_evaluation(weights, learned);
        return at_seat(board, seat, [&](const auto& s, int us) { return evaluate(s, us, e); });
      },
      py::arg("state"), py::arg("seat"), py::kw_only(), py::arg("weights") = py::none(),
      py::arg("learned") = py::none(),
      "The evaluation of a position for a living seat, as the search uses it.");
  m.def("self_play", &play, py::arg("a"), py::arg("b"), py::kw_only(), py::arg("first") = 0,
        py::arg("starts") = 1, py::arg("snakes") = 2, py::arg("width") = 11, py::arg("height") = 11,
        py::arg_v("settings", Settings{}, "Settings()"), py::arg("max_nodes") = 0,
        py::arg("max_depth") = kMaxDepth - 1, py::arg("max_turns") = 1000, py::arg("seed") = 0,
        py::arg("threads") = 1,
        "Games of weights `a` against `b`, half of the snakes each. Returns the points of `a`,\n"
        "float32 [starts, line-ups]: 1 where one of its snakes outlives all, 0.5 for a draw.\n"
        "Starts are numbered from `first`; the result does not depend on `threads`.");
  m.def("sample_positions", &sample, py::arg("weights"), py::kw_only(), py::arg("first") = 0,
        py::arg("games") = 1, py::arg("every") = 3, py::arg("random_percent") = 4,
        py::arg("snakes") = 2, py::arg("width") = 11, py::arg("height") = 11,
        py::arg_v("settings", Settings{}, "Settings()"), py::arg("max_nodes") = 0,
        py::arg("max_depth") = kMaxDepth - 1, py::arg("max_turns") = 1000, py::arg("seed") = 0,
        py::arg("threads") = 1,
        "Undecided positions of games, each seen by every living snake. Returns terms\n"
        "int32 [n, TERMS], living snakes int32 [n], result float32 [n] (1 for the winner, 0.5\n"
        "for a drawn duel, else 0) and number of the game int64 [n].");
}

}  // namespace snakekit
