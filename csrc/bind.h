// Parts of the Python module, one file each.
#pragma once

#include <pybind11/pybind11.h>

namespace snakekit {

void bind_env(pybind11::module_& m);

}  // namespace snakekit
