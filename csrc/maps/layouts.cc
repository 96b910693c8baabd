#include "layouts.h"

#include <string_view>

namespace snakekit {

namespace {

struct Picture {
  MapId map;
  std::uint8_t width;
  std::uint8_t height;
  std::uint8_t max_snakes;
  StartStyle style;
  std::string_view cells;
};

constexpr Picture kPictures[] = {
#include "layouts.inc"
};

Layout read(const Picture& p) {
  Layout out{p.map, p.width, p.height, p.max_snakes, p.style, {}, {}, {}};
  for (int i = 0; i < static_cast<int>(p.cells.size()); ++i) {
    const char c = p.cells[i];
    const Point at{i % p.width, p.height - 1 - i / p.width};
    if (c >= '1' && c <= '9') out.hazards.insert(out.hazards.end(), c - '0', at);
    if (c == 'S' || c == 'B') out.starts.push_back(at);
    if (c == 'F' || c == 'B') out.food.push_back(at);
  }
  return out;
}

}  // namespace

const Layout* find_layout(MapId map) {
  static const std::vector<Layout> all = [] {
    std::vector<Layout> v;
    for (const auto& p : kPictures) v.push_back(read(p));
    return v;
  }();
  for (const auto& layout : all) {
    if (layout.map == map) return &layout;
  }
  return nullptr;
}

}  // namespace snakekit
