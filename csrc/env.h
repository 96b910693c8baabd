// Vector environments: many games stepped together into buffers that Python sees without copying.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "board.h"
#include "encode.h"
#include "pool.h"
#include "search/search.h"

namespace snakekit {

enum class Result : std::int8_t { kNone = 0, kWin = 1, kLoss = -1, kDraw = 2 };

struct Row {
  std::int32_t game;
  std::int32_t seat;
};

// One kind of game; each episode draws one with chance weight / sum of weights.
struct Scenario {
  int width = 11;
  int height = 11;
  int snakes = 4;
  Settings settings;
  double weight = 1;
};

struct EnvOptions {
  int count = 1;
  std::uint64_t seed = 0;
  int encoder = 2;  // observation version, 0 for none
  int threads = 1;
  int max_turns = 0;  // an episode of so many turns is cut off; 0: never
};

class VectorEnv {
 public:
  // Throws StateError naming the scenario for games that cannot be set up.
  VectorEnv(const std::vector<Scenario>& mix, const EnvOptions& options);

  // Moves [count, seats]; seats that are not alive are ignored. A finished game starts anew at
  // once: the buffers then hold the first position of the next one.
  void step(const std::int8_t* moves);
  void reset();

  // Puts every game at the place where its own first `turns` moves of an episode lead, so that a
  // run can go on where it was: moves [count, stride, seats], episodes and turns [count].
  void replay(const std::int32_t* episodes, const std::int32_t* turns, const std::int8_t* moves,
              int stride);

  // Scores [n, 4] of a fixed-depth or timed search from each row; -inf for moves that are not
  // legal.
  void search(const Row* rows, int n, int max_depth, std::int64_t budget_us, float* out);
  void encode(int version, const Row* rows, int n, std::uint8_t* out) const;

  [[nodiscard]] int count() const { return options_.count; }
  [[nodiscard]] int seats() const { return seats_; }
  [[nodiscard]] int rows() const { return rows_; }
  [[nodiscard]] int cols() const { return cols_; }
  [[nodiscard]] int max_height() const { return height_; }
  [[nodiscard]] int max_width() const { return width_; }
  [[nodiscard]] int planes() const { return planes_; }
  [[nodiscard]] const EnvOptions& options() const { return options_; }
  [[nodiscard]] Board board(int game) const;
  [[nodiscard]] std::size_t bytes_per_game() const;  // beside the buffers

  // Indexed [game * seats + seat] unless stated otherwise.
  struct Buffers {
    std::vector<std::uint8_t> obs;         // [.., planes, rows, cols]
    std::vector<std::uint8_t> final_obs;   // the same, of seats cut off by max_turns
    std::vector<std::uint8_t> masks;       // [.., 4], 1: not certain death this turn
    std::vector<std::uint8_t> alive;       // takes part in the next step
    std::vector<std::uint8_t> terminated;  // this step decided the seat's result
    std::vector<std::uint8_t> truncated;   // this step cut the game off while the seat was alive
    std::vector<float> rewards;            // +1 win, -1 loss or tie, else 0
    std::vector<std::int8_t> results;      // 0 goes on, 1 won, -1 lost, 2 draw
    std::vector<std::uint8_t> ate;         // 1 where the seat ate this step
    std::vector<std::uint8_t> kills;       // snakes that died this step against the seat's head
    std::vector<std::uint8_t> causes;      // how the seat died this step, 0 if not
    std::vector<std::int16_t> lengths;     // after this step, of the position that obs shows
    std::vector<std::int16_t> healths;
    std::vector<std::int32_t> turns;      // [game]
    std::vector<std::int32_t> scenarios;  // [game], index into the mix
    std::vector<std::int32_t> episodes;   // [game], finished so far
  };
  Buffers buffers;

 private:
  template <class F>
  void at(int game, F&& f);
  template <class F>
  void at(int game, F&& f) const;
  template <class T>
  void play(State<T>& s, int game, const std::int8_t* moves);
  template <class T>
  void observe(const State<T>& s, int game);
  template <class T>
  void observe(const State<T>& s, int game, const Arrivals<T>* arrivals);
  template <class T>
  void observe_final(const State<T>& s, int game);
  void start(int game);
  [[nodiscard]] std::uint64_t episode_seed(int game) const;
  [[nodiscard]] Board fresh(int game, int scenario) const;
  [[nodiscard]] std::size_t index(int game, int seat) const {
    return static_cast<std::size_t>(game) * seats_ + seat;
  }
  [[nodiscard]] std::size_t observation_size() const {
    return static_cast<std::size_t>(planes_) * rows_ * cols_;
  }

  EnvOptions options_;
  std::vector<Scenario> mix_;
  double total_weight_ = 0;
  int seats_ = 0;
  int planes_ = 0;
  int height_ = 0;  // of the largest board
  int width_ = 0;
  int rows_ = 0;  // of an observation
  int cols_ = 0;
  std::vector<std::uint8_t> is_large_;
  std::vector<State<Small>> small_;
  std::vector<State<Large>> large_;
  std::vector<V1Trace> traces_;
  std::vector<std::unique_ptr<Searcher>> searchers_;
  Pool pool_;
};

}  // namespace snakekit
