// Random numbers as defined in `keyway_sdk::philox::element`: the same words on every device, for the elements in row-major
// order.
#include "elementwise.cuh"

// The dimensions are those of the output in row-major order, with the strides of output and input.
struct Draw {
  void* out;
  Operand in;
  u64 seed;
  u64 offset;
  // Two parameters of the op, as bits.
  u64 a, b;
  u64 first;
  u64 count;
  Dims<2> dims;
};

struct Words {
  u32 at[4];
};
// Philox4x32-10 (J. K. Salmon et al., SC 2011).
DEV Words words(u64 seed, u64 block) {
  u32 key0 = (u32)seed, key1 = (u32)(seed >> 32);
  u32 a = (u32)block, b = (u32)(block >> 32), c = 0, d = 0;
#pragma unroll 1
  for (int round = 0; round < 10; round++) {
    const u64 first = (u64)0xD2511F53u * a, second = (u64)0xCD9E8D57u * c;
    a = (u32)(second >> 32) ^ b ^ key0;
    b = (u32)second;
    c = (u32)(first >> 32) ^ d ^ key1;
    d = (u32)first;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return Words{{a, b, c, d}};
}

// The elements of one random block: four with one word each, or two with two words each.
template <class Make, class T>
DEV void draw(const Draw& p) {
  constexpr u32 EACH = Make::words;
  constexpr u32 COUNT = 4 / EACH;
  const u64 block = p.first / COUNT + (u64)blockIdx.x * blockDim.x + threadIdx.x;
  const u64 begin = block * COUNT;
  if (begin >= p.first + p.count) return;
  const Words w = words(p.seed, p.offset + block);
#pragma unroll 1
  for (u32 i = 0; i < COUNT; i++) {
    const u64 number = begin + i;
    if (number < p.first || number >= p.first + p.count) continue;
    i64 offset[2];
    p.dims.offsets((u32)(number - p.first), offset);
    static_cast<T*>(p.out)[offset[0]] = Make::template at<T>(p, w, i, offset[1]);
  }
}

DEV double fraction(u64 bits) { return (double)(bits >> 11) * (1.0 / 9007199254740992.0); }
DEV u64 both(const Words& w, u32 i) { return (u64)w.at[2 * i] << 32 | w.at[2 * i + 1]; }
DEV bool happens(u32 word, double p) { return (double)word * (1.0 / 4294967296.0) < p; }

template <class T>
struct Digits {
  static const int count = 24;
};
template <>
struct Digits<f16> {
  static const int count = 11;
};
template <>
struct Digits<bf16> {
  static const int count = 8;
};

struct Uniform {
  static const u32 words = 1;
  template <class T>
  METHOD static T at(const Draw& p, const Words& w, u32 i, i64) {
    constexpr int digits = Digits<T>::count;
    const float low = Immediate<float>::of(p.a), high = Immediate<float>::of(p.b);
    const float share = (float)(w.at[i] >> (32 - digits)) * (1.0f / (float)(1u << digits));
    const T made = Element<T>::narrow(low + (high - low) * share), end = Element<T>::narrow(high);
    return Element<T>::widen(made) < Element<T>::widen(end) ? made : Element<T>::narrow(low);
  }
};
struct UniformDouble {
  static const u32 words = 2;
  template <class T>
  METHOD static T at(const Draw& p, const Words& w, u32 i, i64) {
    const double low = double_of(p.a), high = double_of(p.b);
    const double made = low + (high - low) * fraction(both(w, i));
    return made < high ? made : low;
  }
};

// The Box-Muller transform (1958): one of a pair of independent normal values.
DEV double normal_of(double first, double second, bool odd) {
  const double radius = sqrt(-2.0 * log(1.0 - first)), angle = 6.283185307179586476925 * second;
  return radius * (odd ? sin(angle) : cos(angle));
}
struct Normal {
  static const u32 words = 1;
  template <class T>
  METHOD static T at(const Draw& p, const Words& w, u32 i, i64) {
    const double z = normal_of(fraction((u64)w.at[i & 2] << 32), fraction((u64)w.at[(i & 2) + 1] << 32), i & 1);
    return Element<T>::narrow(Immediate<float>::of(p.a) + Immediate<float>::of(p.b) * (float)z);
  }
};
struct NormalDouble {
  static const u32 words = 2;
  template <class T>
  METHOD static T at(const Draw& p, const Words& w, u32 i, i64) {
    return double_of(p.a) + double_of(p.b) * normal_of(fraction(both(w, 0)), fraction(both(w, 1)), i & 1);
  }
};

// With the given probability, if `b` is set, or with the probability of each element.
struct Bernoulli {
  static const u32 words = 1;
  template <class T>
  METHOD static T at(const Draw& p, const Words& w, u32 i, i64 from) {
    double share = double_of(p.a);
    if constexpr (Kind<Wide<T>>::real) {
      if (!p.b) share = (double)read<T>(p.in, from);
    }
    return Element<T>::narrow((Wide<T>)happens(w.at[i], share));
  }
};
struct Whole {
  static const u32 words = 2;
  template <class T>
  METHOD static T at(const Draw& p, const Words& w, u32 i, i64) {
    return Element<T>::narrow((Wide<T>)(i64)(p.a + __umul64hi(both(w, i), p.b - p.a)));
  }
};
struct Dropout {
  static const u32 words = 1;
  template <class T>
  METHOD static T at(const Draw& p, const Words& w, u32 i, i64 from) {
    const Wide<T> x = read<T>(p.in, from);
    return Element<T>::narrow(happens(w.at[i], double_of(p.a)) ? Wide<T>(0) : x * Immediate<Wide<T>>::of(p.b));
  }
};

#define SINGLES(M, x) M(f16, f16, x) M(bf16, bf16, x) M(f32, float, x)
#define UNIFORM(dtype, T, name) KERNEL(name##_##dtype, Draw) { draw<Uniform, T>(p); }
SINGLES(UNIFORM, uniform)
KERNEL(uniform_f64, Draw) { draw<UniformDouble, double>(p); }
REGISTER(uniform, "Tffii>T", uniform, FLOATS)
#define NORMAL(dtype, T, name) KERNEL(name##_##dtype, Draw) { draw<Normal, T>(p); }
SINGLES(NORMAL, normal)
KERNEL(normal_f64, Draw) { draw<NormalDouble, double>(p); }
REGISTER(normal, "Tffii>T", normal, FLOATS)
#define BERNOULLI(dtype, T, name) KERNEL(name##_##dtype, Draw) { draw<Bernoulli, T>(p); }
ALL(BERNOULLI, bernoulli)
REGISTER(bernoulli, "Tfii>T", bernoulli, ALL)
#define WHOLE(dtype, T, name) KERNEL(name##_##dtype, Draw) { draw<Whole, T>(p); }
NUMBERS(WHOLE, random_int)
REGISTER(random_int, "Tiiii>T", random_int, NUMBERS)
#define DROPOUT(dtype, T, name) KERNEL(name##_##dtype, Draw) { draw<Dropout, T>(p); }
FLOATS(DROPOUT, dropout)
REGISTER(dropout, "Tfii>T", dropout, FLOATS)
