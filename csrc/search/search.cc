#include "search.h"

#include <tuple>

#include "tree.h"

namespace snakekit {

namespace {

// What a search on one kind of board keeps for the next.
template <class T>
struct Workspace {
  Heuristics<T> heuristics;
  std::vector<Undo<T>> undo = std::vector<Undo<T>>(kMaxDepth + 2);
};

}  // namespace

struct Searcher::Memory {
  explicit Memory(int table_mb) : table(table_mb) {}

  // Made when a board of that kind is first searched.
  template <class T>
  Workspace<T>& workspace() {
    auto& w = std::get<std::unique_ptr<Workspace<T>>>(workspaces);
    if (!w) w = std::make_unique<Workspace<T>>();
    return *w;
  }

  Table table;
  std::tuple<std::unique_ptr<Workspace<Small>>, std::unique_ptr<Workspace<Large>>> workspaces;
};

Searcher::Searcher(int table_mb, const EvalWeights& weights)
    : memory_(std::make_unique<Memory>(table_mb)), weights_(weights) {}
Searcher::~Searcher() = default;

template <class T>
SearchResult Searcher::search(const State<T>& state, int seat, const Limits& limits) {
  cancelled_.store(false, std::memory_order_relaxed);
  memory_->table.next_generation();
  auto& work = memory_->workspace<T>();
  work.heuristics.renew();
  return Tree<T>(state, seat, limits, weights_, memory_->table, work.heuristics, work.undo,
                 cancelled_)
      .run();
}

SearchResult Searcher::search(const Board& board, int seat, const Limits& limits) {
  return board.visit([&](const auto& s) { return search(s, seat, limits); });
}

template SearchResult Searcher::search(const State<Small>&, int, const Limits&);
template SearchResult Searcher::search(const State<Large>&, int, const Limits&);

}  // namespace snakekit
