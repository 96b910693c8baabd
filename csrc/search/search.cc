#include "search.h"

#include <algorithm>
#include <tuple>

#include "../pool.h"
#include "tree.h"

namespace snakekit {

struct Searcher::Memory {
  explicit Memory(int table_mb) : table(table_mb) {}

  // Made when a board of that kind is first searched by so many threads.
  template <class T>
  std::vector<std::unique_ptr<Workspace<T>>>& workspaces(int threads) {
    auto& w = std::get<std::vector<std::unique_ptr<Workspace<T>>>>(all_workspaces);
    while (static_cast<int>(w.size()) < threads) w.push_back(std::make_unique<Workspace<T>>());
    return w;
  }
  Pool& threads(int n) {
    if (!pool || pool->threads() != n) pool = std::make_unique<Pool>(n);
    return *pool;
  }

  Table table;
  std::tuple<std::vector<std::unique_ptr<Workspace<Small>>>,
             std::vector<std::unique_ptr<Workspace<Large>>>>
      all_workspaces;
  std::unique_ptr<Pool> pool;
};

Searcher::Searcher(int table_mb, Evaluation evaluation)
    : memory_(std::make_unique<Memory>(table_mb)), evaluation_(std::move(evaluation)) {}
Searcher::~Searcher() = default;

void Searcher::prefer(const std::array<float, kMoves>& priors) {
  std::uint64_t packed = 0;
  for (int m = 0; m < kMoves; ++m)
    packed |= static_cast<std::uint64_t>(std::clamp(priors[m], 0.0F, 1.0F) * 65535) << (16 * m);
  signals_.priors.store(packed, std::memory_order_relaxed);
}

template <class T>
SearchResult Searcher::search(const State<T>& state, int seat, const Limits& limits) {
  signals_.cancelled.store(false, std::memory_order_relaxed);
  signals_.priors.store(0, std::memory_order_relaxed);
  memory_->table.next_generation();
  auto& memory = *memory_;
  const int threads = std::max(1, limits.threads);
  auto& work = memory.workspaces<T>(threads);
  if (threads == 1)
    return Tree<T>(state, seat, limits, evaluation_, memory.table, *work[0], signals_).run();

  Limits shared = limits;
  // Of one thread; the others step through about as many.
  shared.max_nodes = (limits.max_nodes + threads - 1) / threads;
  Team team;
  SearchResult result;
  std::atomic<std::int64_t> helped{0};
  memory.threads(threads).run(threads, [&](int index, int, int) {
    Tree<T> tree(state, seat, shared, evaluation_, memory.table, *work[index], signals_, &team);
    if (index > 0) {
      helped += tree.help();
      return;
    }
    result = tree.run();
    team.stop();
  });
  result.nodes += helped;
  return result;
}

SearchResult Searcher::search(const Board& board, int seat, const Limits& limits) {
  return board.visit([&](const auto& s) { return search(s, seat, limits); });
}

template SearchResult Searcher::search(const State<Small>&, int, const Limits&);
template SearchResult Searcher::search(const State<Large>&, int, const Limits&);

}  // namespace snakekit
