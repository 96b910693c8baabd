#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <limits>
#include <memory>

#include "bind.h"
#include "env.h"

namespace py = pybind11;

namespace snakekit {

namespace {

using Moves2d = py::array_t<std::int8_t, py::array::c_style | py::array::forcecast>;
using Rows2d = py::array_t<std::int32_t, py::array::c_style | py::array::forcecast>;

// The environment with a guard: its buffers are written without the GIL.
class PyEnv {
 public:
  PyEnv(const std::vector<Scenario>& mix, const EnvOptions& options) : env(mix, options) {}

  // Runs `f` without the GIL; a second call at the same time is an error, not a race.
  template <class F>
  void exclusive(F&& f) {
    if (busy_.exchange(true)) throw std::runtime_error("this VectorEnv is busy in another thread");
    try {
      const py::gil_scoped_release nogil;
      f();
    } catch (...) {
      busy_.store(false);
      throw;
    }
    busy_.store(false);
  }

  VectorEnv env;

 private:
  std::atomic<bool> busy_{false};
};

// An array over memory that `owner` keeps alive.
template <class To, class From>
py::array_t<To> view(const py::object& owner, std::vector<From>& data,
                     std::vector<py::ssize_t> shape) {
  static_assert(sizeof(To) == sizeof(From));
  return py::array_t<To>(std::move(shape), reinterpret_cast<To*>(data.data()), owner);
}

template <class To, class Member>
auto seat_view(Member member) {
  return [member](const py::object& self) {
    auto& env = self.cast<PyEnv&>().env;
    return view<To>(self, env.buffers.*member, {env.count(), env.seats()});
  };
}

template <class To, class Member>
auto game_view(Member member) {
  return [member](const py::object& self) {
    auto& env = self.cast<PyEnv&>().env;
    return view<To>(self, env.buffers.*member, {env.count()});
  };
}

template <class Member>
auto obs_view(Member member) {
  return [member](const py::object& self) {
    auto& env = self.cast<PyEnv&>().env;
    auto& data = env.buffers.*member;
    const py::ssize_t n = data.empty() ? 0 : env.count();
    return view<std::uint8_t>(self, data, {n, env.seats(), env.planes(), env.rows(), env.cols()});
  };
}

void step_env(PyEnv& self, const Moves2d& moves) {
  auto& env = self.env;
  if (moves.ndim() != 2 || moves.shape(0) != env.count() || moves.shape(1) != env.seats()) {
    throw py::value_error("moves: expected int8 [" + std::to_string(env.count()) + ", " +
                          std::to_string(env.seats()) + "]");
  }
  const auto* m = moves.data();
  self.exclusive([&] { env.step(m); });
}

using Ints1d = py::array_t<std::int32_t, py::array::c_style | py::array::forcecast>;
using Moves3d = py::array_t<std::int8_t, py::array::c_style | py::array::forcecast>;

void replay(PyEnv& self, const Ints1d& episodes, const Ints1d& turns, const Moves3d& moves) {
  auto& env = self.env;
  const auto ints = [&](const char* name, const Ints1d& a, py::ssize_t limit) {
    bool good = a.ndim() == 1 && a.shape(0) == env.count();
    for (py::ssize_t g = 0; good && g < env.count(); ++g) good = a.at(g) >= 0 && a.at(g) <= limit;
    if (!good)
      throw py::value_error(std::string(name) + ": expected int32 [" + std::to_string(env.count()) +
                            "] of 0.." + std::to_string(limit));
  };
  if (moves.ndim() != 3 || moves.shape(0) != env.count() || moves.shape(2) != env.seats()) {
    throw py::value_error("moves: expected int8 [" + std::to_string(env.count()) + ", turns, " +
                          std::to_string(env.seats()) + "]");
  }
  ints("episodes", episodes, std::numeric_limits<std::int32_t>::max());
  ints("turns", turns, moves.shape(1));
  self.exclusive([&, e = episodes.data(), t = turns.data(), m = moves.data()] {
    env.replay(e, t, m, static_cast<int>(moves.shape(1)));
  });
}

const Row* check_rows(const VectorEnv& env, const Rows2d& rows, bool living) {
  if (rows.ndim() != 2 || rows.shape(1) != 2)
    throw py::value_error("rows: expected int32 [n, 2] of (game, seat)");
  const auto* r = reinterpret_cast<const Row*>(rows.data());
  for (py::ssize_t i = 0; i < rows.shape(0); ++i) {
    const std::string name = "rows[" + std::to_string(i) + "]";
    if (r[i].game < 0 || r[i].game >= env.count() || r[i].seat < 0 || r[i].seat >= env.seats())
      throw py::index_error(name + ": no such game or seat");
    if (living && env.buffers.alive[r[i].game * env.seats() + r[i].seat] == 0)
      throw py::value_error(name + ": the seat is dead");
  }
  return r;
}

py::array_t<float> search(PyEnv& self, const Rows2d& rows, int max_depth, std::int64_t budget_us) {
  if (max_depth < 1) throw py::value_error("max_depth: expected at least 1");
  if (budget_us < 0) throw py::value_error("budget_us: negative");
  const auto* r = check_rows(self.env, rows, true);
  py::array_t<float> out({rows.shape(0), py::ssize_t{kMoves}});
  auto* data = out.mutable_data();
  const int n = static_cast<int>(rows.shape(0));
  self.exclusive([&] { self.env.search(r, n, max_depth, budget_us, data); });
  return out;
}

py::array_t<std::uint8_t> encode(PyEnv& self, int version, const Rows2d& rows) {
  if (version != 1 && version != 2) throw py::value_error("version: expected 1 or 2");
  const auto& env = self.env;
  const auto* r = check_rows(env, rows, true);
  const py::ssize_t n = rows.shape(0);
  std::vector<py::ssize_t> shape{n, kV1Planes, kV1Side, kV1Side};
  if (version == 2) shape = {n, kV2Planes, env.max_height(), env.max_width()};
  py::array_t<std::uint8_t> out(shape);
  auto* data = out.mutable_data();
  self.exclusive([&] { env.encode(version, r, static_cast<int>(n), data); });
  return out;
}

Board state(const PyEnv& self, int game) {
  if (game < 0 || game >= self.env.count())
    throw py::index_error("no game " + std::to_string(game));
  return self.env.board(game);
}

void bind_scenario(py::module_& m) {
  py::class_<Scenario>(m, "Scenario", "One kind of game and how often it is drawn.")
      .def(py::init([](int width, int height, int snakes, const Settings& settings, double weight) {
             return Scenario{width, height, snakes, settings, weight};
           }),
           py::arg("width") = 11, py::arg("height") = 11, py::arg("snakes") = 4,
           py::arg_v("settings", Settings{}, "Settings()"), py::arg("weight") = 1.0)
      .def_readonly("width", &Scenario::width)
      .def_readonly("height", &Scenario::height)
      .def_readonly("snakes", &Scenario::snakes)
      .def_readonly("settings", &Scenario::settings)
      .def_readonly("weight", &Scenario::weight);
}

template <class Class>
void bind_buffers(Class& c) {
  using B = VectorEnv::Buffers;
  c.def_property_readonly("obs", obs_view(&B::obs), "uint8 [count, seats, planes, rows, cols].")
      .def_property_readonly("final_obs", obs_view(&B::final_obs),
                             "Last observation of seats cut off by max_turns, for bootstrapping.")
      .def_property_readonly(
          "masks",
          [](const py::object& self) {
            auto& env = self.cast<PyEnv&>().env;
            return view<bool>(self, env.buffers.masks, {env.count(), env.seats(), kMoves});
          },
          "bool [count, seats, 4]: not certain death; all true where no move is safe.")
      .def_property_readonly("alive", seat_view<bool>(&B::alive),
                             "bool [count, seats]: takes part in the next step.")
      .def_property_readonly("terminated", seat_view<bool>(&B::terminated),
                             "bool [count, seats]: the last step decided the result.")
      .def_property_readonly("truncated", seat_view<bool>(&B::truncated),
                             "bool [count, seats]: the last step cut the game off.")
      .def_property_readonly("rewards", seat_view<float>(&B::rewards),
                             "float32 [count, seats]: +1 won, -1 lost or tied, else 0.")
      .def_property_readonly("results", seat_view<std::int8_t>(&B::results),
                             "int8 [count, seats]: 0 goes on, 1 won, -1 lost, 2 draw.")
      .def_property_readonly("ate", seat_view<bool>(&B::ate),
                             "bool [count, seats]: ate in the last step.")
      .def_property_readonly(
          "kills", seat_view<std::uint8_t>(&B::kills),
          "uint8 [count, seats]: snakes that died against this head in the last step.")
      .def_property_readonly(
          "causes", seat_view<std::uint8_t>(&B::causes),
          "uint8 [count, seats]: index into CAUSES of a death in the last step, 0 if none.")
      .def_property_readonly("lengths", seat_view<std::int16_t>(&B::lengths),
                             "int16 [count, seats] of living seats.")
      .def_property_readonly("healths", seat_view<std::int16_t>(&B::healths),
                             "int16 [count, seats] of living seats.")
      .def_property_readonly("turns", game_view<std::int32_t>(&B::turns),
                             "int32 [count]: turn of the position shown.")
      .def_property_readonly("scenarios", game_view<std::int32_t>(&B::scenarios),
                             "int32 [count]: index into the mix.")
      .def_property_readonly("episodes", game_view<std::int32_t>(&B::episodes),
                             "int32 [count]: games finished so far.");
}

}  // namespace

void bind_env(py::module_& m) {
  bind_scenario(m);
  py::class_<PyEnv> c(m, "VectorEnv",
                      "Many games stepped together; every array is a view of the same memory for "
                      "the life of the environment.");
  c.def(py::init([](const std::vector<Scenario>& mix, int count, std::uint64_t seed, int encoder,
                    int threads, int max_turns) {
          EnvOptions o;
          o.count = count;
          o.seed = seed;
          o.encoder = encoder;
          o.threads = threads;
          o.max_turns = max_turns;
          return std::make_unique<PyEnv>(mix, o);
        }),
        py::arg("scenarios"), py::kw_only(), py::arg("count"), py::arg("seed"),
        py::arg("encoder") = 2, py::arg("threads") = 1, py::arg("max_turns") = 0,
        "Each game draws its scenario by weight at every start. Seeds make all of it repeatable, "
        "whatever the threads.")
      .def("step", &step_env, py::arg("moves"),
           "Plays one turn of every game: int8 [count, seats]. Finished games start anew at once.")
      .def(
          "reset", [](PyEnv& self) { self.exclusive([&] { self.env.reset(); }); },
          "Starts every game of the current episode again.")
      .def("replay", &replay, py::arg("episodes"), py::arg("turns"), py::arg("moves"),
           "Puts every game where the first turns[game] of moves int8 [count, longest, seats] lead "
           "in its episode: with the same seed, the place that a saved run had reached.")
      .def("state", &state, py::arg("game"), "A copy of one game's board.")
      .def("search", &search, py::arg("rows"), py::kw_only(), py::arg("max_depth"),
           py::arg("budget_us") = 0,
           "Search scores float32 [n, 4] of rows int32 [n, 2] of (game, seat); -inf for moves that "
           "are not legal.")
      .def("encode", &encode, py::arg("version"), py::arg("rows"),
           "Observations of rows, in any version.")
      .def(
          "encode_float",
          [](PyEnv& self, int version, const Rows2d& rows) {
            return scaled(version, encode(self, version, rows));
          },
          py::arg("version"), py::arg("rows"),
          "The same as float32, each plane divided by its PLANE_SCALE.")
      .def_property_readonly("count", [](const PyEnv& e) { return e.env.count(); })
      .def_property_readonly("seats", [](const PyEnv& e) { return e.env.seats(); })
      .def_property_readonly("threads", [](const PyEnv& e) { return e.env.options().threads; })
      .def_property_readonly(
          "bytes_per_game", [](const PyEnv& e) { return e.env.bytes_per_game(); },
          "Memory beside the arrays.");
  bind_buffers(c);
  py::list causes;
  for (int i = 0; i <= static_cast<int>(Cause::kHead); ++i)
    causes.append(cause_name(static_cast<Cause>(i)));
  m.attr("CAUSES") = py::tuple(causes);
}

}  // namespace snakekit
