// The operands of a convolution or of one of its gradients.
#pragma once
#include "tile.cuh"

// A spatial dimension of the image: a position is shifted, then divided by `step` (only every stride-th position of a
// gradient has an element); with the size and the stride in elements.
struct Axis {
  i64 shift;
  Divisor step;
  u32 size;
  i64 stride;
};

struct Convolution {
  void* out;
  const void* left;
  const void* image;
  const void* bias;
  // The strides between groups, and between rows.
  i64 out_group, left_group, image_group, bias_group;
  i64 out_row, left_row, bias_row;
  Axis axis[3];
  // The first axis with more than one position.
  u32 first_axis;
  // The output columns: the offset in the output, the offset of the image's sample or channel, and the positions along the
  // three axes.
  Dims<5> columns;
  // The reduction dimension (k): the offset of the left operand's element, the image offset, and the positions, as above.
  Dims<5> terms;
  Shape shape;
};

// As `Dims::offsets`, in a loop that is not unrolled, since a kernel has several calls.
DEV void walk(const Dims<5>& dims, u32 at, i64 (&offset)[5]) {
#pragma unroll
  for (int k = 0; k < 5; k++) offset[k] = 0;
#pragma unroll 1
  for (u32 d = 0; d < dims.ndim; d++) {
    const u32 next = dims.size[d].quotient(at);
    const i64 index = at - next * dims.size[d].value;
    at = next;
#pragma unroll
    for (int k = 0; k < 5; k++) offset[k] += index * dims.stride[d][k];
  }
}

// Caches the offsets of a block's columns, and of the reduction indices of the current and the next step, in shared memory,
// so that each is computed once.
template <class T>
struct Gathered {
  typedef Wide<T> Acc;
  const Convolution& p;
  static const bool keeps = true;
  // For each column: the offset in the output, the offset of the image's sample or channel, and the positions, axis by
  // axis.
  i64 *out_of_column, *image_of_column;
  i32* place_of_column;
  // For each reduction index of two steps: the offset of the left operand's element, and the same image offsets.
  i64 *left_of_term, *image_of_term;
  i32* place_of_term;
  // The number of cached reduction indices per axis.
  u32 steps;
  METHOD explicit Gathered(const Convolution& p) : p(p) {}

  template <u32 DEPTH>
  METHOD void open(u32 column0, u32 columns) {
    SHARED(i64, of_columns, 2 * TILE);
    SHARED(i32, of_places, 3 * TILE);
    SHARED(i64, of_terms, 4 * DEPTH);
    SHARED(i32, of_steps, 6 * DEPTH);
    out_of_column = of_columns;
    image_of_column = of_columns + TILE;
    place_of_column = of_places;
    left_of_term = of_terms;
    image_of_term = of_terms + 2 * DEPTH;
    place_of_term = of_steps;
    steps = 2 * DEPTH;
    const u32 own = threadIdx.x;
    if (own >= TILE || column0 + own >= columns) return;
    i64 column[5];
    walk(p.columns, column0 + own, column);
    out_of_column[own] = column[0];
    image_of_column[own] = blockIdx.y * p.image_group + column[1];
#pragma unroll
    for (u32 d = 0; d < 3; d++) place_of_column[d * TILE + own] = (i32)(column[2 + d] + p.axis[d].shift);
  }
  // Computes the offsets of the reduction indices after `first`, by the last threads of the block.
  template <u32 DEPTH>
  METHOD void step_to(u32 first, u32 end, u32 stage) {
    const u32 own = blockDim.x - 1 - threadIdx.x;
    if (own >= DEPTH || first >= end || own >= end - first) return;
    i64 term[5];
    walk(p.terms, first + own, term);
    const u32 at = stage * DEPTH + own;
    left_of_term[at] = term[0];
    image_of_term[at] = term[1];
#pragma unroll
    for (u32 d = 0; d < 3; d++) place_of_term[d * 2 * DEPTH + at] = (i32)term[2 + d];
  }

  METHOD const T* left_begin() const { return static_cast<const T*>(p.left); }
  METHOD const T* left_at(u32 row, u32, u32 kept) const {
    return static_cast<const T*>(p.left) + blockIdx.y * p.left_group + row * p.left_row + left_of_term[kept];
  }
  METHOD Acc left(u32 row, u32 k, u32 kept) const { return Element<T>::widen(*left_at(row, k, kept)); }
  METHOD const T* right_begin() const { return static_cast<const T*>(p.image); }
  // The address of an image element; clears `there` if it is in the padding.
  METHOD const T* right_at(u32, u32, bool& there, u32 kept, u32 own) const {
    i64 at = image_of_column[own] + image_of_term[kept];
#pragma unroll
    for (u32 d = 0; d < 3; d++) {
      if (d < p.first_axis) continue;
      const Axis& axis = p.axis[d];
      const i32 place = place_of_column[d * TILE + own] + place_of_term[d * steps + kept];
      if (place < 0) return there = false, nullptr;
      const u32 index = axis.step.value == 1 ? (u32)place : axis.step.quotient((u32)place);
      if (index >= axis.size || index * axis.step.value != (u32)place) return there = false, nullptr;
      at += index * axis.stride;
    }
    return static_cast<const T*>(p.image) + at;
  }
  METHOD Acc right(u32 k, u32 column, u32 kept, u32 own) const {
    bool there = true;
    const T* at = right_at(k, column, there, kept, own);
    return there ? Element<T>::widen(*at) : Acc(0);
  }
  METHOD i64 column(u32, u32 own) const { return out_of_column[own]; }
  METHOD i64 column_alone(u32 column) const {
    i64 of_column[5];
    walk(p.columns, column, of_column);
    return of_column[0];
  }
  METHOD void store(u32 row, u32, i64 place, Acc sum) const {
    if (p.bias != nullptr) {
      const i64 at = blockIdx.y * p.bias_group + row * p.bias_row;
      sum = plus(sum, Element<T>::widen(static_cast<const T*>(p.bias)[at]));
    }
    static_cast<T*>(p.out)[blockIdx.y * p.out_group + row * p.out_row + place] = Element<T>::narrow(sum);
  }
};
