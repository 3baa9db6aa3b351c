// The product of tile.cuh on tensor cores: a block computes 64 x 64 results, each of its four warps 32 x 32, and operands
// are staged in shared memory, 32 deep and double-buffered.
//
// An operand is stored in shared memory by its rows (columns of the right operand) or along the reduction dimension,
// according to which is contiguous in global memory. If contiguous and aligned, it is copied asynchronously in pieces of 16
// bytes; otherwise each element is loaded separately.
#pragma once
#include "tensor.cuh"
#include "tile.cuh"

constexpr u32 CORE_DEPTH = 32, CORE_THREADS = 128, WARP_TILE = 32;

// The format of operands of T in shared memory: the word type, the elements per 16 bytes, the reduction depth of one tensor
// core product, and the pitch in words between rows and between reduction indices. Eight consecutive rows start in
// different banks (four for f32, whose words are read one by one).
template <class T>
struct Format {
  typedef u16 Word;
  static constexpr u32 PIECE = 8, TERMS = 16, BY_ROW = CORE_DEPTH + 8, BY_TERM = TILE + 8;
  DEV u16 word(T x) { return x.bits; }
};
template <>
struct Format<float> {
  typedef u32 Word;
  static constexpr u32 PIECE = 4, TERMS = 8, BY_ROW = CORE_DEPTH + 4, BY_TERM = TILE + 8;
  DEV u32 word(float x) { return bits_of(x); }
};

// The valid range of an operand: starting at a row and a reduction index, up to these bounds.
struct Window {
  u32 row, term, rows, terms;
};

// An operand provides `bits(row, term)`, and `piece(row, term)`, the address of 16 bytes along the reduction dimension or
// the rows, relative to the start of the window.
template <class T, class O>
DEV void fetch(typename Format<T>::Word* to, const O& operand, const Window& w, bool by_term, bool pieces) {
  typedef Format<T> F;
  typedef typename F::Word Word;
  if (pieces) {
    constexpr u32 PIECE = F::PIECE, EACH_COPIES = TILE * CORE_DEPTH / PIECE / CORE_THREADS;
    // Computes all addresses before the first copy, since the compiler must assume that a copy changes their inputs.
    Word* places[EACH_COPIES];
    const void* sources[EACH_COPIES];
    u32 bytes[EACH_COPIES];
#pragma unroll
    for (u32 i = 0; i < EACH_COPIES; i++) {
      const u32 at = i * CORE_THREADS + threadIdx.x;
      const u32 row = by_term ? at / (CORE_DEPTH / PIECE) : at % (TILE / PIECE) * PIECE;
      const u32 term = by_term ? at % (CORE_DEPTH / PIECE) * PIECE : at / (TILE / PIECE);
      places[i] = to + (by_term ? row * F::BY_ROW + term : term * F::BY_TERM + row);
      const u32 own = by_term ? w.term + term : w.row + row, end = by_term ? w.terms : w.rows;
      const bool inside = w.row + row < w.rows && w.term + term < w.terms;
      const u32 left = inside ? (end - own < PIECE ? end - own : PIECE) : 0;
      bool there = left != 0;
      const void* from = there ? operand.piece(row, term, there) : nullptr;
      sources[i] = there ? from : operand.anywhere();
      bytes[i] = there ? left * sizeof(Word) : 0;
    }
#pragma unroll
    for (u32 i = 0; i < EACH_COPIES; i++) copy_16(places[i], sources[i], bytes[i]);
    return;
  }
  // Loads several elements before the first is written, for the same reason.
  constexpr u32 GROUP = 8;
#pragma unroll 1
  for (u32 begin = 0; begin < TILE * CORE_DEPTH / CORE_THREADS; begin += GROUP) {
    Word own[GROUP];
#pragma unroll
    for (u32 i = 0; i < GROUP; i++) {
      const u32 at = (begin + i) * CORE_THREADS + threadIdx.x;
      const u32 row = by_term ? at / CORE_DEPTH : at % TILE, term = by_term ? at % CORE_DEPTH : at / TILE;
      const bool inside = w.row + row < w.rows && w.term + term < w.terms;
      own[i] = inside ? operand.bits(row, term) : (Word)0;
    }
#pragma unroll
    for (u32 i = 0; i < GROUP; i++) {
      const u32 at = (begin + i) * CORE_THREADS + threadIdx.x;
      const u32 row = by_term ? at / CORE_DEPTH : at % TILE, term = by_term ? at % CORE_DEPTH : at / TILE;
      to[by_term ? row * F::BY_ROW + term : term * F::BY_TERM + row] = own[i];
    }
  }
}

template <class T, class S>
struct LeftOf {
  const S& source;
  const Window& w;
  u32 kept;
  METHOD const T* at(u32 row, u32 term) const { return source.left_at(w.row + row, w.term + term, kept + term); }
  METHOD typename Format<T>::Word bits(u32 row, u32 term) const { return Format<T>::word(*at(row, term)); }
  METHOD const void* piece(u32 row, u32 term, bool&) const { return at(row, term); }
  METHOD const void* anywhere() const { return source.left_begin(); }
};
template <class T, class S>
struct RightOf {
  const S& source;
  const Window& w;
  u32 kept;
  METHOD const T* at(u32 column, u32 term, bool& there) const {
    return source.right_at(w.term + term, w.row + column, there, kept + term, column);
  }
  METHOD typename Format<T>::Word bits(u32 column, u32 term) const {
    bool there = true;
    const T* from = at(column, term, there);
    return there ? Format<T>::word(*from) : 0;
  }
  METHOD const void* piece(u32 column, u32 term, bool& there) const { return at(column, term, there); }
  METHOD const void* anywhere() const { return source.right_begin(); }
};

// T is the operands' dtype; the source is that of `multiply`, with addresses instead of elements.
template <class T, class S>
DEV void multiply_by_cores(S source, const Shape& shape) {
  typedef Format<T> F;
  typedef typename F::Word Word;
  constexpr u32 SIDE_WORDS = TILE * F::BY_ROW;
  static_assert(SIDE_WORDS >= CORE_DEPTH * F::BY_TERM, "an operand by terms takes no more than one by rows");
  SHARED(Word, left, 2 * SIDE_WORDS);
  SHARED(Word, right, 2 * SIDE_WORDS);
  const u32 tile = blockIdx.x % shape.tiles, split = blockIdx.x / shape.tiles;
  const u32 row0 = tile / shape.across * TILE, column0 = tile % shape.across * TILE;
  const u32 begin = split * shape.chunk;
  const u32 end = shape.inner - begin < shape.chunk ? shape.inner : begin + shape.chunk;
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const u32 own_row = warp / 2 * WARP_TILE, own_column = warp % 2 * WARP_TILE;
  const bool left_by_term = shape.left_by_term, right_by_term = shape.right_by_term;
  Sums sums[2][4] = {};
  const auto load = [&](u32 first, u32 stage) {
    const Window rows{row0, first, shape.rows, end}, columns{column0, first, shape.columns, end};
    const u32 kept = stage * CORE_DEPTH;
    fetch<T>(left + stage * SIDE_WORDS, LeftOf<T, S>{source, rows, kept}, rows, left_by_term, shape.left_pieces);
    fetch<T>(right + stage * SIDE_WORDS, RightOf<T, S>{source, columns, kept}, columns, right_by_term, shape.right_pieces);
    copies_begun();
  };
  source.template open<CORE_DEPTH>(column0, shape.columns);
  source.template step_to<CORE_DEPTH>(begin, end, 0);
  source.template step_to<CORE_DEPTH>(begin + CORE_DEPTH, end, 1);
  if constexpr (S::keeps) {
    __syncthreads();
  }
  if (begin < end) load(begin, 0);
  u32 stage = 0;
#pragma unroll 1
  for (u32 first = begin; first < end; first += CORE_DEPTH, stage ^= 1) {
    if (end - first > CORE_DEPTH) {
      load(first + CORE_DEPTH, stage ^ 1);
      copies_arrived<1>();
    } else {
      copies_arrived<0>();
    }
    __syncthreads();
    source.template step_to<CORE_DEPTH>(first + 2 * CORE_DEPTH, end, stage);
    const Word *a = left + stage * SIDE_WORDS, *b = right + stage * SIDE_WORDS;
#pragma unroll
    for (u32 k = 0; k < CORE_DEPTH; k += F::TERMS) {
      LeftPart of_left[2];
      RightPart of_right[4];
#pragma unroll
      for (u32 i = 0; i < 2; i++) {
        const u32 row = own_row + 16 * i;
        if (left_by_term) load_left<F::BY_ROW>(of_left[i], a + row * F::BY_ROW + k, false);
        else load_left<F::BY_TERM>(of_left[i], a + k * F::BY_TERM + row, true);
      }
#pragma unroll
      for (u32 j = 0; j < 4; j += 2) {
        const u32 column = own_column + 8 * j;
        RightPart two[2];
        if (right_by_term) load_right<F::BY_ROW>(two, b + column * F::BY_ROW + k, false);
        else load_right<F::BY_TERM>(two, b + k * F::BY_TERM + column, true);
        of_right[j] = two[0];
        of_right[j + 1] = two[1];
      }
#pragma unroll
      for (u32 i = 0; i < 2; i++)
#pragma unroll
        for (u32 j = 0; j < 4; j++) Cores<T>::add(sums[i][j], of_left[i], of_right[j]);
    }
    // No thread reads the other stage when the next step writes it.
    __syncthreads();
  }
#pragma unroll
  for (u32 j = 0; j < 4; j++) {
#pragma unroll
    for (u32 second = 0; second < 2; second++) {
      const u32 column = column0 + own_column + 8 * j + lane % 4 * 2 + second;
      if (column >= shape.columns) continue;
      const i64 at = source.column(column, column - column0);
#pragma unroll
      for (u32 i = 0; i < 2; i++) {
#pragma unroll
        for (u32 below = 0; below < 2; below++) {
          const u32 row = row0 + own_row + 16 * i + lane / 4 + 8 * below;
          if (row >= shape.rows) continue;
          const float sum = sums[i][j].of[2 * below + second];
          if (shape.splits == 1) source.store(row, column, at, sum);
          else static_cast<float*>(shape.parts)[part_at(shape, split, row, column)] = sum;
        }
      }
    }
  }
}
