// What the bindings of stage games and of plans share.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>

#include "nash/leaves.h"

namespace snakekit {

namespace py = pybind11;

using Floats = py::array_t<float, py::array::c_style | py::array::forcecast>;
using Bytes = py::array_t<std::uint8_t>;
using Array = py::array_t<float>;

void bind_plans(py::module_& m);

inline void check_slots(int slots) {
  if (slots < 2 || slots > kMaxSlots)
    throw py::value_error("slots: expected 2 to " + std::to_string(kMaxSlots) + ", found " +
                          std::to_string(slots));
}

inline void check_share(float x, const std::string& name) {
  if (!(x >= 0 && x <= 1)) throw py::value_error(name + ": expected 0 to 1");
}

inline const float* outcomes_of(const LeafSet& leaves, const Floats& outcomes) {
  if (outcomes.ndim() != 2 || outcomes.shape(0) != leaves.leaves() ||
      outcomes.shape(1) != leaves.slots() + 1)
    throw py::value_error("outcomes: expected float32 [" + std::to_string(leaves.leaves()) + ", " +
                          std::to_string(leaves.slots() + 1) + "]");
  return outcomes.data();
}

// Observations v3 [n, planes, height, width], written without the GIL by `write`.
inline Bytes observations(int n, int slots, int height, int width, auto&& write) {
  Bytes out({static_cast<py::ssize_t>(n), static_cast<py::ssize_t>(v3_planes(slots)),
             static_cast<py::ssize_t>(height), static_cast<py::ssize_t>(width)});
  auto* data = out.mutable_data();
  const py::gil_scoped_release nogil;
  write(data);
  return out;
}

inline Bytes encoded(const LeafSet& leaves, int n, auto&& write) {
  return observations(n, leaves.slots(), leaves.height(), leaves.width(), write);
}

}  // namespace snakekit
