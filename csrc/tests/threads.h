// Searches, cancellation and batches on several threads: work for the thread sanitizer.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "../board.h"
#include "../env.h"
#include "../maps.h"
#include "../search/search.h"
#include "check.h"

namespace snakekit {

inline Board two_snakes(std::uint64_t seed) {
  return new_game(11, 11, {"a", "b"}, seed, Settings{});
}

inline void search_side_by_side() {
  const Board board = two_snakes(1);
  Limits limits;
  limits.max_depth = 4;
  const auto alone = Searcher(1).search(board, 0, limits);
  std::array<SearchResult, 2> found;
  std::array<std::thread, 2> threads;
  for (std::size_t t = 0; t < threads.size(); ++t) {
    threads[t] = std::thread([&, t] { found[t] = Searcher(1).search(board, 0, limits); });
  }
  for (auto& t : threads) t.join();
  for (const auto& r : found) {
    CHECK(r.nodes == alone.nodes);
    CHECK(r.score == alone.score);
  }
}

// Threads of one search share the table; what they find at a fixed depth does not depend on them.
inline void search_together() {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Board board = two_snakes(seed);
    Limits limits;
    limits.max_depth = 6;
    limits.exact_scores = true;
    const auto alone = Searcher(1).search(board, 0, limits);
    limits.threads = 3;
    const auto found = Searcher(1).search(board, 0, limits);
    CHECK(found.score == alone.score);
    CHECK(found.label == alone.label);
    CHECK(found.depth == alone.depth);
  }
}

inline void cancel_from_outside() {
  const Board board = two_snakes(2);
  Searcher searcher(1);
  std::atomic<bool> done{false};
  SearchResult found;
  std::thread thread([&] {
    found = searcher.search(board, 0, Limits{});
    done.store(true);
  });
  // What comes before the search begins has no effect, so repeat it.
  while (!done.load()) {
    searcher.cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  thread.join();
  CHECK(found.stopped == Stop::kCancelled);
  CHECK(found.depth >= 1);
  CHECK(searcher.acquire());
  CHECK(!searcher.acquire());
  searcher.release();
}

inline std::vector<Row> living_rows(const std::vector<std::uint8_t>& alive, int seats) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < alive.size(); ++i) {
    const auto at = static_cast<int>(i);
    if (alive[i] != 0) rows.push_back({at / seats, at % seats});
  }
  return rows;
}

// Fixed-depth scores do not depend on how rows are shared out, and games with them neither.
inline void batches(int width, int height, int snakes) {
  EnvOptions options;
  options.count = 6;
  options.encoder = 0;
  options.seed = 5;
  const std::vector<Scenario> mix{{width, height, snakes, Settings{}, 1}};
  VectorEnv one(mix, options);
  options.threads = 2;
  VectorEnv two(mix, options);
  std::vector<std::int8_t> moves(static_cast<std::size_t>(options.count) * snakes);
  long decided = 0;
  for (int turn = 0; turn < 20; ++turn) {
    const auto rows = living_rows(two.buffers.alive, snakes);
    const int n = static_cast<int>(rows.size());
    std::vector<float> a(rows.size() * kMoves);
    std::vector<float> b(rows.size() * kMoves);
    one.search(rows.data(), n, 1, 0, a.data());
    two.search(rows.data(), n, 1, 0, b.data());
    CHECK(a == b);
    std::vector<std::uint8_t> planes(rows.size() * kV2Planes * width * height);
    two.encode(2, rows.data(), n, planes.data());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto best = std::max_element(&b[i * kMoves], &b[i * kMoves] + kMoves);
      moves[static_cast<std::size_t>(rows[i].game) * snakes + rows[i].seat] =
          static_cast<std::int8_t>(turn % 7 == 6 ? turn % kMoves : best - &b[i * kMoves]);
    }
    one.step(moves.data());
    two.step(moves.data());
    for (int g = 0; g < options.count; ++g) CHECK(one.board(g) == two.board(g));
    for (const auto r : two.buffers.results) decided += r != 0;
  }
  CHECK(decided > 0);
}

inline void environments(int encoder) {
  Settings wrapped;
  wrapped.ruleset = "wrapped";
  const std::vector<Scenario> mix{
      {11, 11, 2, Settings{}, 1}, {7, 7, 3, wrapped, 1}, {19, 19, 5, Settings{}, 1}};
  EnvOptions options;
  options.count = 9;
  options.encoder = encoder;
  options.max_turns = 25;
  options.seed = 3;
  VectorEnv one(mix, options);
  options.threads = 3;
  VectorEnv many(mix, options);
  std::vector<std::int8_t> moves(static_cast<std::size_t>(many.count()) * many.seats());
  for (int turn = 0; turn < 60; ++turn) {
    CHECK(one.buffers.obs == many.buffers.obs);
    CHECK(one.buffers.masks == many.buffers.masks);
    CHECK(one.buffers.alive == many.buffers.alive);
    CHECK(one.buffers.results == many.buffers.results);
    CHECK(one.buffers.final_obs == many.buffers.final_obs);
    const auto rows = living_rows(many.buffers.alive, many.seats());
    std::vector<float> scores(rows.size() * kMoves);
    if (turn % 30 == 0)
      many.search(rows.data(), static_cast<int>(rows.size()), 1, 0, scores.data());
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const auto* mask = &many.buffers.masks[i * kMoves];
      int m = static_cast<int>((i + static_cast<std::size_t>(turn) / 3) % kMoves);
      while (many.buffers.alive[i] != 0 && mask[m] == 0) m = (m + 1) % kMoves;
      moves[i] = static_cast<std::int8_t>(m);
    }
    one.step(moves.data());
    many.step(moves.data());
  }
  CHECK(*std::max_element(many.buffers.episodes.begin(), many.buffers.episodes.end()) > 0);
}

inline void run_threads() {
  search_side_by_side();
  search_together();
  cancel_from_outside();
  batches(11, 11, 2);
  batches(19, 19, 3);
  for (const int encoder : {0, 1, 2}) environments(encoder);
  std::printf("threads done\n");
}

}  // namespace snakekit
