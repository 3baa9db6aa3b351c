// What moves elements without looking at them, and matrices by where an element stands to the diagonal. Ops that copy
// blocks use the copies of `cast.cu`.
#include "elementwise.cuh"

REGISTER(cat, "Li>T", cat, ALL)
REGISTER(constant_pad, "TIs>T", constant_pad, ALL)
REGISTER(flip, "TI>T", flip, ALL)
REGISTER(roll, "TII>T", roll, ALL)
REGISTER(repeat, "TI>T", repeat, ALL)

// The dimensions are the output's, with the strides of output and input, and of the numbers of row and column.
struct Triangle {
  void* out;
  Operand in;
  u64 one;
  i64 diagonal;
  i64 row, column;
  u64 count;
  Dims<4> dims;
};
enum Part { LOWER, UPPER, DIAGONAL };
template <class T, Part PART>
DEV void part_of(const Triangle& p) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[4];
  p.dims.offsets((u32)at, offset);
  const i64 right = offset[3] + p.column - offset[2] - p.row;
  T* out = static_cast<T*>(p.out) + offset[0];
  if constexpr (PART == DIAGONAL) *out = right == 0 ? (T)p.one : T(0);
  else *out = (PART == LOWER ? right <= p.diagonal : right >= p.diagonal) ? read<T>(p.in, offset[1]) : T(0);
}
#define TRIANGLE(bits, T, name)                               \
  KERNEL(tril_##bits, Triangle) { part_of<T, LOWER>(p); }     \
  KERNEL(triu_##bits, Triangle) { part_of<T, UPPER>(p); }     \
  KERNEL(eye_##bits, Triangle) { part_of<T, DIAGONAL>(p); }
BITS(TRIANGLE, )
REGISTER(tril, "Ti>T", triangle, ALL)
REGISTER(triu, "Ti>T", triangle, ALL)
REGISTER(eye, "T>T", eye, ALL)

// The dimensions are the output's, with the strides of output and index, and of the class's number.
struct OneHot {
  i64* out;
  Operand index;
  i64 first;
  u64 count;
  Dims<3> dims;
};
KERNEL(one_hot_i64, OneHot) {
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[3];
  p.dims.offsets((u32)at, offset);
  p.out[offset[0]] = read<i64>(p.index, offset[1]) == offset[2] + p.first;
}
#define I64(M, x) M(i64, i64, x)
REGISTER(one_hot, "Ti>T", one_hot, I64)
