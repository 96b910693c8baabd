// The names of the official maps.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace snakekit {

enum class MapId : std::uint8_t {
  kStandard,
  kEmpty,
  kRoyale,
  kArcadeMaze,
  kHealingPools,
  kCastleWall,
  kCastleWallLg,
  kCastleWallXl,
  kColumns,
  kExpandBox,
  kExpandScatter,
  kGrowBox,
  kHazardPits,
  kInnerWall,
  kIslandsBridges,
  kIslandsBridgesLg,
  kRings,
  kRiversBridges,
  kRiversBridgesLg,
  kRiversBridgesXl,
  kScatter,
  kSpiral,
  kSinkholes,
  kSnailMode,
  kSoloMaze,
};

inline constexpr std::array<std::string_view, 25> kMapNames{
    "standard",
    "empty",
    "royale",
    "arcade_maze",
    "healing_pools",
    "hz_castle_wall",
    "hz_castle_wall_lg",
    "hz_castle_wall_xl",
    "hz_columns",
    "hz_expand_box",
    "hz_expand_scatter",
    "hz_grow_box",
    "hz_hazard_pits",
    "hz_inner_wall",
    "hz_islands_bridges",
    "hz_islands_bridges_lg",
    "hz_rings",
    "hz_rivers_bridges",
    "hz_rivers_bridges_lg",
    "hz_rivers_bridges_xl",
    "hz_scatter",
    "hz_spiral",
    "sinkholes",
    "snail_mode",
    "solo_maze",
};

constexpr std::string_view map_name(MapId id) { return kMapNames[static_cast<std::size_t>(id)]; }

constexpr std::optional<MapId> find_map(std::string_view name) {
  for (std::size_t i = 0; i < kMapNames.size(); ++i) {
    if (kMapNames[i] == name) return static_cast<MapId>(i);
  }
  return std::nullopt;
}

// Hazards above the board (snail_mode) and bodies longer than the board has cells (solo_maze under
// constrictor) do not fit the small board.
constexpr bool needs_large_board(MapId id) {
  return id == MapId::kSnailMode || id == MapId::kSoloMaze;
}

}  // namespace snakekit
