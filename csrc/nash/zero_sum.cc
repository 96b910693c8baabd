#include <algorithm>
#include <array>
#include <vector>

#include "../geometry.h"
#include "regret.h"

namespace snakekit {

namespace {

constexpr double kTiny = 1e-12;

// The simplex tableau of max sum(y) with A y <= 1 and y >= 0: a line for each row of A with its
// slack, then the line of reduced costs; the last column holds the right side.
struct Tableau {
  double* cells;
  int m;
  int width;
  int* basis;

  [[nodiscard]] double* line(int i) const { return cells + static_cast<std::ptrdiff_t>(i) * width; }
  [[nodiscard]] double right(int i) const { return line(i)[width - 1]; }

  // By Bland's rule, so that degenerate games end as well; -1 when there is none.
  [[nodiscard]] int entering() const {
    const double* cost = line(m);
    for (int k = 0; k < width - 1; ++k) {
      if (cost[k] < -kTiny) return k;
    }
    return -1;
  }
  [[nodiscard]] int leaving(int enter) const {
    int leave = -1;
    double least = 0;
    for (int i = 0; i < m; ++i) {
      if (line(i)[enter] <= kTiny) continue;
      const double ratio = right(i) / line(i)[enter];
      const bool less = leave < 0 || ratio < least - kTiny;
      if (!less && (ratio > least + kTiny || basis[i] > basis[leave])) continue;
      leave = i;
      least = ratio;
    }
    return leave;
  }
  void pivot(int leave, int enter) {
    double* own = line(leave);
    const double scale = 1 / own[enter];
    for (int k = 0; k < width; ++k) own[k] *= scale;
    for (int i = 0; i <= m; ++i) {
      const double factor = line(i)[enter];
      if (i == leave || factor == 0) continue;
      for (int k = 0; k < width; ++k) line(i)[k] -= factor * own[k];
    }
    basis[leave] = enter;
  }
};

}  // namespace

double solve_zero_sum(const double* matrix, int m, int n, double* row, double* col,
                      std::vector<double>& room) {
  const auto cells = static_cast<std::ptrdiff_t>(m) * n;
  // With all payoffs positive the value is positive, and the largest sum(y) is 1 / value.
  const double shift = 1 - *std::min_element(matrix, matrix + cells);
  const int width = n + m + 1;
  room.assign(static_cast<std::size_t>(m + 1) * width, 0);
  // Of a turn of one snake, without asking the heap.
  std::array<int, kMoves> few;
  std::vector<int> many;
  if (m > kMoves) many.resize(m);
  Tableau tableau{room.data(), m, width, m > kMoves ? many.data() : few.data()};
  for (int i = 0; i < m; ++i) {
    double* line = tableau.line(i);
    for (int j = 0; j < n; ++j) line[j] = matrix[static_cast<std::ptrdiff_t>(i) * n + j] + shift;
    line[n + i] = 1;
    line[width - 1] = 1;
    tableau.basis[i] = n + i;
  }
  std::fill_n(tableau.line(m), n, -1.0);
  for (int enter = tableau.entering(); enter >= 0; enter = tableau.entering())
    tableau.pivot(tableau.leaving(enter), enter);
  const double total = tableau.right(m);
  std::fill_n(col, n, 0.0);
  for (int i = 0; i < m; ++i) {
    if (tableau.basis[i] < n) col[tableau.basis[i]] = std::max(0.0, tableau.right(i) / total);
    row[i] = std::max(0.0, tableau.line(m)[n + i] / total);
  }
  return 1 / total - shift;
}

}  // namespace snakekit
