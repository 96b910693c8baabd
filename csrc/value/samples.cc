#include "samples.h"

#include "../pool.h"
#include "../selfplay_game.h"

namespace snakekit {

namespace {

constexpr int kPerMille = 1000;
constexpr int kTableMb = 4;

// A position that some random turns from `s` lead to; false where the game ends on the way.
template <class T>
bool wander(State<T>& s, int turns, std::uint64_t seed) {
  for (int t = 0; t < turns; ++t) {
    Moves moves;
    moves.fill(kInvalidMove);
    for (int i = 0; i < s.seats; ++i) {
      if (s.alive(i)) moves[i] = static_cast<std::int8_t>(random_move(s, i, mix64(seed + t)));
    }
    advance(s, moves, mix64(seed));
    if (s.game_over()) return false;
  }
  return true;
}

template <class T>
int any_living(const State<T>& s, Rng& rng) {
  int nth = rng.below(s.living());
  int seat = 0;
  while (!s.alive(seat) || nth-- > 0) ++seat;
  return seat;
}

class Sampler {
 public:
  Sampler(const Evaluation& evaluation, const SelfPlay& play, const Sampling& sampling)
      : evaluation_(evaluation), play_(play), sampling_(sampling), labeller_(kTableMb, evaluation) {
    limits_.max_nodes = sampling.label_nodes;
    limits_.early_stop = false;
    limits_.optimum = 1;
    limits_.mixing = Mixing::kOff;
  }

  Labelled game(std::int64_t number) {
    Labelled found;
    std::vector<int> seats;
    const auto seed = mix64(play_.seed ^ mix64(static_cast<std::uint64_t>(number)));
    Rng rng(seed, 2);
    auto board = start_of(play_, seed);
    const std::vector<const Evaluation*> players(play_.snakes, &evaluation_);
    board.visit([&](auto& s) {
      play_game(s, play_, seed, players, [&](const auto& at, bool) {
        if (rng.below(kPerMille) >= sampling_.share) return;
        auto away = at;
        const int turns = rng.below(sampling_.wander + 1);
        if (!wander(away, turns, seed + static_cast<std::uint64_t>(at.h.turn))) return;
        seats.push_back(any_living(away, rng));
        label(away, seats.back(), found);
        found.played.push_back(turns == 0);
        found.game.push_back(number);
      });
      const bool won = s.living() == 1;
      for (const int i : seats) found.result.push_back(won ? (s.alive(i) ? 1.0F : 0.0F) : 0.5F);
    });
    return found;
  }

 private:
  template <class T>
  void label(const State<T>& s, int us, Labelled& found) {
    found.rows.push_back(list_features(s, us, Flood<T>(s)));
    const auto r = labeller_.search(s, us, limits_);
    found.score.push_back(r.score[r.best]);
  }

  const Evaluation& evaluation_;
  const SelfPlay& play_;
  const Sampling& sampling_;
  Searcher labeller_;
  Limits limits_;
};

template <class V>
void append(std::vector<V>& to, const std::vector<V>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Labelled label_positions(const Evaluation& evaluation, const SelfPlay& play,
                         const Sampling& sampling, std::int64_t first, int games, int threads) {
  std::vector<Labelled> parts(games);
  Pool(threads).run(games, [&](int from, int to, int) {
    for (int g = from; g < to; ++g)
      // Of its own, so that no game depends on the table that another one left.
      parts[g] = Sampler(evaluation, play, sampling).game(first + g);
  });
  Labelled all;
  for (const auto& part : parts) {
    append(all.rows, part.rows);
    append(all.score, part.score);
    append(all.result, part.result);
    append(all.played, part.played);
    append(all.game, part.game);
  }
  return all;
}

}  // namespace snakekit
