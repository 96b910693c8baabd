// The Python face of the core. Everything that loops runs without the GIL.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>

#include "bind.h"
#include "board.h"
#include "encode.h"
#include "games.h"
#include "maps.h"
#include "measure.h"
#include "players.h"
#include "rules.h"
#include "search/search.h"

namespace py = pybind11;
using namespace snakekit;  // NOLINT(google-build-using-namespace): this file is only the binding

namespace {

using Bytes = py::array_t<std::uint8_t>;

void check_seat(const Board& b, int seat) {
  if (seat < 0 || seat >= b.seats())
    throw py::index_error("seat " + std::to_string(seat) + " is outside 0.." +
                          std::to_string(b.seats() - 1));
}

template <class F>
auto at_seat(const Board& b, int seat, F&& f) {
  check_seat(b, seat);
  return b.visit([&](const auto& s) { return f(s, seat); });
}

void check_version(int version) {
  if (version != 1 && version != 2)
    throw py::value_error("encoder version " + std::to_string(version) +
                          " is unknown, expected 1 or 2");
}

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

const char* stop_name(Stop s) {
  switch (s) {
    case Stop::kDepth:
      return "depth";
    case Stop::kTime:
      return "time";
    case Stop::kProved:
      return "proved";
    case Stop::kSingle:
      return "single";
    case Stop::kCancelled:
      return "cancelled";
  }
  return "";
}

const char* label_name(Label l) {
  return l == Label::kWin ? "win" : (l == Label::kLoss ? "loss" : "none");
}

SearchResult run_search(Searcher& searcher, const Board& board, int seat, std::int64_t budget_us,
                        int max_depth, const std::optional<std::vector<float>>& priors,
                        const std::string& proof) {
  check_seat(board, seat);
  if (!board.visit([&](const auto& s) { return s.alive(seat); }))
    throw py::value_error("seat " + std::to_string(seat) + " is dead");
  if (budget_us < 0) throw py::value_error("budget_us: negative");
  if (max_depth < 1) throw py::value_error("max_depth: expected at least 1");
  Limits limits;
  limits.budget_us = budget_us;
  limits.max_depth = max_depth;
  if (proof == "article") {
    limits.proof = Proof::kArticle;
  } else if (proof != "sound") {
    throw py::value_error("proof: '" + proof + "' is unknown, expected sound or article");
  }
  if (priors) {
    if (priors->size() != kMoves) throw py::value_error("priors: expected 4 numbers");
    std::copy(priors->begin(), priors->end(), limits.priors.begin());
  }
  if (!searcher.acquire()) throw std::runtime_error("this Searcher is busy with another search");
  const py::gil_scoped_release nogil;
  auto result = searcher.search(board, seat, limits);
  searcher.release();
  return result;
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
          py::arg("seat"), "Bit m: move m is not certain death this turn, whatever the others do.")
      .def("hash", [](const Board& b) { return b.visit([](const auto& s) { return s.hash(); }); })
      .def("copy", [](const Board& b) { return Board(b); })
      .def("observation_shape", &observation_shape, py::arg("version"))
      .def("encode", &encode, py::arg("version"), py::arg("seats"),
           "Observations uint8 [seats, planes, rows, cols]; row 0 is y = 0.")
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

EvalWeights read_weights(const std::map<std::string, int>& given) {
  EvalWeights w;
  for (const auto& [name, value] : given) {
    const auto* found = std::find_if(kWeightNames.begin(), kWeightNames.end(),
                                     [&](const auto& known) { return name == known.first; });
    if (found == kWeightNames.end()) throw py::value_error("weights: '" + name + "' is unknown");
    if (std::abs(value) > 10'000)
      throw py::value_error("weights: " + name + " is outside -10000..10000");
    w.*(found->second) = value;
  }
  return w;
}

void bind_search(py::module_& m) {
  py::dict defaults;
  for (const auto& [name, member] : kWeightNames) defaults[name] = EvalWeights{}.*member;
  m.attr("WEIGHTS") = defaults;
  py::class_<SearchResult>(m, "SearchResult",
                           "What one search found, per move in the order up, down, left, right.")
      .def_readonly("best", &SearchResult::best)
      .def_property_readonly(
          "scores",
          [](const SearchResult& r) {
            std::vector<std::optional<int>> v(kMoves);
            for (int i = 0; i < kMoves; ++i) {
              if (r.searched[i]) v[i] = r.score[i];
            }
            return v;
          },
          "Pessimistic score per move; None where the move was not searched.")
      .def_property_readonly(
          "labels",
          [](const SearchResult& r) {
            std::vector<std::string> v;
            for (const Label l : r.label) v.emplace_back(label_name(l));
            return v;
          },
          "Per move `win` or `loss` where it is proved, else `none`.")
      .def_property_readonly("distances",
                             [](const SearchResult& r) {
                               return std::vector<int>(r.distance.begin(), r.distance.end());
                             })
      .def_readonly("depth", &SearchResult::depth)
      .def_readonly("nodes", &SearchResult::nodes)
      .def_readonly("seconds", &SearchResult::seconds)
      .def_readonly("pv", &SearchResult::pv)
      .def_property_readonly(
          "stopped", [](const SearchResult& r) { return std::string(stop_name(r.stopped)); });

  py::class_<Searcher>(m, "Searcher", "Owns a transposition table; one search at a time.")
      .def(py::init([](int mb, const std::map<std::string, int>& weights) {
             if (mb < 1 || mb > 65536) throw py::value_error("table_mb: expected 1..65536");
             return std::make_unique<Searcher>(mb, read_weights(weights));
           }),
           py::arg("table_mb") = 16, py::kw_only(),
           py::arg("weights") = std::map<std::string, int>{},
           "`weights` replaces some of the evaluation's, by the names in WEIGHTS.")
      .def("search", &run_search, py::arg("state"), py::arg("seat"), py::kw_only(),
           py::arg("budget_us"), py::arg("max_depth") = kMaxDepth - 1,
           py::arg("priors") = py::none(), py::arg("proof") = "sound",
           "Searches until the budget (0: none) or depth is used up. RuntimeError when busy.")
      .def("cancel", &Searcher::cancel, "Stops the running search, from any thread.");
}

using Rows = py::array_t<std::int32_t, py::array::c_style | py::array::forcecast>;

const Row* check_rows(const Games& g, const Rows& rows) {
  if (rows.ndim() != 2 || rows.shape(1) != 2)
    throw py::value_error("rows: expected int32 [n, 2] of (game, seat)");
  const auto* r = reinterpret_cast<const Row*>(rows.data());
  for (py::ssize_t i = 0; i < rows.shape(0); ++i) {
    if (r[i].game < 0 || r[i].game >= g.count() || r[i].seat < 0 || r[i].seat >= g.seats())
      throw py::index_error("rows[" + std::to_string(i) + "]: no such game or seat");
  }
  return r;
}

Bytes encode_games(const Games& g, int version, const Rows& rows) {
  check_version(version);
  const auto* r = check_rows(g, rows);
  const py::ssize_t n = rows.shape(0);
  Bytes out =
      version == 1
          ? Bytes({n, py::ssize_t{kV1Planes}, py::ssize_t{kV1Side}, py::ssize_t{kV1Side}})
          : Bytes({n, py::ssize_t{kV2Planes}, py::ssize_t{g.height()}, py::ssize_t{g.width()}});
  auto* data = out.mutable_data();
  const py::gil_scoped_release nogil;
  g.encode(version, r, static_cast<int>(n), data);
  return out;
}

py::array_t<float> search_games(Games& g, const Rows& rows, int max_depth, std::int64_t budget_us,
                                int threads) {
  if (max_depth < 1 || threads < 1 || threads > 256 || budget_us < 0)
    throw py::value_error("max_depth and threads: expected at least 1; budget_us: not negative");
  const auto* r = check_rows(g, rows);
  const bool* living = nullptr;
  const auto alive = std::make_unique<bool[]>(static_cast<std::size_t>(g.count()) * g.seats());
  g.alive(alive.get());
  living = alive.get();
  for (py::ssize_t i = 0; i < rows.shape(0); ++i) {
    if (!living[r[i].game * g.seats() + r[i].seat])
      throw py::value_error("rows[" + std::to_string(i) + "]: the seat is dead");
  }
  py::array_t<float> out({rows.shape(0), py::ssize_t{kMoves}});
  auto* data = out.mutable_data();
  const py::gil_scoped_release nogil;
  g.search(r, static_cast<int>(rows.shape(0)), max_depth, budget_us, threads, data);
  return out;
}

py::array_t<std::int8_t> step_games(
    Games& g, const py::array_t<std::int8_t, py::array::c_style | py::array::forcecast>& moves) {
  if (moves.ndim() != 2 || moves.shape(0) != g.count() || moves.shape(1) != g.seats())
    throw py::value_error("moves: expected int8 [" + std::to_string(g.count()) + ", " +
                          std::to_string(g.seats()) + "]");
  py::array_t<std::int8_t> out({g.count(), g.seats()});
  auto* data = out.mutable_data();
  const auto* m = moves.data();
  const py::gil_scoped_release nogil;
  g.step(m, data);
  return out;
}

void bind_games(py::module_& m) {
  py::class_<Games>(m, "Games", "Games of one kind stepped together; finished ones start anew.")
      .def(py::init<int, int, int, int, std::uint64_t, const Settings&>(), py::arg("count"),
           py::arg("width"), py::arg("height"), py::arg("snakes"), py::arg("seed"),
           py::arg_v("settings", Settings{}, "Settings()"))
      .def_property_readonly("count", &Games::count)
      .def_property_readonly("seats", &Games::seats)
      .def(
          "state",
          [](const Games& g, int game) {
            if (game < 0 || game >= g.count())
              throw py::index_error("no game " + std::to_string(game));
            return g.board(game);
          },
          py::arg("game"), "A copy of one game's board.")
      .def(
          "alive",
          [](const Games& g) {
            py::array_t<bool> out({g.count(), g.seats()});
            g.alive(out.mutable_data());
            return out;
          },
          "bool [count, seats].")
      .def(
          "safe_masks",
          [](const Games& g) {
            Bytes out({g.count(), g.seats()});
            g.safe_masks(out.mutable_data());
            return out;
          },
          "uint8 [count, seats], bit m for move m; 0 for dead seats.")
      .def("encode", &encode_games, py::arg("version"), py::arg("rows"),
           "Observations of rows int32 [n, 2] of (game, seat): uint8 [n, planes, rows, cols].")
      .def("search", &search_games, py::arg("rows"), py::kw_only(), py::arg("max_depth"),
           py::arg("budget_us") = 0, py::arg("threads") = 1,
           "Search scores float32 [n, 4]; -inf for moves that are not legal.")
      .def("step", &step_games, py::arg("moves"),
           "Moves int8 [count, seats] in; results int8 [count, seats] out: 0 goes on, 1 won, -1 "
           "lost, 2 draw.");
}

void bind_measures(py::module_& m) {
  m.def(
      "measure_turns",
      [](int width, int height, int snakes, std::uint64_t seed, const Settings& settings,
         double seconds) {
        const py::gil_scoped_release nogil;
        const auto r = measure_turns(width, height, snakes, seed, settings, seconds);
        return std::pair{r.count, r.seconds};
      },
      py::arg("width"), py::arg("height"), py::arg("snakes"), py::arg("seed"),
      py::arg_v("settings", Settings{}, "Settings()"), py::kw_only(), py::arg("seconds") = 0.5,
      "Steps recorded games by the rules alone; returns turns and seconds on this thread.");
  m.def(
      "measure_encoder",
      [](const std::vector<const Board*>& boards, int version, double seconds) {
        check_version(version);
        if (boards.empty()) throw py::value_error("states: empty");
        const py::gil_scoped_release nogil;
        return measure_encoder(boards, version, seconds);
      },
      py::arg("states"), py::arg("version"), py::kw_only(), py::arg("seconds") = 0.3,
      "Seconds to encode all living seats of one state, mean over the states.");
}

}  // namespace

PYBIND11_MODULE(_core, m, py::mod_gil_not_used()) {
  m.doc() = "C++ core of snakekit: rules, observations, search and batches of games.";
  py::register_exception<StateError>(m, "StateError", PyExc_ValueError);
  m.attr("MOVES") = py::make_tuple("up", "down", "left", "right");
  m.attr("RULESETS") =
      py::make_tuple("standard", "solo", "royale", "constrictor", "wrapped", "wrapped_constrictor");
  py::tuple maps(kMapNames.size());
  for (std::size_t i = 0; i < kMapNames.size(); ++i) maps[i] = std::string(kMapNames[i]);
  m.attr("MAPS") = maps;
  m.attr("MAX_SNAKES") = Large::kSnakes;
  py::dict planes;
  planes[py::int_(1)] = kV1Planes;
  planes[py::int_(2)] = static_cast<int>(kV2Planes);
  m.attr("PLANES") = planes;
  py::dict scale;
  scale[py::int_(1)] = py::tuple(py::cast(kV1Scale));
  scale[py::int_(2)] = py::tuple(py::cast(kV2Scale));
  m.attr("PLANE_SCALE") = scale;
  bind_values(m);
  bind_state(m);
  bind_players(m);
  bind_search(m);
  bind_games(m);
  bind_env(m);
  bind_measures(m);
}
