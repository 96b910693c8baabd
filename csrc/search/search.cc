#include "search.h"

#include "tree.h"

namespace snakekit {

struct Searcher::Memory {
  explicit Memory(int table_mb) : table(table_mb) {}

  Table table;
  Heuristics heuristics;
  std::vector<Undo<Small>> undo_small;
  std::vector<Undo<Large>> undo_large;  // made when a large board is first searched

  template <class T>
  std::vector<Undo<T>>& undo() {
    auto& v = [this]() -> std::vector<Undo<T>>& {
      if constexpr (std::is_same_v<T, Small>) {
        return undo_small;
      } else {
        return undo_large;
      }
    }();
    v.resize(kMaxDepth + 2);
    return v;
  }
};

Searcher::Searcher(int table_mb, const EvalWeights& weights)
    : memory_(std::make_unique<Memory>(table_mb)), weights_(weights) {}
Searcher::~Searcher() = default;

template <class T>
SearchResult Searcher::search(const State<T>& state, int seat, const Limits& limits) {
  cancelled_.store(false, std::memory_order_relaxed);
  memory_->table.next_generation();
  memory_->heuristics = Heuristics{};
  return Tree<T>(state, seat, limits, weights_, memory_->table, memory_->heuristics,
                 memory_->undo<T>(), cancelled_)
      .run();
}

SearchResult Searcher::search(const Board& board, int seat, const Limits& limits) {
  return board.visit([&](const auto& s) { return search(s, seat, limits); });
}

template SearchResult Searcher::search(const State<Small>&, int, const Limits&);
template SearchResult Searcher::search(const State<Large>&, int, const Limits&);

}  // namespace snakekit
