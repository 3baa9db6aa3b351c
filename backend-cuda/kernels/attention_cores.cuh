// Attention and its gradients by tensor cores. A warp has 16 rows of one operand, two per thread; the other operand is read
// in tiles of 32 rows. Weights and gradients of scores enter the second product as two values of the operands' dtype, the
// rounded value and its rounding error, so that sums have the precision of f32.
#pragma once
#include "attention.cuh"
#include "tensor.cuh"

constexpr u32 STEP = 32;

// Reduces a value over the four threads of a row.
template <class J>
DEV float over_row_of_four(float own) {
  own = J::join(own, __shfl_xor_sync(0xffffffff, own, 1));
  return J::join(own, __shfl_xor_sync(0xffffffff, own, 2));
}

// The power of two that scales the largest finite value of a row to between 1 and 2, and its inverse.
struct Power {
  float by, back;
  template <u32 COUNT>
  METHOD Power(const Sums (&numbers)[COUNT], u32 below, bool wanted) : by(1.0f), back(1.0f) {
    if (!wanted) return;
    float most = 0.0f;
#pragma unroll
    for (u32 n = 0; n < COUNT; n++) {
#pragma unroll
      for (u32 second = 0; second < 2; second++) {
        const float own = magnitude_(numbers[n].of[2 * below + second]);
        if (is_finite(own) && own > most) most = own;
      }
    }
    most = over_row_of_four<Largest>(most);
    if (most == 0.0f) return;
    const u32 exponent = bits_of(most) >> 23, held = exponent < 1 ? 1 : exponent > 253 ? 253 : exponent;
    by = float_of((254 - held) << 23);
    back = float_of(held << 23);
  }
};

// Rows of `WIDTH` elements in shared memory; eight consecutive rows start in different banks.
template <class T, u32 WIDTH>
struct Rows {
  static constexpr u32 PITCH = WIDTH + 8, PARTS = WIDTH / 16;

  // Loads `COUNT` rows, starting at `first`; pads with zeros below the last row, and after the last column up to a multiple
  // of 16.
  template <u32 COUNT>
  METHOD static void fetch(u16* to, const T* from, const Matrix& m, u32 first, u32 rows, u32 columns, bool pieces) {
    const u32 filled = (columns + 15) / 16 * 16;
    if (pieces) {
      const u32 each = filled / 8;
      for (u32 at = threadIdx.x; at < COUNT * each; at += blockDim.x) {
        const u32 row = at / each, column = at % each * 8;
        const bool inside = first + row < rows && column < columns;
        const u32 count = inside ? (columns - column < 8 ? columns - column : 8) : 0;
        copy_16(to + row * PITCH + column, inside ? from + (first + row) * m.row + column : from, count * 2);
      }
      return;
    }
    for (u32 row = threadIdx.x / 32; row < COUNT; row += blockDim.x / 32) {
      for (u32 column = threadIdx.x % 32; column < filled; column += 32) {
        const bool inside = first + row < rows && column < columns;
        to[row * PITCH + column] = inside ? from[(first + row) * m.row + column * m.column].bits : (u16)0;
      }
    }
  }

  // The dot products of 16 rows with the 32 rows of a tile.
  METHOD static void dots(Sums (&to)[STEP / 8], const u16* own, const u16* tile, u32 columns) {
#pragma unroll
    for (u32 n = 0; n < STEP / 8; n++) to[n] = Sums{};
#pragma unroll
    for (u32 part = 0; part < PARTS; part++) {
      if (part * 16 >= columns) continue;
      LeftPart left;
      load_left<PITCH>(left, own + part * 16, false);
#pragma unroll
      for (u32 n = 0; n < STEP / 8; n += 2) {
        RightPart right[2];
        load_right<PITCH>(right, tile + n * 8 * PITCH + part * 16, false);
        Cores<T>::add(to[n], left, right[0]);
        Cores<T>::add(to[n + 1], left, right[1]);
      }
    }
  }

  // Accumulates the rows of a tile, each times its weights for 16 rows. If `SCALED`, the weights of a row are first
  // multiplied by a power of two, because of the small exponent range of f16.
  template <bool SCALED>
  METHOD static void add(Sums (&to)[WIDTH / 8], const Sums (&factors)[STEP / 8], const u16* tile, u32 columns) {
    const Power power[2] = {Power(factors, 0, SCALED), Power(factors, 1, SCALED)};
    LeftPart first[STEP / 16], second[STEP / 16];
#pragma unroll
    for (u32 k = 0; k < STEP / 16; k++) {
#pragma unroll
      for (u32 i = 0; i < 4; i++) {
        const Sums& of = factors[2 * k + i / 2];
        const float low = of.of[i % 2 * 2] * power[i % 2].by, high = of.of[i % 2 * 2 + 1] * power[i % 2].by;
        first[k].pair[i] = paired<T>(low, high);
        second[k].pair[i] = paired<T>(rest(low), rest(high));
      }
    }
#pragma unroll
    for (u32 n = 0; n < WIDTH / 8; n += 2) {
      if (n * 8 >= columns) continue;
      Sums sums[2] = {}, rests[2] = {};
#pragma unroll
      for (u32 k = 0; k < STEP / 16; k++) {
        RightPart right[2];
        load_right<PITCH>(right, tile + k * 16 * PITCH + n * 8, true);
#pragma unroll
        for (u32 j = 0; j < 2; j++) {
          Cores<T>::add(sums[j], first[k], right[j]);
          Cores<T>::add(rests[j], second[k], right[j]);
        }
      }
      // 0 times infinity is NaN, which the rounding errors must not add to the result.
#pragma unroll
      for (u32 i = 0; i < 8; i++) {
        const float rest = rests[i / 4].of[i % 4], made = sums[i / 4].of[i % 4] + (is_finite(rest) ? rest : 0.0f);
        to[n + i / 4].of[i % 4] += made * power[i % 4 / 2].back;
      }
    }
  }
  METHOD static float rest(float x) {
    const float rounded = Element<T>::widen(Element<T>::narrow(x));
    return is_finite(rounded) ? x - rounded : 0.0f;
  }

  // Stores one of a thread's two rows.
  METHOD static void store(T* to, const Matrix& m, u32 row, const Sums (&made)[WIDTH / 8], u32 below, u32 columns, float factor) {
#pragma unroll
    for (u32 n = 0; n < WIDTH / 8; n++) {
#pragma unroll
      for (u32 second = 0; second < 2; second++) {
        const u32 column = n * 8 + threadIdx.x % 4 * 2 + second;
        if (column < columns) to[row * m.row + column * m.column] = Element<T>::narrow(made[n].of[2 * below + second] * factor);
      }
    }
  }
};

template <class T>
constexpr bool SMALL_RANGE = false;
template <>
constexpr bool SMALL_RANGE<f16> = true;

enum Pieces : u32 { QUERY_PIECES = 1, KEY_PIECES = 2, VALUE_PIECES = 4, GRAD_PIECES = 8, OUT_PIECES = 16 };

// A block has 64 queries, 16 for each of four warps.
template <class T, u32 WIDTH>
DEV void attend_by_cores(const Attention& p) {
  typedef Rows<T, WIDTH> Own;
  constexpr u32 QUERIES = 64;
  SHARED(u16, query, QUERIES * Own::PITCH);
  SHARED(u16, key, STEP * Own::PITCH);
  SHARED(u16, value, STEP * Own::PITCH);
  const Heads<T> heads(p, blockIdx.y / p.repeats, blockIdx.y % p.repeats);
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const u32 first = blockIdx.x * QUERIES, own = first + warp * 16 + lane / 4;
  const float scale = Immediate<float>::of(p.scale);
  const auto fetch_key = [&](u32 begin) {
    Own::template fetch<STEP>(key, heads.key(), p.key, begin, p.keys, p.width, p.pieces & KEY_PIECES);
    copies_begun();
  };
  float largest[2] = {-Infinite<float>::value(), -Infinite<float>::value()}, sum[2] = {};
  Sums made[WIDTH / 8] = {};
  const u32 seen = keys_seen(p, first + QUERIES < p.queries ? first + QUERIES : p.queries);
  Own::template fetch<QUERIES>(query, heads.query(), p.query, first, p.queries, p.width, p.pieces & QUERY_PIECES);
  fetch_key(0);
#pragma unroll 1
  for (u32 begin = 0; begin < seen; begin += STEP) {
    Own::template fetch<STEP>(value, heads.value(), p.value, begin, p.keys, p.values, p.pieces & VALUE_PIECES);
    copies_begun();
    copies_arrived<1>();
    __syncthreads();
    Sums score[STEP / 8];
    Own::dots(score, query + warp * 16 * Own::PITCH, key, p.width);
    __syncthreads();
    fetch_key(begin + STEP);
#pragma unroll
    for (u32 below = 0; below < 2; below++) {
      const u32 row = own + 8 * below;
      float most = largest[below];
#pragma unroll
      for (u32 n = 0; n < STEP / 8; n++) {
#pragma unroll
        for (u32 second = 0; second < 2; second++) {
          const u32 at = begin + n * 8 + lane % 4 * 2 + second;
          float& x = score[n].of[2 * below + second];
          x = at < p.keys && row < p.queries ? heads.masked(x * scale, row, at) : -Infinite<float>::value();
          if (at < p.keys) most = larger(most, x);
        }
      }
      most = over_row_of_four<Largest>(most);
      // As in attention.cu.
      const float from = most == -Infinite<float>::value() ? 0.0f : most;
      const float kept = exp_(largest[below] - from);
      largest[below] = most;
      sum[below] *= kept;
#pragma unroll
      for (u32 n = 0; n < STEP / 8; n++) {
#pragma unroll
        for (u32 second = 0; second < 2; second++) {
          float& x = score[n].of[2 * below + second];
          x = exp_(x - from);
          if (begin + n * 8 + lane % 4 * 2 + second < p.keys) sum[below] += x;
          else x = 0.0f;
        }
      }
#pragma unroll
      for (u32 n = 0; n < WIDTH / 8; n++) {
        made[n].of[2 * below] *= kept;
        made[n].of[2 * below + 1] *= kept;
      }
    }
    copies_arrived<1>();
    __syncthreads();
    Own::template add<false>(made, score, value, p.values);
    __syncthreads();
  }
#pragma unroll
  for (u32 below = 0; below < 2; below++) {
    const Ending<float> ending(p, largest[below], over_row_of_four<Added>(sum[below]));
    const u32 row = own + 8 * below;
    if (row >= p.queries) continue;
    Own::store(heads.out(), p.out, row, made, below, p.values, ending.factor);
    if (lane % 4 == 0 && p.logsumexp.data != nullptr) heads.logsumexp_out(row) = ending.logsumexp;
  }
}

// The gradient of 32 queries or, if `OF_KEY`, of 32 keys and their values, by two warps. Rows are those of the operand
// whose gradient is computed, steps iterate over the other operand.
template <class T, u32 WIDTH, bool OF_KEY>
DEV void gradient_by_cores(const Attention& p) {
  typedef Rows<T, WIDTH> Own;
  SHARED(u16, query, STEP * Own::PITCH);
  SHARED(u16, grad, STEP * Own::PITCH);
  SHARED(u16, key, STEP * Own::PITCH);
  SHARED(u16, value, STEP * Own::PITCH);
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, repeats = OF_KEY ? 1 : p.repeats;
  Heads<T> heads(p, blockIdx.y / repeats, blockIdx.y % repeats);
  const u32 first = blockIdx.x * STEP, own = first + warp * 16 + lane / 4;
  const float scale = Immediate<float>::of(p.scale);
  const auto fetch_queries = [&](u32 begin) {
    Own::template fetch<STEP>(query, heads.query(), p.query, begin, p.queries, p.width, p.pieces & QUERY_PIECES);
    Own::template fetch<STEP>(grad, heads.grad(), p.grad, begin, p.queries, p.values, p.pieces & GRAD_PIECES);
    copies_begun();
  };
  const auto fetch_keys = [&](u32 begin) {
    Own::template fetch<STEP>(key, heads.key(), p.key, begin, p.keys, p.width, p.pieces & KEY_PIECES);
    Own::template fetch<STEP>(value, heads.value(), p.value, begin, p.keys, p.values, p.pieces & VALUE_PIECES);
    copies_begun();
  };
  Sums made[WIDTH / 8] = {}, of_value[OF_KEY ? WIDTH / 8 : 1] = {};
  if (OF_KEY) fetch_keys(first);
  else fetch_queries(first);
  const u32 offset = warp * 16 * Own::PITCH;
  const u32 start = OF_KEY && p.causal ? first / STEP * STEP : 0;
  const u32 last = first + STEP < p.queries ? first + STEP : p.queries;
  const u32 end = OF_KEY ? p.queries : keys_seen(p, last);
#pragma unroll 1
  for (; heads.repeat < (OF_KEY ? p.repeats : heads.repeat + 1); heads.repeat++) {
    const u32 head = OF_KEY ? blockIdx.y * p.repeats + heads.repeat : blockIdx.y;
#pragma unroll 1
    for (u32 begin = start; begin < end; begin += STEP) {
      __syncthreads();
      if (OF_KEY) fetch_queries(begin);
      else fetch_keys(begin);
      copies_arrived<0>();
      __syncthreads();
      Sums score[STEP / 8], along[STEP / 8];
      Own::dots(score, (OF_KEY ? key : query) + offset, OF_KEY ? query : key, p.width);
      Own::dots(along, (OF_KEY ? value : grad) + offset, OF_KEY ? grad : value, p.values);
#pragma unroll
      for (u32 n = 0; n < STEP / 8; n++) {
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
          const u32 row = own + i / 2 * 8, other = begin + n * 8 + lane % 4 * 2 + i % 2;
          const u32 at = OF_KEY ? other : row, seen = OF_KEY ? row : other;
          float &share = score[n].of[i], &slope = along[n].of[i];
          if (at < p.queries && seen < p.keys) {
            const QueryStatistics<float> of = statistics_of<float>(p, head, at);
            share = exp_(heads.masked(share * scale, at, seen) - of.from) * of.factor;
            slope = share * (slope - of.delta);
          } else {
            share = slope = 0.0f;
          }
        }
      }
      if constexpr (OF_KEY) Own::template add<SMALL_RANGE<T>>(of_value, score, grad, p.values);
      Own::template add<SMALL_RANGE<T>>(made, along, OF_KEY ? query : key, p.width);
    }
    if (!OF_KEY) break;
  }
  if (OF_KEY) heads.repeat = 0;
  copies_arrived<0>();  // Waits for all copies before the block ends.
#pragma unroll
  for (u32 below = 0; below < 2; below++) {
    const u32 row = own + 8 * below;
    if (row >= (OF_KEY ? p.keys : p.queries)) continue;
    if constexpr (OF_KEY) {
      Own::store(heads.of_key(), p.of_key, row, made, below, p.width, scale);
      Own::store(heads.of_value(), p.of_value, row, of_value, below, p.values, 1.0f);
    } else {
      Own::store(heads.of_query(), p.of_query, row, made, below, p.width, scale);
    }
  }
}
