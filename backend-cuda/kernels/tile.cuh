// The product of two matrices, generic over the source of operands: a source returns the elements `left(row, inner)` and
// `right(inner, column)`, the output offset of a column, and stores results by `store`. It may cache the offsets of the
// block's columns and of the reduction indices of two steps in shared memory, and is passed the positions of column and
// reduction index in these caches. A block computes 64 x 64 results, a thread 4 x 4 of them, and operands are staged in
// shared memory, 16 deep. This uses the ordinary arithmetic units, not tensor cores.
//
// Split-k: if there are few results and a long reduction dimension, `splits` blocks reduce a range of it each, and a second
// launch adds the partial sums in order. The split depends on the sizes alone, so that a result is bit-identical on every
// run.
#pragma once
#include "nets.cuh"

constexpr u32 TILE = 64, DEPTH = 16, EACH = 4, TILE_THREADS = 256, SIDE = TILE / EACH;
// Padded by one element, so that writes along the reduction dimension have no bank conflicts.
constexpr u32 PITCH = TILE + 1;

struct Shape {
  void* parts;
  u32 rows, columns, inner;
  // The number of tiles per row of tiles, and in total.
  u32 across, tiles;
  // The length of each split of the reduction dimension, a multiple of the depth, and the number of splits.
  u32 chunk, splits;
  // Whether neighbouring threads read neighbouring reduction indices of an operand.
  u32 left_by_term, right_by_term;
  // Whether neighbouring elements of the operand form pieces of 16 bytes, aligned to 16; read by the tensor core kernels
  // alone.
  u32 left_pieces, right_pieces;
  // Whether tensor cores multiply; read by the host alone.
  u32 by_cores;
};

// The offset of a partial sum, by batch, split, row and column.
DEV u64 part_at(const Shape& shape, u32 split, u32 row, u32 column) {
  return (((u64)blockIdx.y * shape.splits + split) * shape.rows + row) * shape.columns + column;
}

template <class S>
DEV void multiply(S source, const Shape& shape) {
  typedef typename S::Acc Acc;
  SHARED(Acc, left, DEPTH * PITCH);
  SHARED(Acc, right, DEPTH * PITCH);
  const u32 tile = blockIdx.x % shape.tiles, split = blockIdx.x / shape.tiles;
  const u32 row0 = tile / shape.across * TILE, column0 = tile % shape.across * TILE;
  const u32 begin = split * shape.chunk;
  const u32 end = shape.inner - begin < shape.chunk ? shape.inner : begin + shape.chunk;
  const u32 x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
  source.template open<DEPTH>(column0, shape.columns);
  source.template step_to<DEPTH>(begin, end, 0);
  source.template step_to<DEPTH>(begin + DEPTH, end, 1);
  if constexpr (S::keeps) {
    __syncthreads();
  }
  u32 stage = 0;
  // A thread without results still loads.
  const bool works = row0 + y < shape.rows && column0 + x < shape.columns;
  constexpr u32 LOADS = TILE * DEPTH / TILE_THREADS;
  const auto left_place = [&](u32 i, u32& k, u32& row) {
    const u32 at = i * TILE_THREADS + threadIdx.x;
    k = shape.left_by_term ? at % DEPTH : at / TILE, row = shape.left_by_term ? at / DEPTH : at % TILE;
  };
  const auto right_place = [&](u32 i, u32& k, u32& column) {
    const u32 at = i * TILE_THREADS + threadIdx.x;
    k = shape.right_by_term ? at % DEPTH : at / TILE, column = shape.right_by_term ? at / DEPTH : at % TILE;
  };
  Acc of_left[LOADS], of_right[LOADS];
  // The elements of the next step are loaded while those of the current one are multiplied.
  const auto load = [&](u32 first, u32 kept) {
#pragma unroll
    for (u32 i = 0; i < LOADS; i++) {
      u32 k, row, column;
      left_place(i, k, row);
      of_left[i] = row0 + row < shape.rows && first + k < end ? source.left(row0 + row, first + k, kept + k) : Acc(0);
      right_place(i, k, column);
      const bool inside = column0 + column < shape.columns && first + k < end;
      of_right[i] = inside ? source.right(first + k, column0 + column, kept + k, column) : Acc(0);
    }
  };
  Acc sum[EACH][EACH];
#pragma unroll
  for (u32 i = 0; i < EACH; i++)
#pragma unroll
    for (u32 j = 0; j < EACH; j++) sum[i][j] = Acc(0);
  load(begin, 0);
#pragma unroll 1
  for (u32 first = begin; first < end; first += DEPTH, stage ^= 1) {
#pragma unroll
    for (u32 i = 0; i < LOADS; i++) {
      u32 k, row, column;
      left_place(i, k, row);
      left[k * PITCH + row] = of_left[i];
      right_place(i, k, column);
      right[k * PITCH + column] = of_right[i];
    }
    __syncthreads();
    source.template step_to<DEPTH>(first + 2 * DEPTH, end, stage);
    if (end - first > DEPTH) load(first + DEPTH, (stage ^ 1) * DEPTH);
    if (works) {
      const u32 depth = end - first < DEPTH ? end - first : DEPTH;
#pragma unroll 2
      for (u32 k = 0; k < depth; k++) {
        Acc a[EACH], b[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
          a[i] = left[k * PITCH + y + SIDE * i];
          b[i] = right[k * PITCH + x + SIDE * i];
        }
#pragma unroll
        for (u32 i = 0; i < EACH; i++)
#pragma unroll
          for (u32 j = 0; j < EACH; j++) sum[i][j] = fused(a[i], b[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
  if (!works) return;
#pragma unroll
  for (u32 j = 0; j < EACH; j++) {
    const u32 column = column0 + x + SIDE * j;
    if (column >= shape.columns) continue;
    const i64 at = source.column(column, x + SIDE * j);
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
      const u32 row = row0 + y + SIDE * i;
      if (row >= shape.rows) continue;
      if (shape.splits == 1) source.store(row, column, at, sum[i][j]);
      else static_cast<Acc*>(shape.parts)[part_at(shape, split, row, column)] = sum[i][j];
    }
  }
}

// The second launch, with one thread per result.
template <class S>
DEV void add_parts(const S& source, const Shape& shape) {
  typedef typename S::Acc Acc;
  const u64 at = (u64)blockIdx.x * TILE_THREADS + threadIdx.x;
  if (at >= (u64)shape.rows * shape.columns) return;
  const u32 row = (u32)(at / shape.columns), column = (u32)(at % shape.columns);
  Acc sum = Acc(0);
  for (u32 split = 0; split < shape.splits; split++) {
    sum = plus(sum, static_cast<const Acc*>(shape.parts)[part_at(shape, split, row, column)]);
  }
  source.store(row, column, source.column_alone(column), sum);
}
