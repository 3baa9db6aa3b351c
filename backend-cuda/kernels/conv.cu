// Convolutions and their gradients by implicit GEMM: one operand of the matrix product is gathered from an image. All three
// use the same kernel, since the image element that a product reads is a sum of the offset of its column and the offset of
// its reduction index, in each dimension.
#include "conv.cuh"

// The gathered operand stored as a matrix (im2col), for products by a library. A block has a range of columns, and the
// blocks along y split the reduction dimension.
struct Lowering {
  Convolution convolution;
  void* to;
  u32 columns, terms;
  // Whether the reduction dimension is contiguous in memory, otherwise the columns are; and whether it is read in pieces of
  // 16 bytes.
  u32 by_term, pieces;
};

constexpr u32 LOWERED_DEPTH = 32, LOWERED_THREADS = 128;

template <class T>
DEV void lower(const Lowering& p) {
  constexpr u32 V = Piece<T>::count;
  Gathered<T> source(p.convolution);
  const u32 column0 = blockIdx.x * TILE, step = gridDim.y * LOWERED_DEPTH;
  T* to = static_cast<T*>(p.to);
  source.template open<LOWERED_DEPTH>(column0, p.columns);
  source.template step_to<LOWERED_DEPTH>(blockIdx.y * LOWERED_DEPTH, p.terms, 0);
  __syncthreads();
  u32 stage = 0;
#pragma unroll 1
  for (u32 first = blockIdx.y * LOWERED_DEPTH; first < p.terms; first += step, stage ^= 1) {
    source.template step_to<LOWERED_DEPTH>(first + step, p.terms, stage ^ 1);
    const u32 kept = stage * LOWERED_DEPTH;
    if (p.pieces) {
      const Piece<T> none{};
#pragma unroll
      for (u32 i = 0; i < TILE * LOWERED_DEPTH / V / LOWERED_THREADS; i++) {
        const u32 at = i * LOWERED_THREADS + threadIdx.x;
        const u32 k = at % (LOWERED_DEPTH / V) * V, column = at / (LOWERED_DEPTH / V);
        if (column0 + column >= p.columns || first + k >= p.terms) continue;
        bool there = true;
        const T* from = source.right_at(first + k, column0 + column, there, kept + k, column);
        *reinterpret_cast<Piece<T>*>(to + (u64)(column0 + column) * p.terms + first + k) =
            there ? *reinterpret_cast<const Piece<T>*>(from) : none;
      }
    } else {
      constexpr u32 GROUP = 8;
#pragma unroll 1
      for (u32 begin = 0; begin < TILE * LOWERED_DEPTH / LOWERED_THREADS; begin += GROUP) {
        T own[GROUP];
        u64 place[GROUP];
#pragma unroll
        for (u32 i = 0; i < GROUP; i++) {
          const u32 at = (begin + i) * LOWERED_THREADS + threadIdx.x;
          const u32 k = p.by_term ? at % LOWERED_DEPTH : at / TILE, column = p.by_term ? at / LOWERED_DEPTH : at % TILE;
          place[i] = p.by_term ? (u64)(column0 + column) * p.terms + first + k : (u64)(first + k) * p.columns + column0 + column;
          if (column0 + column >= p.columns || first + k >= p.terms) {
            place[i] = ~(u64)0;
            continue;
          }
          bool there = true;
          const T* from = source.right_at(first + k, column0 + column, there, kept + k, column);
          own[i] = there ? *from : Element<T>::narrow(Wide<T>(0));
        }
#pragma unroll
        for (u32 i = 0; i < GROUP; i++) {
          if (place[i] != ~(u64)0) to[place[i]] = own[i];
        }
      }
    }
    __syncthreads();
  }
}

#define CONVOLUTION(name, signature, host, dtypes) dtypes(CONVOLUTION_ENTRIES, name)
#define CONVOLUTION_ENTRIES(dtype, T, name)                                                             \
  KERNEL(name##_##dtype##_tile, Convolution) { multiply(Gathered<T>{p}, p.shape); }                     \
  KERNEL(name##_##dtype##_finish, Convolution) { add_parts(Gathered<T>{p}, p.shape); }                  \
  KERNEL(name##_##dtype##_lower, Lowering) { lower<T>(p); }

CONVOLUTION(conv, "TTOIIIi>T", conv, FLOATS)
REGISTER(conv_input_grad, "TTIIIIi>T", conv_input_grad, FLOATS)
REGISTER(conv_weight_grad, "TTIIIIi>T", conv_weight_grad, FLOATS)
