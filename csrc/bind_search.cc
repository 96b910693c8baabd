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

SearchResult run_search(Searcher& searcher, const Board& board, int seat, std::int64_t budget_us,
                        std::int64_t max_nodes, int max_depth,
                        const std::optional<std::vector<float>>& priors, const std::string& proof,
                        bool far_pruning, bool early_stop, bool selective, bool exact_scores) {
  check_living(board, seat);
  if (budget_us < 0) throw py::value_error("budget_us: negative");
  if (max_nodes < 0) throw py::value_error("max_nodes: negative");
  if (max_depth < 1) throw py::value_error("max_depth: expected at least 1");
  Limits limits;
  limits.budget_us = budget_us;
  limits.max_nodes = max_nodes;
  limits.max_depth = max_depth;
  limits.proof = read_proof(proof);
  limits.far_pruning = far_pruning;
  limits.early_stop = early_stop;
  limits.selective = selective;
  limits.exact_scores = exact_scores;
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

}  // namespace

EvalWeights read_weights(const std::map<std::string, int>& given) {
  EvalWeights w;
  const auto names = weight_names();
  for (const auto& [name, value] : given) {
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

void bind_search(py::module_& m) {
  py::dict defaults;
  EvalWeights w;
  for (const auto& name : weight_names()) defaults[py::str(name.text())] = name.in(w);
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
      .def(
          "search", &run_search, py::arg("state"), py::arg("seat"), py::kw_only(),
          py::arg("budget_us") = 0, py::arg("max_nodes") = 0, py::arg("max_depth") = kMaxDepth - 1,
          py::arg("priors") = py::none(), py::arg("proof") = "sound", py::arg("far_pruning") = true,
          py::arg("early_stop") = true, py::arg("selective") = false,
          py::arg("exact_scores") = false,
          "Searches until microseconds, positions (0: no limit) or depth in turns are used up, or\n"
          "where `early_stop` sees that the rest of them would not change the move. Searches of\n"
          "one thread without `budget_us` repeat exactly on a fresh Searcher.\n\n"
          "`priors` order the root, `selective` searches late moves less deep at first,\n"
          "`exact_scores` searches every root move in full. RuntimeError when busy.")
      .def("cancel", &Searcher::cancel, "Stops the running search, from any thread.");
}

}  // namespace snakekit
