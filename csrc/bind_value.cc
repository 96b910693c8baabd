#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "bind.h"
#include "bind_games.h"
#include "value/samples.h"

namespace py = pybind11;

namespace snakekit {

namespace {

using Labels = py::typing::Dict<py::str, py::array>;

Labels label(std::int64_t first, int games, int share, int wander, std::int64_t label_nodes,
             int random_percent, int width, int height, const Settings& settings,
             std::int64_t max_nodes, int max_turns, std::uint64_t seed, int threads,
             const GivenWeights& weights, const GivenValue& learned) {
  auto play = games_of(2, width, height, settings, max_nodes, kMaxDepth - 1, max_turns, seed);
  check_count("games", games);
  check_count("threads", threads);
  check_percent("random_percent", random_percent);
  if (share < 1 || share > 1000) throw py::value_error("share: expected 1..1000");
  if (wander < 0) throw py::value_error("wander: negative");
  if (label_nodes < 1) throw py::value_error("label_nodes: expected at least 1");
  play.random_percent = random_percent;
  const Evaluation evaluation = read_evaluation(weights, learned);
  Labelled found;
  {
    const py::gil_scoped_release nogil;
    found = label_positions(evaluation, play, {share, wander, label_nodes}, first, games, threads);
  }
  Labels out;
  py::array_t<std::uint16_t> rows(
      {static_cast<py::ssize_t>(found.rows.size()), static_cast<py::ssize_t>(kFeatures)});
  auto* to = rows.mutable_data();
  for (const auto& row : found.rows) to = std::copy(row.begin(), row.end(), to);
  out["rows"] = rows;
  out["score"] = array<std::int32_t>(found.score);
  out["result"] = array<float>(found.result);
  out["played"] = array<std::uint8_t>(found.played);
  out["game"] = array<std::int64_t>(found.game);
  return out;
}

template <class T>
std::vector<std::uint16_t> picked(const State<T>& s, int us) {
  const Features f = list_features(s, us, Flood<T>(s));
  return {f.begin(), f.end()};
}

}  // namespace

void bind_value(py::module_& m) {
  m.attr("SHIPPED_VALUE") = py::bytes(shipped_bytes().data(), shipped_bytes().size());
  m.attr("STANDING_VALUE") = py::bytes(standing_bytes().data(), standing_bytes().size());
  m.attr("VALUE_VERSION") = kFeatureVersion;
  m.attr("VALUE_ROWS") = kFeatureRows;
  m.attr("VALUE_UNITS") = kHidden;
  m.attr("VALUE_ONE") = kHiddenOne;
  m.attr("VALUE_PARTS") = kPointParts;
  py::class_<LearnedValue, std::shared_ptr<LearnedValue>>(m, "LearnedValue",
                                                          "An evaluation of duels by a network.")
      .def(py::init([](const py::bytes& bytes) {
             std::string error;
             auto value = read_value(static_cast<std::string_view>(bytes), error);
             if (!value) throw py::value_error("learned value: " + error);
             return value;
           }),
           py::arg("bytes"), "From the bytes of a file. ValueError says what is wrong with it.");
  m.def(
      "value_rows",
      [](const Board& board, int seat) {
        check_living(board, seat);
        return at_seat(board, seat, [](const auto& s, int us) {
          if (s.living() != 2) throw py::value_error("value_rows: expected two living snakes");
          return picked(s, us);
        });
      },
      py::arg("state"), py::arg("seat"),
      "Rows of the learned value that a duel's position picks, for a living seat.");
  m.def("label_positions", &label, py::kw_only(), py::arg("first") = 0, py::arg("games") = 1,
        py::arg("share") = 333, py::arg("wander") = 4, py::arg("label_nodes") = 3000,
        py::arg("random_percent") = 5, py::arg("width") = 11, py::arg("height") = 11,
        py::arg_v("settings", Settings{}, "Settings()"), py::arg("max_nodes") = 400,
        py::arg("max_turns") = 1000, py::arg("seed") = 0, py::arg("threads") = 1,
        py::arg("weights") = py::none(), py::arg("learned") = py::none(),
        "Positions near those of duels, with the score that a search of `label_nodes` gives them\n"
        "for one of the seats. Arrays by name: `rows` uint16 [n, features]; `score` int32 [n];\n"
        "`result` float32 [n], 1 where the seat won, 0.5 for a draw; `played` uint8 [n], whether\n"
        "the game came through the position; `game` int64 [n].");
}

}  // namespace snakekit
