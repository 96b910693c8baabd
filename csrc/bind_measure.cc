#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bind.h"
#include "measure.h"

namespace py = pybind11;

namespace snakekit {

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
        if (version < 1 || version > 3) throw py::value_error("version: expected 1, 2 or 3");
        if (boards.empty()) throw py::value_error("states: empty");
        const py::gil_scoped_release nogil;
        return measure_encoder(boards, version, seconds);
      },
      py::arg("states"), py::arg("version"), py::kw_only(), py::arg("seconds") = 0.3,
      "Seconds to encode all living seats of one state (v3: in one observation), mean over the "
      "states.");
}

}  // namespace snakekit
