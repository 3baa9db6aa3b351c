// The product of two matrices, written once over what they are: a source gives the elements `left(row, inner)` and
// `right(inner, column)`, says where the results of a column lie, and takes each by `store`. It may keep what it knows of the
// block's columns and of the terms of two steps in shared memory, and is told where in them a column and a term stand. A block has 64 x 64 results, a
// thread 4 x 4 of them, and the operands come through shared memory, 16 deep. These are the ordinary units of a chip, not its tensor cores.
//
// Where there are few results and many terms, `splits` blocks have some of the terms each, and a second launch adds up
// their parts in order. How it is split follows from the sizes alone, so a result has the same bits on every run.
#pragma once
#include "nets.cuh"

constexpr u32 TILE = 64, DEPTH = 16, EACH = 4, TILE_THREADS = 256, SIDE = TILE / EACH;
// One more than a row has, so that what is written along the terms falls into different banks.
constexpr u32 PITCH = TILE + 1;

struct Shape {
  void* parts;
  u32 rows, columns, inner;
  // Tiles in a row of them, and in all.
  u32 across, tiles;
  // Terms of each split, a multiple of the depth.
  u32 chunk, splits;
  // Whether neighbouring threads read neighbouring terms of an operand.
  u32 left_by_term, right_by_term;
  // Whether neighbouring elements of it are pieces of 16 bytes of memory, aligned to as many; read by tensor cores alone.
  u32 left_pieces, right_pieces;
  // Whether they multiply; read by the host alone.
  u32 by_cores;
};

// Where a part of a result lies: by batch, split, row and column.
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
  // A thread that has no result still loads.
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
  // A step's elements are on their way while those of the step before are multiplied.
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

// The second launch: a thread for each result.
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
