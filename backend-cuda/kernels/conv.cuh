// What a convolution or a gradient of one is a product of.
#pragma once
#include "tile.cuh"

// Of the image, for each spatial dimension: how far the places are moved, what they are divided by, since a gradient has
// an element at each stride only, the size, and the stride of the elements.
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
  // From a group to the next, and from a row to the next.
  i64 out_group, left_group, image_group, bias_group;
  i64 out_row, left_row, bias_row;
  Axis axis[3];
  // Of the columns: where the result lies, where the image's sample or channel does, and the places.
  Dims<5> columns;
  // Of the terms: where the left operand's element lies, and as above.
  Dims<5> terms;
  Shape shape;
};

// As `Dims::offsets`, in a loop that stays one: it stands at several places of a kernel.
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

template <class T>
struct Gathered {
  typedef Wide<T> Acc;
  const Convolution& p;
  METHOD const T* left_at(u32 row, u32 k) const {
    i64 term[5];
    walk(p.terms, k, term);
    return static_cast<const T*>(p.left) + blockIdx.y * p.left_group + row * p.left_row + term[0];
  }
  METHOD Acc left(u32 row, u32 k) const { return Element<T>::widen(*left_at(row, k)); }
  METHOD const T* right_begin() const { return static_cast<const T*>(p.image); }
  // Where the image's element lies, if it is there.
  METHOD const T* right_at(u32 k, u32 column, bool& there) const {
    i64 of_column[5], term[5];
    walk(p.columns, column, of_column);
    walk(p.terms, k, term);
    i64 at = blockIdx.y * p.image_group + of_column[1] + term[1];
#pragma unroll
    for (u32 d = 0; d < 3; d++) {
      const Axis& axis = p.axis[d];
      const i64 place = of_column[2 + d] + term[2 + d] + axis.shift;
      // A place before the image is a huge one without its sign.
      if ((u64)place > 0x7fffffff) return there = false, nullptr;
      const u32 own = axis.step.quotient((u32)place);
      if (own >= axis.size || own * axis.step.value != (u32)place) return there = false, nullptr;
      at += own * axis.stride;
    }
    return static_cast<const T*>(p.image) + at;
  }
  METHOD Acc right(u32 k, u32 column) const {
    bool there = true;
    const T* at = right_at(k, column, there);
    return there ? Element<T>::widen(*at) : Acc(0);
  }
  METHOD i64 column(u32 column) const {
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
