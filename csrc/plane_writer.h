// Writing into the planes of an observation that is aligned with the board.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "encode.h"
#include "state.h"

namespace snakekit {

inline std::uint8_t clip_byte(int value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0, 255));
}

// Offsets of cells inside the planes of a view that may be larger than the board.
template <class T>
class PlaneWriter {
 public:
  PlaneWriter(const State<T>& s, PlaneView out)
      : geo_(*s.geo),
        out_(out.data),
        stride_(out.rows * out.cols),
        cols_(out.cols),
        gap_(out.cols - geo_.width) {}

  std::uint8_t& cell(int plane, int c) {
    return out_[plane * stride_ + c + (gap_ == 0 ? 0 : geo_.row[c] * gap_)];
  }
  void fill(int plane, int value) {
    if (gap_ == 0) {
      std::memset(out_ + plane * stride_, clip_byte(value), static_cast<std::size_t>(geo_.cells));
      return;
    }
    for (int y = 0; y < geo_.height; ++y) {
      std::memset(out_ + plane * stride_ + y * cols_, clip_byte(value),
                  static_cast<std::size_t>(geo_.width));
    }
  }
  void copy(int plane, const std::uint8_t* cells) {
    if (gap_ == 0) {
      std::memcpy(out_ + plane * stride_, cells, static_cast<std::size_t>(geo_.cells));
      return;
    }
    for (int y = 0; y < geo_.height; ++y) {
      std::memcpy(out_ + plane * stride_ + y * cols_, cells + y * geo_.width,
                  static_cast<std::size_t>(geo_.width));
    }
  }

 private:
  const Geometry<T>& geo_;
  std::uint8_t* out_;
  int stride_;
  int cols_;
  int gap_;
};

}  // namespace snakekit
