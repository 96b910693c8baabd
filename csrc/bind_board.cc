#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "board.h"
#include "encode.h"
#include "maps.h"
#include "players.h"
#include "rules.h"

namespace py = pybind11;

namespace snakekit {

namespace {

using Bytes = py::array_t<std::uint8_t>;

std::tuple<int, int, int> observation_shape(const Board& b, int version) {
  check_version(version);
  if (version == 1) return {kV1Planes, kV1Side, kV1Side};
  return {kV2Planes, b.height(), b.width()};
}

void encode_one(const Board& b, int version, int seat, PlaneView out) {
  b.visit([&]<class T>(const State<T>& s) {
    if (version == 1) {
      encode_v1(s, seat, out.data);
    } else {
      const Arrivals<T> arrivals(s);
      encode_v2(s, arrivals, seat, out);
    }
  });
}

Bytes encode(const Board& b, int version, const std::vector<int>& seats) {
  const auto [planes, rows, cols] = observation_shape(b, version);
  for (const int seat : seats) check_seat(b, seat);
  Bytes out({static_cast<py::ssize_t>(seats.size()), static_cast<py::ssize_t>(planes),
             static_cast<py::ssize_t>(rows), static_cast<py::ssize_t>(cols)});
  auto* data = out.mutable_data();
  const py::ssize_t stride = static_cast<py::ssize_t>(planes) * rows * cols;
  const py::gil_scoped_release nogil;
  b.visit([&, rows = rows, cols = cols]<class T>(const State<T>& s) {
    if (version == 1) {
      for (const int seat : seats) {
        encode_v1(s, seat, data);
        data += stride;
      }
      return;
    }
    const Arrivals<T> arrivals(s);
    for (const int seat : seats) {
      encode_v2(s, arrivals, seat, {data, rows, cols});
      data += stride;
    }
  });
  return out;
}

void encode_into(const Board& b, int version, int seat,
                 py::array_t<std::uint8_t, py::array::c_style> out) {
  const auto [planes, rows, cols] = observation_shape(b, version);
  check_seat(b, seat);
  const bool exact = version == 1;
  if (out.ndim() != 3 || out.shape(0) != planes || out.shape(1) < rows || out.shape(2) < cols ||
      (exact && (out.shape(1) != rows || out.shape(2) != cols))) {
    throw py::value_error("out: expected a uint8 array [" + std::to_string(planes) + ", " +
                          std::to_string(rows) + (exact ? ", " : "+, ") + std::to_string(cols) +
                          (exact ? "]" : "+]"));
  }
  const PlaneView view{out.mutable_data(), static_cast<int>(out.shape(1)),
                       static_cast<int>(out.shape(2))};
  const py::gil_scoped_release nogil;
  encode_one(b, version, seat, view);
}

Moves read_moves(const Board& b, const std::vector<int>& moves) {
  if (static_cast<int>(moves.size()) != b.seats())
    throw py::value_error("moves: " + std::to_string(moves.size()) + " for " +
                          std::to_string(b.seats()) + " seats");
  Moves m;
  m.fill(kInvalidMove);
  for (std::size_t i = 0; i < moves.size(); ++i)
    m[i] = moves[i] >= 0 && moves[i] < kMoves ? static_cast<std::int8_t>(moves[i]) : kInvalidMove;
  return m;
}

void step_board(Board& b, const std::vector<int>& moves) {
  const Moves m = read_moves(b, moves);
  b.visit([&](auto& s) { step(s, m); });
}

void advance_board(Board& b, const std::vector<int>& moves, std::uint64_t seed) {
  const Moves m = read_moves(b, moves);
  b.visit([&](auto& s) { advance(s, m, seed); });
}

std::vector<int> living(const Board& b) {
  return b.visit([](const auto& s) {
    std::vector<int> out;
    for (int i = 0; i < s.seats; ++i) {
      if (s.alive(i)) out.push_back(i);
    }
    return out;
  });
}

void bind_values(py::module_& m) {
  py::class_<Snake>(m, "Snake", "One snake as plain values; bodies list the head first.")
      .def(py::init([](std::string id, int health, std::vector<Point> body, std::string cause,
                       std::string by, int turn) {
             return Snake{std::move(id),    health,        std::move(body),
                          std::move(cause), std::move(by), turn};
           }),
           py::arg("id"), py::arg("health"), py::arg("body"), py::arg("eliminated_cause") = "",
           py::arg("eliminated_by") = "", py::arg("eliminated_on_turn") = 0)
      .def_readonly("id", &Snake::id)
      .def_readonly("health", &Snake::health)
      .def_readonly("body", &Snake::body)
      .def_readonly("eliminated_cause", &Snake::eliminated_cause)
      .def_readonly("eliminated_by", &Snake::eliminated_by)
      .def_readonly("eliminated_on_turn", &Snake::eliminated_on_turn);

  py::class_<Settings>(m, "Settings", "Rules of a game. An unknown ruleset name means standard.")
      .def(py::init([](std::string ruleset, bool solo, int chance, int minimum, int damage,
                       int shrink, std::string map) {
             Settings s{std::move(ruleset), solo, chance, minimum, damage, shrink, std::move(map)};
             (void)s.rules();
             return s;
           }),
           py::kw_only(), py::arg("ruleset") = "standard", py::arg("solo") = false,
           py::arg("food_spawn_chance") = 15, py::arg("minimum_food") = 1,
           py::arg("hazard_damage") = 14, py::arg("shrink_every") = 25, py::arg("map") = "standard",
           "A map name that is not in MAPS has the standard map's food and no hazards of its own.")
      .def_readonly("ruleset", &Settings::ruleset)
      .def_readonly("solo", &Settings::solo)
      .def_readonly("food_spawn_chance", &Settings::food_spawn_chance)
      .def_readonly("minimum_food", &Settings::minimum_food)
      .def_readonly("hazard_damage", &Settings::hazard_damage)
      .def_readonly("shrink_every", &Settings::shrink_every)
      .def_readonly("map", &Settings::map);
}

void bind_state(py::module_& m) {
  py::class_<Board>(m, "State",
                    "A board with its rules. A seat is the index of a snake in the list given.")
      .def(py::init<int, int, const std::vector<Snake>&, const std::vector<Point>&,
                    const std::vector<Point>&, int, const Settings&>(),
           py::arg("width"), py::arg("height"), py::arg("snakes"),
           py::arg("food") = std::vector<Point>{}, py::arg("hazards") = std::vector<Point>{},
           py::kw_only(), py::arg("turn") = 0, py::arg_v("settings", Settings{}, "Settings()"),
           "Raises StateError, naming the field, for anything that no game can show.")
      .def_static(
          "new_game", &new_game, py::arg("width"), py::arg("height"), py::arg("ids"),
          py::arg("seed"), py::arg_v("settings", Settings{}, "Settings()"),
          "A fresh board of the settings' map. StateError for an unknown map, a size it does "
          "not have or snakes that do not fit.")
      .def_property_readonly("width", &Board::width)
      .def_property_readonly("height", &Board::height)
      .def_property_readonly(
          "turn", [](const Board& b) { return b.visit([](const auto& s) { return s.h.turn; }); })
      .def_property_readonly("num_snakes", &Board::seats)
      .def_property_readonly("settings", &Board::settings)
      .def("snakes", &Board::snakes)
      .def("food", &Board::food, "In the engine's order.")
      .def("hazards", &Board::hazards, "Sorted, a point once per layer.")
      .def(
          "head",
          [](const Board& b, int seat) {
            return at_seat(b, seat, [](const auto& s, int i) { return s.geo->point(s.head(i)); });
          },
          py::arg("seat"))
      .def(
          "length",
          [](const Board& b, int seat) {
            return at_seat(b, seat, [](const auto& s, int i) {
              return static_cast<int>(s.h.snake[i].length);
            });
          },
          py::arg("seat"))
      .def(
          "health",
          [](const Board& b, int seat) {
            return at_seat(b, seat, [](const auto& s, int i) {
              return static_cast<int>(s.h.snake[i].health);
            });
          },
          py::arg("seat"))
      .def(
          "alive",
          [](const Board& b, int seat) {
            return at_seat(b, seat, [](const auto& s, int i) { return s.alive(i); });
          },
          py::arg("seat"))
      .def("living", &living, "Seats alive.")
      .def(
          "game_over",
          [](const Board& b) { return b.visit([](const auto& s) { return s.game_over(); }); },
          "Judged on this board, before any move, as the engine does.")
      .def("step", &step_board, py::arg("moves"),
           "Plays one turn in place: a move per seat, other values than 0..3 mean straight on. No "
           "food is spawned.")
      .def(
          "initialise", [](Board& b) { b.visit([](auto& s) { initialise(s); }); },
          "The engine's call without moves at the start of a game.")
      .def("advance", &advance_board, py::arg("moves"), py::arg("seed"),
           "Plays one whole turn in place: the moves, the royale ruleset's hazards, the map. "
           "Give one seed to all turns of a game.")
      .def(
          "update_map",
          [](Board& b, std::uint64_t seed) { b.visit([&](auto& s) { update_map(s, seed); }); },
          py::arg("seed"),
          "What the map does after `step`; a pure function of seed, turn and board.")
      .def(
          "spawn_food",
          [](Board& b, std::uint64_t seed) { b.visit([&](auto& s) { spawn_food(s, seed); }); },
          py::arg("seed"), "The standard map's food rule; a pure function of seed, turn and board.")
      .def(
          "legal_mask",
          [](const Board& b, int seat) {
            return at_seat(b, seat, [](const auto& s, int i) { return legal_mask(s, i); });
          },
          py::arg("seat"), "Bit m: move m stays on the board and does not turn into the own neck.")
      .def(
          "safe_mask",
          [](const Board& b, int seat) {
            return at_seat(b, seat, [](const auto& s, int i) { return safe_mask(s, i); });
          },
          py::arg("seat"),
          "Bit m: move m is not certain death this turn, unless another leaves the board to make "
          "room.")
      .def("hash", [](const Board& b) { return b.visit([](const auto& s) { return s.hash(); }); })
      .def("copy", [](const Board& b) { return Board(b); })
      .def("observation_shape", &observation_shape, py::arg("version"))
      .def("encode", &encode, py::arg("version"), py::arg("seats"),
           "Observations uint8 [seats, planes, rows, cols]; row 0 is y = 0.")
      .def(
          "encode_float",
          [](const Board& b, int version, const std::vector<int>& seats) {
            return scaled(version, encode(b, version, seats));
          },
          py::arg("version"), py::arg("seats"),
          "The same as float32, each plane divided by its PLANE_SCALE, as the nets see it.")
      .def(
          "encode_into", &encode_into, py::arg("version"), py::arg("seat"),
          py::arg("out").noconvert(),
          "Writes one observation; for v2 `out` may have more rows and columns, which become zero.")
      .def("__eq__",
           [](const Board& a, const py::object& o) {
             return py::isinstance<Board>(o) && a == o.cast<const Board&>();
           })
      .attr("__hash__") = py::none();
}

void bind_players(py::module_& m) {
  m.def(
      "reflex_move",
      [](const Board& b, int seat) {
        return at_seat(b, seat, [](const auto& s, int i) { return reflex_move(s, i); });
      },
      py::arg("state"), py::arg("seat"),
      "The safe move with most room; deterministic, microseconds.");
  m.def(
      "random_move",
      [](const Board& b, int seat, std::uint64_t seed) {
        return at_seat(b, seat, [&](const auto& s, int i) { return random_move(s, i, seed); });
      },
      py::arg("state"), py::arg("seat"), py::arg("seed"), "Uniform over safe moves.");
  m.def(
      "greedy_move",
      [](const Board& b, int seat, std::uint64_t seed) {
        return at_seat(b, seat, [&](const auto& s, int i) { return greedy_move(s, i, seed); });
      },
      py::arg("state"), py::arg("seat"), py::arg("seed"),
      "Towards the nearest food it can reach in safety.");
}

}  // namespace

py::array_t<float> scaled(int version, const py::array_t<std::uint8_t>& planes) {
  py::array_t<float> out({planes.shape(0), planes.shape(1), planes.shape(2), planes.shape(3)});
  const auto* in = planes.data();
  auto* data = out.mutable_data();
  const int n = static_cast<int>(planes.shape(0));
  const int cells = static_cast<int>(planes.shape(2) * planes.shape(3));
  const py::gil_scoped_release nogil;
  scale_planes(version, in, n, cells, data);
  return out;
}

void bind_board(py::module_& m) {
  bind_values(m);
  bind_state(m);
  bind_players(m);
}

}  // namespace snakekit
