#include "network.h"

#include <bit>
#include <cstring>
#include <string>

namespace snakekit {

namespace {

// A file is kMagic, kFeatureVersion, kFeatureRows and kHidden as 32-bit numbers, then rows, bias
// and `out` as 16-bit numbers, `skip` as 32-bit numbers; all with the low byte first.
constexpr std::string_view kMagic = "snakeval";

#if defined(__x86_64__) && defined(__GNUC__)
#define SNAKEKIT_WIDE __attribute__((target("avx2")))
#endif

// Sixteen numbers at once, in as many instructions as the processor needs for them.
using Lane = std::int16_t __attribute__((vector_size(32)));
constexpr int kLanes = kHidden * sizeof(std::int16_t) / sizeof(Lane);

// Compiled for different processors, hence all in one function that is inlined into each.
[[gnu::always_inline]] inline int judge_with(const LearnedValue& net, const Features& picked) {
  std::array<Lane, kLanes> lanes;
  std::memcpy(&lanes, &net.bias, sizeof lanes);
  int points = 0;
  for (const auto at : picked) {
    std::array<Lane, kLanes> row;
    std::memcpy(&row, &net.rows[at], sizeof row);
    for (int k = 0; k < kLanes; ++k) lanes[k] += row[k];
    points += net.skip[at];
  }
  LearnedValue::Row sum;
  std::memcpy(&sum, &lanes, sizeof sum);
  // Squares lose their last bits so that no sum can overflow, and all numbers fit the instruction
  // that multiplies and adds pairs.
  constexpr int shift = 4;
  int value = 0;
  for (int k = 0; k < kHidden; ++k) {
    const int clipped = std::clamp<std::int16_t>(sum[k], 0, kHiddenOne);
    value += net.out[k] * static_cast<std::int16_t>(clipped * clipped >> shift);
  }
  return (value / (kHiddenOne * kHiddenOne >> shift) + points) / kPointParts;
}

int judge_plain(const LearnedValue& net, const Features& picked) { return judge_with(net, picked); }

using Judge = int (*)(const LearnedValue&, const Features&);

#ifdef SNAKEKIT_WIDE
SNAKEKIT_WIDE int judge_wide(const LearnedValue& net, const Features& picked) {
  return judge_with(net, picked);
}
const Judge kJudge = __builtin_cpu_supports("avx2") ? judge_wide : judge_plain;
#else
const Judge kJudge = judge_plain;
#endif

// As numbers, the low byte first, because C++20 cannot include a file of bytes; a file's length is
// that of its parts, not a multiple of 8.
static_assert(std::endian::native == std::endian::little);
constexpr std::uint64_t kShipped[] = {
#include "shipped.inc"
};
constexpr std::uint64_t kStanding[] = {
#include "standing.inc"
};

constexpr std::size_t kFileSize = kMagic.size() + 3 * sizeof(std::int32_t) +
                                  sizeof(LearnedValue::rows) + sizeof(LearnedValue::bias) +
                                  sizeof(LearnedValue::out) + sizeof(LearnedValue::skip);

template <std::size_t N>
std::string_view bytes_of(const std::uint64_t (&words)[N]) {
  static_assert(N == (kFileSize + 7) / 8);
  return {reinterpret_cast<const char*>(words), kFileSize};
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class V>
  bool take(V& value) {
    static_assert(std::is_trivially_copyable_v<V>);
    if (rest_.size() < sizeof value) return false;
    rest_.copy(reinterpret_cast<char*>(&value), sizeof value);
    rest_.remove_prefix(sizeof value);
    return true;
  }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace

int LearnedValue::judge(const Features& f) const { return kJudge(*this, f); }

std::shared_ptr<LearnedValue> read_value(std::string_view bytes, std::string& error) {
  Reader in(bytes);
  std::array<char, kMagic.size()> magic{};
  std::array<std::int32_t, 3> shape{};
  if (!in.take(magic) || std::string_view(magic.data(), magic.size()) != kMagic ||
      !in.take(shape)) {
    error = "not a learned value";
    return nullptr;
  }
  constexpr std::array<std::int32_t, 3> expected{kFeatureVersion, kFeatureRows, kHidden};
  constexpr std::array<const char*, 3> names{"features of version ", "rows ", "units "};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == expected[i]) continue;
    error = names[i] + std::to_string(shape[i]) + ", expected " + std::to_string(expected[i]);
    return nullptr;
  }
  auto value = std::make_shared<LearnedValue>();
  if (in.take(value->rows) && in.take(value->bias) && in.take(value->out) && in.take(value->skip) &&
      in.empty())
    return value;
  error = "its length is not that of its network";
  return nullptr;
}

std::string_view shipped_bytes() { return bytes_of(kShipped); }

std::shared_ptr<const LearnedValue> shipped_value() {
  static const std::shared_ptr<const LearnedValue> value = [] {
    std::string error;
    return read_value(shipped_bytes(), error);
  }();
  return value;
}

std::string_view standing_bytes() { return bytes_of(kStanding); }

const LearnedValue& standing_value() {
  static const std::shared_ptr<const LearnedValue> value = [] {
    std::string error;
    return read_value(standing_bytes(), error);
  }();
  return *value;
}

}  // namespace snakekit
