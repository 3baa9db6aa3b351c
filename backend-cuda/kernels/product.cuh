// The operands of a product of matrices, or of batches of them, of any strides.
#pragma once
#include "tile.cuh"

struct Side {
  void* data;
  i64 batch, row, column;
};

struct Product {
  Side out, left, right, input;
  // The factors of the product and of the input; the input is null if it is absent.
  u64 alpha, beta;
  Shape shape;
};

template <class T>
struct Matrices {
  typedef Wide<T> Acc;
  const Product& p;
  static const bool keeps = false;
  template <u32 DEPTH>
  METHOD void open(u32, u32) {}
  template <u32 DEPTH>
  METHOD void step_to(u32, u32, u32) {}
  METHOD static T* at(const Side& side, u32 row, u32 column) {
    return static_cast<T*>(side.data) + blockIdx.y * side.batch + row * side.row + column * side.column;
  }
  METHOD const T* left_begin() const { return at(p.left, 0, 0); }
  METHOD const T* left_at(u32 row, u32 k, u32) const { return at(p.left, row, k); }
  METHOD const T* right_at(u32 k, u32 column, bool&, u32, u32) const { return at(p.right, k, column); }
  METHOD const T* right_begin() const { return at(p.right, 0, 0); }
  METHOD Acc left(u32 row, u32 k, u32) const { return Element<T>::widen(*at(p.left, row, k)); }
  METHOD Acc right(u32 k, u32 column, u32, u32) const { return Element<T>::widen(*at(p.right, k, column)); }
  METHOD i64 column(u32 column, u32) const { return column * p.out.column; }
  METHOD i64 column_alone(u32 column) const { return column * p.out.column; }
  METHOD void store(u32 row, u32 column, i64 place, Acc sum) const {
    Acc made = times(sum, Immediate<Acc>::of(p.alpha));
    if (p.input.data != nullptr) {
      made = fused(Element<T>::widen(*at(p.input, row, column)), Immediate<Acc>::of(p.beta), made);
    }
    at(p.out, row, 0)[place] = Element<T>::narrow(made);
  }
};
