// Matrices whose elements depend on their position relative to the diagonal.
#include "elementwise.cuh"

// The last two of the four operands of `dims` are virtual: their offsets are the row and the column.
struct Triangle {
  Operand out;
  Operand in;
  u64 count;
  // The part that is preserved: 0 for columns at most this far right of the diagonal, 1 for columns at least this far, 2
  // for the diagonal alone.
  u64 kept;
  i64 diagonal;
  // The first row and column.
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
