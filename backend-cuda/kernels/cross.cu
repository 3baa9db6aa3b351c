// Vector products, one per thread.
#include "elementwise.cuh"

// The dimensions are those of the vectors; `step` are the strides between the elements of a vector, of output and operands.
struct Cross {
  void* out;
  Operand a, b;
  i64 step[3];
  u64 count;
  Dims<3> dims;
};

template <class T>
DEV void cross(const Cross& p) {
  typedef Wide<T> W;
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count) return;
  i64 offset[3];
  p.dims.offsets((u32)at, offset);
  W a[3], b[3];
#pragma unroll
  for (int k = 0; k < 3; k++) {
    a[k] = read<T>(p.a, offset[1] + k * p.step[1]);
    b[k] = read<T>(p.b, offset[2] + k * p.step[2]);
  }
  T* out = static_cast<T*>(p.out) + offset[0];
#pragma unroll
  for (int k = 0; k < 3; k++) {
    const int i = (k + 1) % 3, j = (k + 2) % 3;
    out[k * p.step[0]] = Element<T>::narrow(minus(times(a[i], b[j]), times(a[j], b[i])));
  }
}

#define CROSS(name, signature, host, dtypes) dtypes(CROSS_ENTRIES, name)
#define CROSS_ENTRIES(dtype, T, name) KERNEL(name##_##dtype, Cross) { cross<T>(p); }
CROSS(cross, "TTi>T", cross, NUMBERS)
