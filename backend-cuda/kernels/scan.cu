// Running sums and products along a line. Long lines are cut into parts by sizes alone: the elements of a part are put
// together, and then gone through again from what the parts before it make. One thread has a part; several have it together
// where elements that are neighbours in memory are added up. f32 is accumulated in f64, f16 and bf16 in f32.
#include "elementwise.cuh"

// The dimensions are those of the lines, with the strides of output and input; `along` is those along a line, below 0 where
// it is gone through from its end. Of neighbours, `lanes` threads, a power of two, have a part together; with `only_parts` they
// write its sum alone, for the parts behind it.
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
  u32 lanes;
  u32 only_parts;
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

// Threads of a block that goes through lines of neighbours, and those of a line at least.
constexpr u32 LINE_THREADS = 256;
constexpr u32 LINE_LANES = 4;

// A thread's elements, moved at once where they are aligned and all there.
template <class T>
struct Step {
  static const int V = 16 / sizeof(T);
  Pack<T, V> pack;
  // Of the `rest` elements from an address on, upwards or downwards in memory; `none` stands for those behind.
  METHOD void load(const T* from, i64 along, i64 rest, bool aligned, T none) {
    if (aligned && rest >= V) {
      const Pack<T, V> there = *reinterpret_cast<const Pack<T, V>*>(along < 0 ? from - (V - 1) : from);
#pragma unroll
      for (int k = 0; k < V; k++) pack.at[k] = along < 0 ? there.at[V - 1 - k] : there.at[k];
    } else {
#pragma unroll
      for (int k = 0; k < V; k++) pack.at[k] = k < rest ? from[k * along] : none;
    }
  }
  METHOD void store(T* to, i64 along, i64 rest, bool aligned) const {
    if (aligned && rest >= V) {
      Pack<T, V> made;
#pragma unroll
      for (int k = 0; k < V; k++) made.at[k] = along < 0 ? pack.at[V - 1 - k] : pack.at[k];
      *reinterpret_cast<Pack<T, V>*>(along < 0 ? to - (V - 1) : to) = made;
    } else {
#pragma unroll
      for (int k = 0; k < V; k++) {
        if (k < rest) to[k * along] = pack.at[k];
      }
    }
  }
  // Whether the packs from an address on are aligned.
  METHOD static bool aligned(const T* at, i64 along) { return (u64)(along < 0 ? at - (V - 1) : at) % 16 == 0; }
};

// Tile by tile: each thread has a few elements that follow each other. Those of a warp learn what is before them by shuffles,
// and of the warps before by their totals.
template <class T>
DEV void lines(const Scan& p) {
  typedef typename Running<T>::Acc Acc;
  typedef Join<Acc, true> J;
  constexpr int V = Step<T>::V;
  SHARED(Acc, shared, 2 * LINE_THREADS / LINE_LANES);
  const u32 width = p.lanes < 32 ? p.lanes : 32, own = threadIdx.x % p.lanes, lane = own % width;
  const u32 group = threadIdx.x / width, first_group = (threadIdx.x - own) / width, groups = p.lanes / width;
  const u64 at = (u64)blockIdx.x * (LINE_THREADS / p.lanes) + threadIdx.x / p.lanes;
  // All threads of a block meet at barriers, so that one without a line goes on with no elements.
  const bool has_line = at < p.count * p.parts_count;
  const u64 line = has_line ? at / p.parts_count : 0, part = has_line ? at % p.parts_count : 0;
  i64 offset[2];
  p.dims.offsets((u32)line, offset);
  const i64 begin = (i64)(part * p.part), left = (i64)p.length - begin;
  i64 rest = has_line ? (left < (i64)p.part ? left : (i64)p.part) - own * V : 0;
  T* to = static_cast<T*>(p.out) + offset[0] + (begin + own * V) * p.along[0];
  const T* from = static_cast<const T*>(p.in.data) + offset[1] + (begin + own * V) * p.along[1];
  const bool to_aligned = Step<T>::aligned(to, p.along[0]), from_aligned = Step<T>::aligned(from, p.along[1]);
  Acc* parts = static_cast<Acc*>(p.parts) + (p.first + line) * p.parts_count;

  Acc carried = J::start();
  if (p.parts_count > 1 && !p.only_parts) {
#pragma unroll 1
    for (u64 i = lane; i < part; i += 32) carried = J::of(carried, parts[i]);
#pragma unroll
    for (int bits = 16; bits > 0; bits >>= 1) carried = J::of(carried, __shfl_xor_sync(~0u, carried, bits));
  }
  const T none = Element<T>::narrow((Wide<T>)J::start());
  const i64 tile = p.lanes * V;
  Acc* totals = shared;
  Step<T> step, next;
  // What a tile needs is on its way while the one before is worked on.
  for (i64 gone = -tile; gone < (i64)p.part; gone += tile) {
    step = next;
    next.load(from, p.along[1], rest, from_aligned, none);
    from += tile * p.along[1];
    rest -= tile;
    if (gone < 0) continue;

    Acc sum = J::start();
#pragma unroll
    for (int k = 0; k < V; k++) sum = J::of(sum, (Acc)Element<T>::widen(step.pack.at[k]));
#pragma unroll
    for (u32 far = 1; far < 32; far *= 2) {
      const Acc other = __shfl_up_sync(~0u, sum, far);
      if (lane >= far) sum = J::of(other, sum);
    }
    Acc before = __shfl_up_sync(~0u, sum, 1);
    if (lane == 0) before = J::start();
    if (lane == width - 1) totals[group] = sum;
    __syncthreads();
    Acc start = carried;
#pragma unroll 1
    for (u32 i = 0; i < groups; i++) {
      if (first_group + i == group) start = carried;
      carried = J::of(carried, totals[first_group + i]);
    }
    if (!p.only_parts) {
      before = J::of(start, before);
#pragma unroll
      for (int k = 0; k < V; k++) {
        before = J::of(before, (Acc)Element<T>::widen(step.pack.at[k]));
        step.pack.at[k] = Element<T>::narrow((Wide<T>)before);
      }
      step.store(to, p.along[0], rest + 2 * tile, to_aligned);
      to += tile * p.along[0];
    }
    // Some thread may still have to read the totals: those of the next tile stand beside them.
    totals = totals == shared ? shared + LINE_THREADS / LINE_LANES : shared;
  }
  if (p.only_parts && has_line && own == 0) parts[part] = carried;
}
#define RUNNING(M, x) FLOATS(M, x) M(i64, i64, x)
#define SCAN(dtype, T, name)                                               \
  KERNEL(cumsum_##dtype##_parts, Scan) { scan<T, true, false>(p); }        \
  KERNEL(cumsum_##dtype##_write, Scan) { scan<T, true, true>(p); }         \
  KERNEL(cumsum_##dtype##_lines, Scan) { lines<T>(p); }                    \
  KERNEL(cumprod_##dtype##_parts, Scan) { scan<T, false, false>(p); }      \
  KERNEL(cumprod_##dtype##_write, Scan) { scan<T, false, true>(p); }
RUNNING(SCAN, )
REGISTER(cumsum, "Tib>T", cumsum, RUNNING)
REGISTER(cumprod, "Ti>T", cumprod, RUNNING)
