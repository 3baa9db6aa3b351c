// Functions of one or two scalars in the compute type. Names end in `_` if C++ has the same name.
#pragma once
#include "keyway.cuh"

#define REAL_FUNCTION(name, single, twofold)        \
  DEV float name##_(float x) { return single(x); }  \
  DEV double name##_(double x) { return twofold(x); }
REAL_FUNCTION(exp, expf, exp)
REAL_FUNCTION(expm1, expm1f, expm1)
REAL_FUNCTION(log, logf, log)
REAL_FUNCTION(log2, log2f, log2)
REAL_FUNCTION(log10, log10f, log10)
REAL_FUNCTION(log1p, log1pf, log1p)
REAL_FUNCTION(sqrt, sqrtf, sqrt)
REAL_FUNCTION(sin, sinf, sin)
REAL_FUNCTION(cos, cosf, cos)
REAL_FUNCTION(tan, tanf, tan)
REAL_FUNCTION(asin, asinf, asin)
REAL_FUNCTION(acos, acosf, acos)
REAL_FUNCTION(atan, atanf, atan)
REAL_FUNCTION(sinh, sinhf, sinh)
REAL_FUNCTION(cosh, coshf, cosh)
REAL_FUNCTION(tanh, tanhf, tanh)
REAL_FUNCTION(asinh, asinhf, asinh)
REAL_FUNCTION(acosh, acoshf, acosh)
REAL_FUNCTION(atanh, atanhf, atanh)
REAL_FUNCTION(erf, erff, erf)
REAL_FUNCTION(erfc, erfcf, erfc)
REAL_FUNCTION(magnitude, fabsf, fabs)

// Integers are unchanged.
#define ROUNDING(name, single, twofold) \
  REAL_FUNCTION(name, single, twofold)  \
  template <class T>                    \
  DEV T name##_(T x) { return x; }
ROUNDING(floor, floorf, floor)
ROUNDING(ceil, ceilf, ceil)
ROUNDING(trunc, truncf, trunc)
ROUNDING(round, rintf, rint)

DEV float pow_(float x, float y) { return powf(x, y); }
DEV double pow_(double x, double y) { return pow(x, y); }
DEV float atan2_(float x, float y) { return atan2f(x, y); }
DEV double atan2_(double x, double y) { return atan2(x, y); }
DEV float fmod_(float x, float y) { return fmodf(x, y); }
DEV double fmod_(double x, double y) { return fmod(x, y); }
DEV float copysign_(float x, float y) { return copysignf(x, y); }
DEV double copysign_(double x, double y) { return copysign(x, y); }

template <class T>
struct Kind {
  static const bool real = false;
  static const bool has_sign = T(-1) < T(0);
};
template <>
struct Kind<float> {
  static const bool real = true;
  static const bool has_sign = true;
};
template <>
struct Kind<double> : Kind<float> {};
template <>
struct Kind<bool> {
  static const bool real = false;
  static const bool has_sign = false;
};

// Arithmetic of integers modulo 2^bits; of bool it is or, exclusive or, and and.
template <class T>
DEV T plus(T a, T b) { return (T)((u64)a + (u64)b); }
DEV float plus(float a, float b) { return a + b; }
DEV double plus(double a, double b) { return a + b; }
DEV bool plus(bool a, bool b) { return a | b; }
template <class T>
DEV T minus(T a, T b) { return (T)((u64)a - (u64)b); }
DEV float minus(float a, float b) { return a - b; }
DEV double minus(double a, double b) { return a - b; }
DEV bool minus(bool a, bool b) { return a ^ b; }
template <class T>
DEV T times(T a, T b) { return (T)((u64)a * (u64)b); }
DEV float times(float a, float b) { return a * b; }
DEV double times(double a, double b) { return a * b; }
DEV bool times(bool a, bool b) { return a & b; }

// a * b + c, with one rounding on a GPU; the stand-in rounds twice, since its processor may lack the instruction.
template <class W>
DEV W fused(W a, W b, W c) { return plus(times(a, b), c); }
DEV float fused(float a, float b, float c) {
#ifdef KEYWAY_SHIM
  return a * b + c;
#else
  return fmaf(a, b, c);
#endif
}
DEV double fused(double a, double b, double c) {
#ifdef KEYWAY_SHIM
  return a * b + c;
#else
  return fma(a, b, c);
#endif
}

template <class T>
DEV T negative(T x) {
  if constexpr (Kind<T>::real) return -x;
  else return (T)(0 - (u64)x);
}
template <class T>
DEV T absolute(T x) {
  if constexpr (Kind<T>::real) return magnitude_(x);
  else return x < T(0) ? negative(x) : x;
}
template <class T>
DEV T sign_of(T x) { return (T)((int)(x > T(0)) - (int)(x < T(0))); }

// The larger and the smaller; NaN if either is NaN, as NaN alone differs from itself.
template <class T>
DEV T larger(T a, T b) { return a > b || a != a ? a : b; }
template <class T>
DEV T smaller(T a, T b) { return a < b || a != a ? a : b; }

template <class T>
DEV bool is_nan(T x) { return x != x; }
template <class T>
DEV bool is_infinite(T x) {
  if constexpr (Kind<T>::real) return magnitude_(x) > T(0) && x - x != T(0) && x == x;
  else return false;
}
template <class T>
DEV bool is_finite(T x) {
  if constexpr (Kind<T>::real) return x - x == T(0);
  else return true;
}

// 1 / (1 + e^-x), without intermediate overflow, and with one significant rounding where the result is small.
template <class R>
DEV R sigmoid_of(R x) {
  const R e = exp_(-magnitude_(x)), right = R(1) / (R(1) + e);
  return x < R(0) ? e * right : right;
}

// The derivative of sigmoid_of, without `1 - sigmoid`, which cancels far from 0.
template <class R>
DEV R sigmoid_slope(R x) {
  const R e = exp_(-magnitude_(x)), right = R(1) / (R(1) + e);
  return e * right * right;
}

// The normal CDF at x.
template <class R>
DEV R normal_share(R x) { return R(0.5) * erfc_(x * R(-0.70710678118654752440)); }

// Twice the argument of tanh in the approximate gelu, and its derivative: (1 + tanh(u)) / 2 = sigmoid(2u).
template <class R>
DEV R gelu_argument(R x) { return x * (R(1.5957691216057308) + R(1.5957691216057308 * 0.044715) * (x * x)); }
template <class R>
DEV R gelu_slope(R x) { return R(1.5957691216057308) + R(3 * 1.5957691216057308 * 0.044715) * (x * x); }
template <class R>
DEV R at_least(R x, R low) { return x < low ? low : x; }
template <class R>
DEV R at_most(R x, R high) { return x > high ? high : x; }
template <class R>
DEV R gelu_tanh_gradient(R gradient, R x) {
  x = at_most(at_least(x, R(-40)), R(40));
  const R s = sigmoid_of(gelu_argument(x));
  return gradient * (s + x * s * (R(1) - s) * gelu_slope(x));
}
template <class R>
DEV R gelu_gradient(R gradient, R x) {
  x = at_most(at_least(x, R(-40)), R(40));
  const R density = exp_(x * x * R(-0.5)) * R(0.398942280401432678);
  return gradient * (normal_share(x) + x * density);
}
template <class R>
DEV R silu_gradient(R gradient, R x) {
  x = at_most(at_least(x, R(-800)), R(800));
  const R s = sigmoid_of(x);
  return gradient * s * (R(1) + x * (R(1) - s));
}

// Quotients and remainders. An integer division by 0 returns 0; the host refuses it before the launch.
template <class T>
DEV T trunc_quotient(T a, T b) {
  if constexpr (Kind<T>::real) return trunc_(a / b);
  else {
    if (b == T(0)) return T(0);
    // The single quotient that overflows wraps.
    if (Kind<T>::has_sign && b == T(-1)) return negative(a);
    return (T)(a / b);
  }
}
template <class T>
DEV T trunc_remainder(T a, T b) {
  if constexpr (Kind<T>::real) return fmod_(a, b);
  else {
    if (b == T(0) || (Kind<T>::has_sign && b == T(-1))) return T(0);
    return (T)(a % b);
  }
}
template <class T>
DEV T floor_remainder(T a, T b) {
  const T rest = trunc_remainder(a, b);
  return rest != T(0) && (rest < T(0)) != (b < T(0)) ? plus(rest, b) : rest;
}
template <class T>
DEV T floor_quotient(T a, T b) {
  const T rest = trunc_remainder(a, b);
  const bool down = rest != T(0) && (rest < T(0)) != (b < T(0));
  if constexpr (Kind<T>::real) {
    const T plain = a / b;
    if (b == T(0)) return plain;
    // An exact multiple up to one rounding, so that the nearest integer is the quotient.
    const T near = (a - rest) / b - (down ? T(1) : T(0));
    const T below = floor_(near);
    const T whole = near - below > T(0.5) ? below + T(1) : below;
    return near == T(0) ? copysign_(T(0) * plain, plain) : whole;
  } else {
    const T quotient = trunc_quotient(a, b);
    return down ? minus(quotient, T(1)) : quotient;
  }
}

// An integer power modulo 2^bits, by repeated squaring; the host refuses negative exponents.
template <class T>
DEV T whole_power(T base, T exponent) {
  T result = 1;
  for (u64 rest = (u64)exponent; rest != 0; rest >>= 1) {
    if (rest & 1) result = times(result, base);
    base = times(base, base);
  }
  return result;
}
template <class T>
DEV T power(T a, T b) {
  if constexpr (Kind<T>::real) return pow_(a, b);
  else return whole_power(a, b);
}

// Shifts; a count that is negative, or at least the number of bits, shifts every bit out.
template <class T>
DEV T shift_left(T a, T count) {
  return (u64)count < sizeof(T) * 8 ? (T)((u64)a << (u64)count) : T(0);
}
template <class T>
DEV T shift_right(T a, T count) {
  if ((u64)count < sizeof(T) * 8) return (T)(a >> count);
  return a < T(0) ? T(-1) : T(0);
}

// Computed from the nearer end, so that both ends are exact.
template <class R>
DEV R between(R a, R b, R weight) {
  const R span = b - a;
  return magnitude_(weight) < R(0.5) ? a + weight * span : b - span * (R(1) - weight);
}

template <class R>
DEV R soft_plus(R x, R beta, R threshold) {
  // The argument of the exponential is at most 0, so that the result is finite.
  const R scaled = x * beta, soft = at_least(scaled, R(0)) + log1p_(exp_(-magnitude_(scaled)));
  return scaled > threshold ? x : soft / beta;
}
