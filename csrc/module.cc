// The Python module; its parts are in bind_*.cc.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "encode.h"

namespace py = pybind11;
using namespace snakekit;  // NOLINT(google-build-using-namespace): only the module's table

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
  bind_board(m);
  bind_value(m);
  bind_search(m);
  bind_env(m);
  bind_nash(m);
  bind_selfplay(m);
  bind_measures(m);
}
