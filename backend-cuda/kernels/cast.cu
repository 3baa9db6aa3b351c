// Copies with any strides, casts between any two dtypes, and generated values.
#include "elementwise.cuh"

// A copy within one dtype moves elements by size alone.
FUNCTION(copy, 1, W, (W x), x)
#define COPY_ENTRIES(bits, T, name) PACKED_ENTRIES(name##_##bits, 2, name##_function<T>, T, T, Absent, Absent)
BITS(COPY_ENTRIES, copy)

// A transposed copy: input and output are dense along two different dimensions (columns and rows). A block copies a square
// of them through shared memory, so that reads and writes are coalesced.
struct Turn {
  void* out;
  const void* in;
  u32 rows, columns;
  // The input's row stride and the output's column stride.
  i64 in_step, out_step;
  // The number of squares along the columns, and in total, of one matrix.
  u32 across, squares;
  // The other dimensions, with the strides of output and input.
  Dims<2> matrices;
};

constexpr u32 SQUARE = 64, TURN_THREADS = 256;

template <class T>
DEV void turn(const Turn& p) {
  // The row pitch is an odd number of banks, so that neither rows nor columns have bank conflicts.
  constexpr u32 WIDTH = SQUARE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1), STEP = TURN_THREADS / SQUARE, EACH = SQUARE / STEP;
  SHARED(T, square, SQUARE * WIDTH);
  const u32 matrix = blockIdx.x / p.squares, number = blockIdx.x % p.squares;
  const u32 row = number / p.across * SQUARE, column = number % p.across * SQUARE;
  const u32 fast = threadIdx.x % SQUARE, slow = threadIdx.x / SQUARE;
  i64 at[2];
  p.matrices.offsets(matrix, at);
  const T* in = static_cast<const T*>(p.in) + at[1];
  T* out = static_cast<T*>(p.out) + at[0];
  T own[EACH];
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const u32 r = row + slow + i * STEP, c = column + fast;
    own[i] = r < p.rows && c < p.columns ? in[r * p.in_step + c] : T(0);
  }
#pragma unroll
  for (u32 i = 0; i < EACH; i++) square[(slow + i * STEP) * WIDTH + fast] = own[i];
  __syncthreads();
#pragma unroll
  for (u32 i = 0; i < EACH; i++) {
    const u32 r = row + fast, c = column + slow + i * STEP;
    if (r < p.rows && c < p.columns) out[c * p.out_step + r] = square[fast * WIDTH + slow + i * STEP];
  }
}

#define TURN(bits, T, name) KERNEL(name##_##bits, Turn) { turn<T>(p); }
BITS(TURN, turn)

REGISTER(clone, "TS>T", cast_first, ALL)
REGISTER(to_dtype, "Td>T", cast_first, ALL)
REGISTER(copy, "TT>T", cast_second, ALL)
REGISTER(fill, "Ts>T", fill, ALL)

// Casts a float to an integer: rounds towards zero, saturates to the range, and maps NaN to 0. Integers wrap.
template <class To, class From>
DEV To converted(From x) {
  if constexpr (Kind<From>::real && !Kind<To>::real) {
    constexpr int bits = sizeof(To) * 8;
    constexpr To low = Kind<To>::has_sign ? (To)((u64)1 << (bits - 1)) : To(0);
    constexpr To high = (To)~low;
    // The exclusive bounds of the integer type are powers of two, which are exact.
    constexpr From above = (From)((u64)1 << (bits - 2)) * (Kind<To>::has_sign ? From(2) : From(4));
    if (x != x) return To(0);
    if (x >= above) return high;
    if (Kind<To>::has_sign ? x < -above : x <= From(0)) return low;
    return (To)x;
  } else {
    return (To)x;
  }
}

template <class From, class To>
struct Cast {
  static const int inputs = 1;
  METHOD explicit Cast(const u64 (&)[3]) {}
  METHOD To operator()(From x) const {
    if constexpr (sizeof(To) == 1 && !Kind<To>::real && (To)2 == (To)1) return x != From(0);
    else return converted<To>(x);
  }
};

// Casts from each dtype to every other one; a cast to the same dtype is a copy.
#define FROM_EACH(M) \
  M(f16, f16) M(bf16, bf16) M(f32, float) M(f64, double) M(i8, i8) M(i16, i16) M(i32, i32) M(i64, i64) M(u8, u8) \
  M(u16, u16) M(u32, u32) M(u64, u64) M(bool, bool)
#define PAIR(dtype, T, From) \
  ENTRIES(cast_##From##_##dtype, 2, Cast<Wide<From##_t>, Wide<T>>, T, From##_t, Absent, Absent)
typedef f16 f16_t;
typedef bf16 bf16_t;
typedef float f32_t;
typedef double f64_t;
typedef i8 i8_t;
typedef i16 i16_t;
typedef i32 i32_t;
typedef i64 i64_t;
typedef u8 u8_t;
typedef u16 u16_t;
typedef u32 u32_t;
typedef u64 u64_t;
typedef bool bool_t;
#define PAIRS(From, T) ALL(PAIR, From)
FROM_EACH(PAIRS)

// Evenly spaced values, by the row-major index of the element. Floats are computed in f64, integers modulo 2^64.
struct Line {
  void* data;
  u64 first;
  u64 last;
  double start, step, end;
  i64 whole_start, whole_step;
  u64 count;
  Dims<2> dims;
};

template <class T, class From>
DEV T element_of(From x) {
  return Element<T>::narrow(converted<Wide<T>>(x));
}

struct Arange {
  template <class T>
  METHOD static T at(const Line& p, u64 i) {
    if constexpr (Kind<Wide<T>>::real) return element_of<T>(p.start + (double)i * p.step);
    else return (T)((u64)p.whole_start + (u64)p.whole_step * i);
  }
};

// Computed from the nearer end, so that both ends are exact.
struct Linspace {
  template <class T>
  METHOD static T at(const Line& p, u64 i) {
    const bool near = i <= p.last / 2;
    return element_of<T>(near ? p.start + (double)i * p.step : p.end - (double)(p.last - i) * p.step);
  }
};

template <class T, class Make>
DEV void along(const Line& p) {
  const u64 number = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (number >= p.count) return;
  i64 offset[2];
  p.dims.offsets((u32)number, offset);
  static_cast<T*>(p.data)[offset[1]] = Make::template at<T>(p, p.first + (u64)offset[0]);
}

#define ARANGE(dtype, T, name) KERNEL(name##_##dtype, Line) { along<T, Arange>(p); }
NUMBERS(ARANGE, arange)
REGISTER(arange, "Tss>T", arange, NUMBERS)

#define LINSPACE(dtype, T, name) KERNEL(name##_##dtype, Line) { along<T, Linspace>(p); }
NUMBERS(LINSPACE, linspace)
REGISTER(linspace, "Tff>T", linspace, NUMBERS)
