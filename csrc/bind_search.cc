#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "bind.h"
#include "search/search.h"

namespace py = pybind11;

namespace snakekit {

namespace {

const char* stop_name(Stop s) {
  switch (s) {
    case Stop::kDepth:
      return "depth";
    case Stop::kTime:
      return "time";
    case Stop::kNodes:
      return "nodes";
    case Stop::kEnough:
      return "enough";
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

Proof read_proof(const std::string& name) {
  if (name == "sound") return Proof::kSound;
  if (name == "article") return Proof::kArticle;
  throw py::value_error("proof: '" + name + "' is unknown, expected sound or article");
}

Opponents read_opponents(const std::string& name) {
  if (name == "paranoid") return Opponents::kParanoid;
  if (name == "best_reply") return Opponents::kBestReply;
  throw py::value_error("opponents: '" + name + "' is unknown, expected paranoid or best_reply");
}

Mixing read_mixing(const std::string& name) {
  if (name == "off") return Mixing::kOff;
  if (name == "contested") return Mixing::kContested;
  if (name == "always") return Mixing::kAlways;
  throw py::value_error("mixing: '" + name + "' is unknown, expected off, contested or always");
}

int read_range(const char* name, int value, int low, int high) {
  if (value < low || value > high)
    throw py::value_error(std::string(name) + ": expected " + std::to_string(low) + ".." +
                          std::to_string(high));
  return value;
}

std::array<float, kMoves> read_priors(const std::vector<float>& given) {
  if (given.size() != kMoves) throw py::value_error("priors: expected 4 numbers");
  std::array<float, kMoves> priors{};
  for (int m = 0; m < kMoves; ++m) {
    // Also of a number that is none.
    if (!(given[m] >= 0 && given[m] <= 1)) throw py::value_error("priors: expected 0..1");
    priors[m] = given[m];
  }
  return priors;
}

// What the keywords of Searcher.search say.
struct Asked {
  std::int64_t budget_us;
  std::int64_t max_nodes;
  int max_depth;
  std::optional<std::vector<float>> priors;
  std::string proof;
  std::string opponents;
  std::string mixing;

  // Into `limits`, which holds the options that need no reading.
  void read(Limits& limits) const {
    if (budget_us < 0) throw py::value_error("budget_us: negative");
    if (max_nodes < 0) throw py::value_error("max_nodes: negative");
    if (max_depth < 1) throw py::value_error("max_depth: expected at least 1");
    limits.budget_us = budget_us;
    limits.max_nodes = max_nodes;
    limits.max_depth = max_depth;
    limits.proof = read_proof(proof);
    limits.opponents = read_opponents(opponents);
    limits.mixing = read_mixing(mixing);
    if (priors) limits.priors = read_priors(*priors);
  }
};

SearchResult run_search(Searcher& searcher, const Board& board, int seat, const Limits& limits) {
  check_living(board, seat);
  if (!searcher.acquire()) throw std::runtime_error("this Searcher is busy with another search");
  const py::gil_scoped_release nogil;
  auto result = searcher.search(board, seat, limits);
  searcher.release();
  return result;
}

}  // namespace

EvalWeights read_weights(const GivenWeights& given) {
  EvalWeights w;
  if (!given) return w;
  const auto names = weight_names();
  for (const auto& [name, value] : *given) {
    const auto* found = std::find_if(names.begin(), names.end(),
                                     [&](const auto& known) { return name == known.text(); });
    if (found == names.end()) throw py::value_error("weights: '" + name + "' is unknown");
    if (std::abs(value) > kMaxWeight)
      throw py::value_error("weights: " + name + " is outside -" + std::to_string(kMaxWeight) +
                            ".." + std::to_string(kMaxWeight));
    found->in(w) = value;
  }
  return w;
}

Evaluation read_evaluation(const GivenWeights& weights, const GivenValue& learned) {
  if (!weights && !learned) return Evaluation::shipped();
  return {read_weights(weights), learned.value_or(nullptr)};
}

namespace {

void bind_result(py::module_& m) {
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
          "exact",
          [](const SearchResult& r) { return std::vector<bool>(r.exact.begin(), r.exact.end()); },
          "Per move whether the score is its value; otherwise it is an upper bound.")
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
      .def_property_readonly("pv",
                             [](const SearchResult& r) {
                               return std::vector<int>(r.line.begin(),
                                                       r.line.begin() + r.line_length);
                             })
      .def_property_readonly(
          "mixture",
          [](const SearchResult& r) -> std::optional<std::vector<double>> {
            if (r.mixed_depth == 0) return std::nullopt;
            return std::vector<double>(r.mixture.begin(), r.mixture.end());
          },
          "How often each move is best played where turns were solved exactly, else None.")
      .def_property_readonly(
          "value",
          [](const SearchResult& r) {
            return r.mixed_depth == 0 ? std::nullopt : std::optional<double>(r.value);
          },
          "What the mixture is worth, -1 (lost) to 1 (won), or None.")
      .def_readonly("mixed_depth", &SearchResult::mixed_depth,
                    "Turns that the mixture looks ahead; 0 where there is none.")
      .def_property_readonly(
          "stopped", [](const SearchResult& r) { return std::string(stop_name(r.stopped)); });
}

}  // namespace

void bind_search(py::module_& m) {
  py::dict defaults;
  EvalWeights w;
  for (const auto& name : weight_names()) defaults[py::str(name.text())] = name.in(w);
  m.attr("WEIGHTS") = defaults;
  bind_result(m);
  py::class_<Searcher>(m, "Searcher", "Owns a transposition table; one search at a time.")
      .def(py::init([](int mb, const GivenWeights& weights, const GivenValue& learned) {
             if (mb < 1 || mb > 65536) throw py::value_error("table_mb: expected 1..65536");
             return std::make_unique<Searcher>(mb, read_evaluation(weights, learned));
           }),
           py::arg("table_mb") = 16, py::kw_only(), py::arg("weights") = py::none(),
           py::arg("learned") = py::none(),
           "`weights` replaces some of the evaluation's, by the names in WEIGHTS, and lets them\n"
           "judge alone unless `learned` is given too. Without either the shipped learned value\n"
           "judges where it knows the rules.")
      .def(
          "search",
          [](Searcher& self, const Board& board, int seat, std::int64_t budget_us,
             std::int64_t max_nodes, int max_depth, const std::optional<std::vector<float>>& priors,
             const std::string& proof, const std::string& opponents, const std::string& mixing,
             int mixed_turns, int threads, bool max_n, bool far_pruning, bool early_stop,
             bool selective, bool exact_scores, double optimum, std::optional<std::uint64_t> sample,
             int draw_score) {
            Limits limits;
            if (!(optimum > 0 && optimum <= 1))
              throw py::value_error("optimum: expected above 0 and at most 1");
            limits.optimum = optimum;
            limits.sample = sample;
            limits.draw_score = read_range("draw_score", draw_score, -kMostDraw, kMostDraw);
            limits.mixed_turns = read_range("mixed_turns", mixed_turns, 1, 8);
            limits.threads = read_range("threads", threads, 1, 256);
            limits.max_n = max_n;
            limits.far_pruning = far_pruning;
            limits.early_stop = early_stop;
            limits.selective = selective;
            limits.exact_scores = exact_scores;
            Asked{budget_us, max_nodes, max_depth, priors, proof, opponents, mixing}.read(limits);
            return run_search(self, board, seat, limits);
          },
          py::arg("state"), py::arg("seat"), py::kw_only(), py::arg("budget_us") = 0,
          py::arg("max_nodes") = 0, py::arg("max_depth") = kMaxDepth - 1,
          py::arg("priors") = py::none(), py::arg("proof") = "sound",
          py::arg("opponents") = "paranoid", py::arg("mixing") = "contested",
          py::arg("mixed_turns") = 1, py::arg("threads") = 1, py::arg("max_n") = true,
          py::arg("far_pruning") = true, py::arg("early_stop") = true, py::arg("selective") = false,
          py::arg("exact_scores") = false, py::arg("optimum") = 0.5, py::arg("sample") = py::none(),
          py::arg("draw_score") = kDrawScore,
          "Searches until microseconds, positions (0: no limit) or depth in turns are used up, or\n"
          "where `early_stop` sees that the rest of them would not change the move. With one "
          "thread\n"
          "and no `budget_us` it repeats exactly on a fresh Searcher.\n\n"
          "proof: `sound`, or `article` for the plain rule.\n"
          "opponents: `paranoid`, all against us, or `best_reply`, one of them at a time.\n"
          "mixing: whether the first `mixed_turns` of a duel are solved with mixed strategies:\n"
          "`off`, `contested` (where the heads can meet within them) or `always`. `sample` are\n"
          "random bits that draw the move from their mixture; without, the likeliest is played.\n"
          "max_n: decides among several opponents where the paranoid view sees only losses.\n"
          "draw_score: worth of a draw; evaluations lie within 1900, and proofs of loss below "
          "all.\n"
          "priors: order what is held equal. "
          "selective: late moves are searched less deep at first.\n"
          "exact_scores: every root move is searched in full.\n"
          "optimum: share of the limits that no iteration is to pass once the move has stood for\n"
          "two more, and up to four times as much until then; 1 uses all that can change the "
          "move.\n"
          "RuntimeError when busy.")
      .def("cancel", &Searcher::cancel, "Stops the running search, from any thread.")
      .def(
          "prefer",
          [](Searcher& self, const std::vector<float>& priors) {
            self.prefer(read_priors(priors));
          },
          py::arg("priors"),
          "Gives the running search `priors` that have come late, from any thread; its next\n"
          "iteration takes them up.");
}

}  // namespace snakekit
