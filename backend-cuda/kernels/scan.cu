// Running sums and products along a line. A long line is cut into parts by its length alone: one thread puts the elements of
// a part together, and then goes through them again from what the parts before it make. f32 is accumulated in f64, f16 and
// bf16 in f32.
#include "elementwise.cuh"

// The dimensions are those of the lines, with the strides of output and input; `along` is those along a line, below 0 where
// it is gone through from its end.
struct Scan {
  void* out;
  Operand in;
  void* parts;
  i64 along[2];
  u64 length;
  u64 part;
  u64 parts_count;
  u64 first;
  u64 count;
  Dims<2> dims;
};

template <class T>
struct Running {
  typedef Wide<T> Acc;
};
template <>
struct Running<float> {
  typedef double Acc;
};
template <class Acc, bool SUM>
struct Join {
  // 0 + -0 is 0, so only -0 changes nothing.
  METHOD static Acc start() { return SUM ? (Kind<Acc>::real ? Acc(-0.0) : Acc(0)) : Acc(1); }
  METHOD static Acc of(Acc a, Acc b) { return SUM ? plus(a, b) : times(a, b); }
};

// Of a part of each line, or its last value where `parts` is to be written.
template <class T, bool SUM, bool WRITE>
DEV void scan(const Scan& p) {
  typedef typename Running<T>::Acc Acc;
  typedef Join<Acc, SUM> J;
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count * p.parts_count) return;
  // Threads side by side go along lines that lie side by side.
  const u64 line = at % p.count, part = at / p.count;
  i64 offset[2];
  p.dims.offsets((u32)line, offset);
  Acc* parts = static_cast<Acc*>(p.parts) + (p.first + line) * p.parts_count;
  Acc sum = J::start();
  if (WRITE) {
    for (u64 i = 0; i < part; i++) sum = J::of(sum, parts[i]);
  }
  const u64 begin = part * p.part, rest = p.length - begin, end = begin + (rest < p.part ? rest : p.part);
  for (u64 i = begin; i < end; i++) {
    sum = J::of(sum, (Acc)read<T>(p.in, offset[1] + (i64)i * p.along[1]));
    if (WRITE) static_cast<T*>(p.out)[offset[0] + (i64)i * p.along[0]] = Element<T>::narrow((Wide<T>)sum);
  }
  if (!WRITE) parts[part] = sum;
}
#define RUNNING(M, x) FLOATS(M, x) M(i64, i64, x)
#define SCAN(dtype, T, name)                                               \
  KERNEL(cumsum_##dtype##_parts, Scan) { scan<T, true, false>(p); }        \
  KERNEL(cumsum_##dtype##_write, Scan) { scan<T, true, true>(p); }         \
  KERNEL(cumprod_##dtype##_parts, Scan) { scan<T, false, false>(p); }      \
  KERNEL(cumprod_##dtype##_write, Scan) { scan<T, false, true>(p); }
RUNNING(SCAN, )
REGISTER(cumsum, "Tib>T", cumsum, RUNNING)
REGISTER(cumprod, "Ti>T", cumprod, RUNNING)
