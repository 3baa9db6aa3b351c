// Scans along a line: sums, products, logarithms of sums, and extremes with their indices. Long lines are split into parts
// by sizes alone: the first pass reduces each part, and the second pass scans it, starting at the result of the previous
// parts. One thread processes a part, or several threads if the line is contiguous in memory. f32 is accumulated in f64,
// f16 and bf16 in f32.
#include "elementwise.cuh"

// The dimensions are those of the lines, with the strides of output, indices and input; `along` are the strides along a
// line, negative for a reverse scan. For contiguous lines, `lanes` threads, a power of two, share a part; with `only_parts`
// they write the reduction of the part alone, for later parts.
struct Scan {
  void* out;
  i64* places;
  Operand in;
  void* parts;
  i64 along[3];
  u64 length;
  u64 part;
  u64 parts_count;
  u64 first;
  u64 count;
  u32 lanes;
  u32 only_parts;
  // For extremes: the kind of elements, whether the minimum is searched, the bits of infinity and of the sign, and the
  // bytes of an element.
  u32 kind;
  u32 least;
  u64 infinite;
  u64 sign;
  u64 bytes;
  Dims<3> dims;
};

template <class T>
struct Running {
  typedef Wide<T> Acc;
};
template <>
struct Running<float> {
  typedef double Acc;
};

// A thread's elements, moved as a pack if they are aligned and complete.
template <class T, int V>
struct Step {
  Pack<T, V> pack;
  // Loads up to `rest` elements from an address, in ascending or descending memory order; missing ones are `none`.
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
  // Whether the packs that start at an address are aligned.
  METHOD static bool aligned(const T* at, i64 along) { return (u64)(along < 0 ? at - (V - 1) : at) % sizeof(Pack<T, V>) == 0; }
};

// Writes a thread's results to the output alone, starting at an address.
template <class M, class T>
struct Results {
  static const int V = 16 / sizeof(T);
  T* to;
  i64 along;
  bool aligned;
  Step<T, V> step;
  METHOD Results(const Scan& p, const i64 (&offset)[3], i64 first) : along(p.along[0]) {
    to = static_cast<T*>(p.out) + offset[0] + first * along;
    aligned = Step<T, V>::aligned(to, along);
  }
  METHOD void put(int k, bool, typename M::Acc sum) { step.pack.at[k] = M::template result<T>(sum); }
  METHOD void store(i64 rest) const { step.store(to, along, rest, aligned); }
  METHOD void move(i64 elements) { to += elements * along; }
};

// The operation of a scan: `load` converts an element and its number to an accumulator, `of` combines two, `write` converts
// to an element of the output. `none` is a neutral element.
// the output. `none` is an element that changes nothing.
template <class T, bool SUM>
struct Total {
  typedef T In;
  typedef typename Running<T>::Acc Acc;
  typedef Results<Total, T> Made;
  // 0 + -0 is 0, so only -0 is neutral.
  METHOD static Acc start() { return SUM ? (Kind<Acc>::real ? Acc(-0.0) : Acc(0)) : Acc(1); }
  METHOD static Acc of(Acc a, Acc b) { return SUM ? plus(a, b) : times(a, b); }
  METHOD static T none() { return Element<T>::narrow((Wide<T>)start()); }
  METHOD static Wide<T> read_at(const Scan& p, i64 at) { return read<T>(p.in, at); }
  METHOD static Acc load(const Scan&, Wide<T> x, i64) { return (Acc)x; }
  template <class O>
  METHOD static O result(Acc sum) { return Element<O>::narrow((Wide<O>)sum); }
  METHOD static void write(const Scan& p, const i64 (&offset)[3], i64 i, Acc sum) {
    static_cast<T*>(p.out)[offset[0] + i * p.along[0]] = result<T>(sum);
  }
};

// The logarithm of a sum: the maximum, and the sum of exp(x - max).
template <class W>
struct Powers {
  W largest, sum;
};
// One function per type, since they are long.
template <class W>
CALLED Powers<W> joined(Powers<W> a, Powers<W> b) {
  const W largest = larger(a.largest, b.largest);
  const bool is_a = a.largest == largest;
  const W less = is_a ? b.largest : a.largest;
  // Equality is tested first, as the difference of equal infinities is NaN.
  const W share = less == largest ? W(1) : exp_(less - largest);
  return Powers<W>{largest, is_a ? a.sum + b.sum * share : a.sum * share + b.sum};
}
template <class W>
CALLED W logarithm(Powers<W> of) { return of.largest + log_(of.sum); }
template <class T>
struct LogSum {
  typedef T In;
  typedef typename Running<T>::Acc W;
  typedef Powers<W> Acc;
  typedef Results<LogSum, T> Made;
  METHOD static W infinite() { return W(float_of(0x7f800000)); }
  METHOD static Acc start() { return Acc{-infinite(), W(0)}; }
  METHOD static Acc of(Acc a, Acc b) { return joined(a, b); }
  METHOD static T none() { return Element<T>::narrow((Wide<T>)-infinite()); }
  METHOD static Wide<T> read_at(const Scan& p, i64 at) { return read<T>(p.in, at); }
  METHOD static Acc load(const Scan&, Wide<T> x, i64) { return Acc{(W)x, W(1)}; }
  template <class O>
  METHOD static O result(Acc sum) { return Element<O>::narrow((Wide<O>)logarithm(sum)); }
  METHOD static void write(const Scan& p, const i64 (&offset)[3], i64 i, Acc sum) {
    static_cast<T*>(p.out)[offset[0] + i * p.along[0]] = result<T>(sum);
  }
};

// The extreme and its index, the last of equal ones; NaN is more extreme than any other value. Elements of all dtypes are
// compared by sort keys; a negative index marks an empty scan.
// by keys; a place below 0 is no element.
enum Elements : u32 { UNSIGNED_ONES, SIGNED_ONES, FLOATING_ONES };
struct Best {
  i64 key, place;
};
DEV u64 bits_at(const Scan& p, i64 at) {
  if (p.in.data == nullptr) return p.in.value;
  switch (p.bytes) {
    case 1: return static_cast<const u8*>(p.in.data)[at];
    case 2: return static_cast<const u16*>(p.in.data)[at];
    case 4: return static_cast<const u32*>(p.in.data)[at];
    default: return static_cast<const u64*>(p.in.data)[at];
  }
}
struct Extreme {
  typedef Best Acc;
  static const u64 HIGH = 1ull << 63;
  METHOD static Best start() { return Best{(i64)HIGH, -1}; }
  METHOD static Best of(Best a, Best b) { return b.key > a.key || (b.key == a.key && b.place > a.place) ? b : a; }
  METHOD static Best load(const Scan& p, u64 x, i64 place) {
    u64 key = x ^ HIGH;
    if (p.kind == SIGNED_ONES) key = (x ^ p.sign) - p.sign;
    if (p.kind == FLOATING_ONES) {
      const u64 size = x & (p.sign - 1);
      key = x & p.sign ? 0 - size : size;
      if (size > p.infinite) return Best{(i64)~HIGH, place};
    }
    return Best{(i64)(p.least ? ~key : key), place};
  }
};
template <class T>
struct ExtremeOf : Extreme {
  typedef T In;
  METHOD static T none() { return T(0); }
  struct Made {
    static const int V = sizeof(T) == 8 ? 2 : 4;
    const T* from;
    T* to;
    i64* places;
    i64 along[3];
    bool aligned, places_aligned;
    Step<T, V> values;
    Step<i64, V> found;
    METHOD Made(const Scan& p, const i64 (&offset)[3], i64 first) : along{p.along[0], p.along[1], p.along[2]} {
      from = static_cast<const T*>(p.in.data) + offset[2];
      to = static_cast<T*>(p.out) + offset[0] + first * along[0];
      places = p.places + offset[1] + first * along[1];
      aligned = Step<T, V>::aligned(to, along[0]);
      places_aligned = Step<i64, V>::aligned(places, along[1]);
    }
    METHOD void put(int k, bool is_there, Best best) {
      if (is_there) values.pack.at[k] = from[best.place * along[2]];
      found.pack.at[k] = best.place;
    }
    METHOD void store(i64 rest) const {
      values.store(to, along[0], rest, aligned);
      found.store(places, along[1], rest, places_aligned);
    }
    METHOD void move(i64 elements) {
      to += elements * along[0];
      places += elements * along[1];
    }
  };
};

struct AnyExtreme : Extreme {
  METHOD static u64 read_at(const Scan& p, i64 at) { return bits_at(p, at); }
  METHOD static void write(const Scan& p, const i64 (&offset)[3], i64 i, Best best) {
    const i64 to = offset[0] + i * p.along[0];
    const u64 value = bits_at(p, offset[2] + best.place * p.along[2]);
    switch (p.bytes) {
      case 1: static_cast<u8*>(p.out)[to] = (u8)value; break;
      case 2: static_cast<u16*>(p.out)[to] = (u16)value; break;
      case 4: static_cast<u32*>(p.out)[to] = (u32)value; break;
      default: static_cast<u64*>(p.out)[to] = value;
    }
    p.places[offset[1] + i * p.along[1]] = best.place;
  }
};

template <class A>
DEV A from_before(A own, u32 far) { return __shfl_up_sync(~0u, own, far); }
template <class W>
DEV Powers<W> from_before(Powers<W> own, u32 far) {
  return Powers<W>{from_before(own.largest, far), from_before(own.sum, far)};
}
DEV Best from_before(Best own, u32 far) { return Best{from_before(own.key, far), from_before(own.place, far)}; }
template <class A>
DEV A from_beside(A own, u32 bits) { return __shfl_xor_sync(~0u, own, bits); }
template <class W>
DEV Powers<W> from_beside(Powers<W> own, u32 bits) {
  return Powers<W>{from_beside(own.largest, bits), from_beside(own.sum, bits)};
}
DEV Best from_beside(Best own, u32 bits) { return Best{from_beside(own.key, bits), from_beside(own.place, bits)}; }

// Scans a part of each line, or reduces it if `parts` is to be written.
template <class M, bool WRITE>
DEV void scan(const Scan& p) {
  typedef typename M::Acc Acc;
  const u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= p.count * p.parts_count) return;
  // Neighbouring threads process neighbouring lines.
  const u64 line = at % p.count, part = at / p.count;
  i64 offset[3];
  p.dims.offsets((u32)line, offset);
  Acc* parts = static_cast<Acc*>(p.parts) + (p.first + line) * p.parts_count;
  Acc sum = M::start();
  if (WRITE) {
    for (u64 i = 0; i < part; i++) sum = M::of(sum, parts[i]);
  }
  const u64 begin = part * p.part, rest = p.length - begin, end = begin + (rest < p.part ? rest : p.part);
  for (u64 i = begin; i < end; i++) {
    sum = M::of(sum, M::load(p, M::read_at(p, offset[2] + (i64)i * p.along[2]), (i64)i));
    if (WRITE) M::write(p, offset, (i64)i, sum);
  }
  if (!WRITE) parts[part] = sum;
}

// The number of threads of a block for contiguous lines, and the minimum number of threads per line.
constexpr u32 LINE_THREADS = 256;
constexpr u32 LINE_LANES = 4;

// Tile by tile: each thread has a few consecutive elements. The prefix within a warp is computed by shuffles, and that of
// previous warps from their totals.
template <class M>
DEV void lines(const Scan& p) {
  typedef typename M::Acc Acc;
  typedef typename M::In T;
  constexpr int V = M::Made::V;
  SHARED(Acc, shared, 2 * LINE_THREADS / LINE_LANES);
  const u32 width = p.lanes < 32 ? p.lanes : 32, own = threadIdx.x % p.lanes, lane = own % width;
  const u32 group = threadIdx.x / width, first_group = (threadIdx.x - own) / width, groups = p.lanes / width;
  const u64 at = (u64)blockIdx.x * (LINE_THREADS / p.lanes) + threadIdx.x / p.lanes;
  // All threads of a block meet at barriers, so a thread without a line continues without elements.
  const bool has_line = at < p.count * p.parts_count;
  const u64 line = has_line ? at / p.parts_count : 0, part = has_line ? at % p.parts_count : 0;
  i64 offset[3];
  p.dims.offsets((u32)line, offset);
  const i64 begin = (i64)(part * p.part), left = (i64)p.length - begin;
  i64 rest = has_line ? (left < (i64)p.part ? left : (i64)p.part) - own * V : 0;
  const T* from = static_cast<const T*>(p.in.data) + offset[2] + (begin + own * V) * p.along[2];
  const bool from_aligned = Step<T, V>::aligned(from, p.along[2]);
  typename M::Made made(p, offset, begin + own * V);
  Acc* parts = static_cast<Acc*>(p.parts) + (p.first + line) * p.parts_count;

  Acc carried = M::start();
  if (p.parts_count > 1 && !p.only_parts) {
#pragma unroll 1
    for (u64 i = lane; i < part; i += 32) carried = M::of(carried, parts[i]);
#pragma unroll
    for (int bits = 16; bits > 0; bits >>= 1) carried = M::of(carried, from_beside(carried, bits));
  }
  const T none = M::none();
  const i64 tile = p.lanes * V;
  Acc* totals = shared;
  Step<T, V> step, next;
  // The next tile is loaded while the current one is processed.
  for (i64 gone = -tile; gone < (i64)p.part; gone += tile) {
    step = next;
    next.load(from, p.along[2], rest, from_aligned, none);
    from += tile * p.along[2];
    rest -= tile;
    if (gone < 0) continue;

    const i64 first = begin + own * V + gone, there = rest + 2 * tile;
    Acc sum = M::start(), each[V];
#pragma unroll
    for (int k = 0; k < V; k++) {
      each[k] = M::load(p, Element<T>::widen(step.pack.at[k]), k < there ? first + k : -1);
      sum = M::of(sum, each[k]);
    }
#pragma unroll
    for (u32 far = 1; far < 32; far *= 2) {
      const Acc other = from_before(sum, far);
      if (lane >= far) sum = M::of(other, sum);
    }
    Acc before = from_before(sum, 1);
    if (lane == 0) before = M::start();
    if (lane == width - 1) totals[group] = sum;
    __syncthreads();
    Acc start = carried;
#pragma unroll 1
    for (u32 i = 0; i < groups; i++) {
      if (first_group + i == group) start = carried;
      carried = M::of(carried, totals[first_group + i]);
    }
    if (!p.only_parts) {
      before = M::of(start, before);
#pragma unroll
      for (int k = 0; k < V; k++) {
        before = M::of(before, each[k]);
        made.put(k, k < there, before);
      }
      made.store(there);
      made.move(tile);
    }
    // Other threads may still read the totals: those of the next tile use separate memory.
    totals = totals == shared ? shared + LINE_THREADS / LINE_LANES : shared;
  }
  if (p.only_parts && has_line && own == 0) parts[part] = carried;
}

#define PARTS(name, dtype, ...)                                              \
  KERNEL(name##_##dtype##_parts, Scan) { scan<__VA_ARGS__, false>(p); }      \
  KERNEL(name##_##dtype##_write, Scan) { scan<__VA_ARGS__, true>(p); }
#define LINES(name, dtype, ...) \
  PARTS(name, dtype, __VA_ARGS__) KERNEL(name##_##dtype##_lines, Scan) { lines<__VA_ARGS__>(p); }
#define RUNNING(M, x) FLOATS(M, x) M(i64, i64, x)
#define SUMS(dtype, T, name) LINES(name, dtype, Total<T, true>)
#define PRODUCTS(dtype, T, name) PARTS(name, dtype, Total<T, false>)
#define LOG_SUMS(dtype, T, name) LINES(name, dtype, LogSum<T>)
#define EXTREMES(bits, T, name) KERNEL(name##_##bits##_lines, Scan) { lines<ExtremeOf<T>>(p); }
RUNNING(SUMS, cumsum)
RUNNING(PRODUCTS, cumprod)
FLOATS(LOG_SUMS, logcumsumexp)
BITS(EXTREMES, extremes)
PARTS(extremes, any, AnyExtreme)
REGISTER(cumsum, "Tib>T", cumsum, RUNNING)
REGISTER(cumprod, "Ti>T", cumprod, RUNNING)
REGISTER(logcumsumexp, "Ti>T", logcumsumexp, FLOATS)
REGISTER(cummax, "Ti>TT", extremes, NUMBERS)
REGISTER(cummin, "Ti>TT", extremes, NUMBERS)
