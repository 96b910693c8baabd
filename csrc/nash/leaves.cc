#include "leaves.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

namespace snakekit {

void LeafSet::reset(const Board& like) {
  width_ = like.width();
  height_ = like.height();
  is_large_ = like.visit([]<class T>(const State<T>&) { return std::is_same_v<T, Large>; });
  small_.clear();
  large_.clear();
  lines_.clear();
}

void LeafSet::reset(const LeafSet& like) {
  width_ = like.width_;
  height_ = like.height_;
  is_large_ = like.is_large_;
  small_.clear();
  large_.clear();
  lines_.clear();
}

template <class T>
void LeafSet::add(const Roster& roster, const State<T>& after) {
  Line line;
  line.players = static_cast<std::int8_t>(roster.count);
  for (int slot = 0; slot < roster.count; ++slot) {
    if (after.alive(roster.seat[slot]))
      line.root_slot[line.living++] = static_cast<std::uint8_t>(slot);
  }
  if (!after.game_over()) {
    if constexpr (std::is_same_v<T, Large>) {
      line.leaf = static_cast<std::int32_t>(large_.size());
      large_.push_back(after);
    } else {
      line.leaf = static_cast<std::int32_t>(small_.size());
      small_.push_back(after);
    }
  } else if (line.living == 1) {
    line.winner = static_cast<std::int8_t>(line.root_slot[0]);
  } else {
    std::int32_t last = 0;
    for (int slot = 0; slot < roster.count; ++slot)
      last = std::max(last, after.h.snake[roster.seat[slot]].out_turn);
    for (int slot = 0; slot < roster.count; ++slot) {
      if (after.h.snake[roster.seat[slot]].out_turn == last)
        line.sharers |= static_cast<std::uint8_t>(1U << slot);
    }
  }
  lines_.push_back(line);
}

void LeafSet::read_open(const Line& line, const float* given, bool logits, float draw_worth,
                        float* outcome, float* utility) const {
  std::array<float, kMaxSlots + 1> p{};
  float most = logits ? given[slots_] : 0;
  for (int k = 0; logits && k < line.living; ++k) most = std::max(most, given[k]);
  const auto weight = [&](float x) { return logits ? std::exp(x - most) : std::max(x, 0.0F); };
  float total = p[slots_] = weight(given[slots_]);
  for (int k = 0; k < line.living; ++k) total += p[k] = weight(given[k]);
  const float scale = total > 0 ? 1 / total : 0;
  const float draw = total > 0 ? p[slots_] * scale : 1;
  outcome[slots_] = draw;
  for (int k = 0; k < line.living; ++k) {
    const int slot = line.root_slot[k];
    outcome[slot] = p[k] * scale;
    utility[slot] = outcome[slot] + draw_worth * draw / static_cast<float>(line.living);
  }
}

void LeafSet::read(const float* outcomes, bool logits, float draw_worth) {
  outcome_.assign(lines_.size() * (slots_ + 1), 0);
  utility_.assign(lines_.size() * slots_, 0);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    float* outcome = &outcome_[i * (slots_ + 1)];
    float* utility = &utility_[i * slots_];
    if (line.leaf >= 0) {
      read_open(line, outcomes + static_cast<std::ptrdiff_t>(line.leaf) * (slots_ + 1), logits,
                draw_worth, outcome, utility);
    } else if (line.winner >= 0) {
      outcome[line.winner] = utility[line.winner] = 1;
    } else {
      outcome[slots_] = 1;
      const auto part = draw_worth / static_cast<float>(std::popcount(line.sharers));
      for (int slot = 0; slot < line.players; ++slot) {
        if ((line.sharers >> slot) & 1) utility[slot] = part;
      }
    }
  }
}

void LeafSet::encode(std::uint8_t* out) const {
  const auto size = static_cast<std::size_t>(v3_planes(slots_)) * height_ * width_;
  const auto all = [&](const auto& states) {
    for (const auto& s : states) {
      encode_v3(s, slots_, {out, height_, width_});
      out += size;
    }
  };
  if (is_large_) {
    all(large_);
  } else {
    all(small_);
  }
}

template void LeafSet::add(const Roster&, const State<Small>&);
template void LeafSet::add(const Roster&, const State<Large>&);

}  // namespace snakekit
