#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <array>
#include <memory>
#include <optional>

#include "bind.h"
#include "bind_nash.h"
#include "nash/plans.h"

namespace snakekit {

namespace {

using Plans = py::array_t<std::int8_t, py::array::c_style | py::array::forcecast>;
using LinesValued = py::typing::Tuple<Array, Array>;

int living_of(const Board& board) {
  return board.visit([](const auto& s) { return s.living(); });
}

void check_moves(const Plans& plans, int least, const std::string& name) {
  for (py::ssize_t i = 0; i < plans.size(); ++i) {
    if (plans.data()[i] < least || plans.data()[i] >= kMoves)
      throw py::value_error(name + ": a move is " + std::to_string(least) + " to 3");
  }
}

LinesValued plan_values(PlanLines& plans, const Floats& outcomes, bool logits, float draw_worth) {
  check_share(draw_worth, "draw_worth");
  LeafSet& leaves = plans.leaves();
  leaves.read(outcomes_of(leaves, outcomes), logits, draw_worth);
  const py::ssize_t n = leaves.lines();
  const py::ssize_t slots = leaves.slots();
  py::array_t<float> outcome({n, slots + 1});
  py::array_t<float> value({n, slots});
  if (n > 0) {
    std::copy_n(leaves.outcome(0), n * (slots + 1), outcome.mutable_data());
    std::copy_n(leaves.utility(0), n * slots, value.mutable_data());
  }
  return LinesValued(py::make_tuple(outcome, value));
}

std::unique_ptr<PlanLines> plan_lines(const Board& board, const Plans& plans, int slots,
                                      bool reflexes) {
  check_slots(slots);
  if (plans.ndim() != 3 || plans.shape(1) != living_of(board) || plans.shape(2) < 1)
    throw py::value_error("plans: expected int8 [lines, living seats, turns]");
  check_moves(plans, reflexes ? kReflex : 0, "plans");
  const auto* p = plans.data();
  auto lines = std::make_unique<PlanLines>(slots);
  const py::gil_scoped_release nogil;
  lines->load(board, p, static_cast<int>(plans.shape(0)), static_cast<int>(plans.shape(2)),
              reflexes);
  return lines;
}

std::unique_ptr<PlanWalk> plan_walk(const Board& board, int count, int turns, int slots) {
  check_slots(slots);
  if (count < 1 || turns < 1) throw py::value_error("count and turns: expected at least 1");
  const py::gil_scoped_release nogil;
  return std::make_unique<PlanWalk>(board, count, turns, slots);
}

void walk_on(PlanWalk& walk, const Floats& logits, std::uint64_t seed) {
  if (logits.ndim() != 3 || logits.shape(0) != walk.open() || logits.shape(1) != walk.slots() ||
      logits.shape(2) != kMoves)
    throw py::value_error("logits: expected float32 [" + std::to_string(walk.open()) + ", " +
                          std::to_string(walk.slots()) + ", 4]");
  const float* given = logits.data();
  const py::gil_scoped_release nogil;
  walk.step(given, seed);
}

py::array_t<std::int8_t> walked(const PlanWalk& walk) {
  const std::array<py::ssize_t, 3> shape{walk.seats(), walk.count(), walk.turns()};
  return py::array_t<std::int8_t>(shape, walk.plans().data());
}

py::array_t<std::int8_t> completed(const Board& board, int slot, const Plans& plans,
                                   const std::optional<Plans>& expected, std::uint64_t seed) {
  const int living = living_of(board);
  if (slot < 0 || slot >= living)
    throw py::index_error("slot " + std::to_string(slot) + " is outside 0.." +
                          std::to_string(living - 1));
  if (plans.ndim() != 2 || plans.shape(1) < 1)
    throw py::value_error("plans: expected int8 [count, turns]");
  check_moves(plans, kReflex, "plans");
  if (expected) {
    if (expected->ndim() != 2 || expected->shape(0) != living ||
        expected->shape(1) != plans.shape(1))
      throw py::value_error("expected: expected int8 [living seats, turns]");
    check_moves(*expected, kReflex, "expected");
  }
  const std::array<py::ssize_t, 2> shape{plans.shape(0), plans.shape(1)};
  py::array_t<std::int8_t> out(shape, plans.data());
  auto* moves = out.mutable_data();
  const auto* others = expected ? expected->data() : nullptr;
  const py::gil_scoped_release nogil;
  complete_plans(board, slot, others, moves, static_cast<int>(plans.shape(0)),
                 static_cast<int>(plans.shape(1)), seed);
  return out;
}

}  // namespace

void bind_plans(py::module_& m) {
  py::class_<PlanLines>(m, "PlanLines",
                        "Boards after several turns of planned moves: int8 [lines, living seats, "
                        "turns]. A line ends early with its game.")
      .def(py::init(&plan_lines), py::arg("board"), py::arg("plans"), py::kw_only(),
           py::arg("slots"), py::arg("reflexes") = false,
           "With `reflexes` a move that is -1, or certain death by then, is replaced by the reflex "
           "move.")
      .def_property_readonly("leaves", [](PlanLines& p) { return p.leaves().leaves(); })
      .def_property_readonly("lines", [](PlanLines& p) { return p.leaves().lines(); })
      .def(
          "encode",
          [](PlanLines& p) {
            return encoded(p.leaves(), p.leaves().leaves(),
                           [&](auto* out) { p.leaves().encode(out); });
          },
          "Observations v3 of the open ends: uint8 [leaves, planes, rows, cols].")
      .def("values", &plan_values, py::arg("outcomes"), py::kw_only(), py::arg("logits") = true,
           py::arg("draw_worth") = 1.0F,
           "Outcome [lines, slots + 1] and utility [lines, slots] of every line, over the slots of "
           "the first board.");

  py::class_<PlanWalk>(m, "PlanWalk",
                       "Plans of all living seats, drawn turn by turn from a policy that they "
                       "follow together. Encode, ask the policy, step, until nothing is open.")
      .def(py::init(&plan_walk), py::arg("board"), py::kw_only(), py::arg("count"),
           py::arg("turns"), py::arg("slots"))
      .def_property_readonly("open", &PlanWalk::open, "Boards on which the walk goes on.")
      .def(
          "encode",
          [](const PlanWalk& w) {
            return observations(w.open(), w.slots(), w.root().height(), w.root().width(),
                                [&](auto* out) { w.encode(out); });
          },
          "Observations v3 of the open boards: uint8 [open, planes, rows, cols].")
      .def("step", &walk_on, py::arg("logits"), py::arg("seed"),
           "Draw a candidate move of each living seat from float32 [open, slots, 4] and play it.")
      .def_property_readonly("plans", &walked,
                             "int8 [living seats, count, turns]; -1 after the end of the seat.");

  m.def("complete_plans", &completed, py::arg("board"), py::arg("slot"), py::arg("plans"),
        py::kw_only(), py::arg("expected") = py::none(), py::arg("seed") = 0,
        "A copy of a seat's plans int8 [count, turns] in which moves that are -1 or certain death "
        "are random candidates, against others that make their `expected` moves int8 [living "
        "seats, turns], or reflex moves.");
}

}  // namespace snakekit
