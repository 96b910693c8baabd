#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>

#include "bind.h"
#include "games.h"

namespace py = pybind11;

namespace snakekit {

namespace {

using Bytes = py::array_t<std::uint8_t>;
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

}  // namespace

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

}  // namespace snakekit
