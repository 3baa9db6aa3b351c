// Matrices by where an element stands to the diagonal.
#include "elementwise.cuh"

// The last two of the four operands of `dims` are no memory: their offsets are the row and the column.
struct Triangle {
  Operand out;
  Operand in;
  u64 count;
  // What is kept: 0 for at most this many columns right of the diagonal, 1 for at least so many, 2 for the diagonal alone.
  u64 kept;
  i64 diagonal;
  // Where rows and columns begin.
  i64 row, column;
  Dims<4> dims;
};

template <class T>
DEV void triangle(const Triangle& p) {
  const u64 number = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (number >= p.count) return;
  i64 at[4];
  p.dims.offsets((u32)number, at);
  const i64 right = p.column + at[3] - p.row - at[2];
  const bool kept = p.kept == 0 ? right <= p.diagonal : p.kept == 1 ? right >= p.diagonal : right == p.diagonal;
  write<T>(p.out, at[0], kept ? read<T>(p.in, at[1]) : T(0));
}

#define TRIANGLE(bits, T, name) KERNEL(name##_##bits, Triangle) { triangle<T>(p); }
BITS(TRIANGLE, triangle)
REGISTER(tril, "Ti>T", lower, ALL)
REGISTER(triu, "Ti>T", upper, ALL)
REGISTER(eye, "T>T", diagonal, ALL)
