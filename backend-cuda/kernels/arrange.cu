// Ops that only move elements, implemented with the copies of `cast.cu`, and `one_hot`.
#include "elementwise.cuh"

REGISTER(cat, "Li>T", cat, ALL)
REGISTER(constant_pad, "TIs>T", constant_pad, ALL)
REGISTER(flip, "TI>T", flip, ALL)
REGISTER(roll, "TII>T", roll, ALL)
REGISTER(repeat, "TI>T", repeat, ALL)

// The dimensions are those of the output, with the strides of output and index, and the class number as third operand.
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
