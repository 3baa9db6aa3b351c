// Special functions. The coefficients of the inverse error function and of the derivatives of log gamma are those of
// `quantile.rs` and `gamma.rs` of plugin-sdk, which name the sources.
#pragma once
#include "math.cuh"

CALLED float log_gamma(float x) { return lgammaf(x); }
CALLED double log_gamma(double x) { return lgamma(x); }
CALLED float hypotenuse(float x, float y) { return hypotf(x, y); }
CALLED double hypotenuse(double x, double y) { return hypot(x, y); }

// log(e^a + e^b) = max(a, b) + log1p(exp(-|a - b|)). The difference of equal infinities is NaN.
template <class R>
CALLED R log_sum(R a, R b) {
  return larger(a, b) + (a == b ? R(0.69314718055994530942) : log1p_(exp_(-magnitude_(a - b))));
}

template <class R>
DEV R infinite() { return R(float_of(0x7f800000)); }

constexpr double PI = 3.14159265358979323846;

// `c[0] + c[1] x + c[2] x^2 + ..`
template <class R, int N>
DEV R polynomial(R x, const double (&c)[N]) {
  R value = R(c[N - 1]);
#pragma unroll
  for (int i = N - 2; i >= 0; i--) value = fused(value, x, R(c[i]));
  return value;
}

// The quantiles of the normal distribution: the central approximation divided by x / 2, the outer one by depth, and the
// tail, which no f32 reaches.
template <class R>
DEV R middle_quantile(R x) {
  const double above[] = {
      3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946, 45921.95393154987,
      67265.7709270087, 33430.57558358813, 2509.0809287301227};
  const double under[] = {
      1.0, 42.31333070160091, 687.1870074920579, 5394.196021424751, 21213.794301586597, 39307.89580009271,
      28729.085735721943, 5226.495278852854};
  return polynomial(x, above) / polynomial(x, under);
}
template <class R>
DEV R outside_quantile(R x) {
  const double above[] = {
      1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045, 1.2704582524523684,
      0.2417807251774506, 0.022723844989269184, 0.0007745450142783414};
  const double under[] = {
      1.0, 2.053191626637759, 1.6763848301838038, 0.6897673349851, 0.14810397642748008, 0.015198666563616457,
      0.0005475938084995345, 1.0507500716444169e-09};
  return polynomial(x, above) / polynomial(x, under);
}
template <class R>
DEV R tail_quantile(R x) {
  const double above[] = {
      6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487, 0.026532189526576124,
      0.0012426609473880784, 2.7115555687434876e-05, 2.0103343992922881e-07};
  const double under[] = {
      1.0, 0.599832206555888, 0.1369298809227358, 0.014875361290850615, 0.0007868691311456133, 1.8463183175100548e-05,
      1.421511758316446e-07, 2.0442631033899397e-15};
  return polynomial(x, above) / polynomial(x, under);
}

// Infinite at 1 and -1, NaN beyond.
template <class R>
CALLED R inverse_erf(R x) {
  constexpr double ROOT_HALF = 0.70710678118654752440;
  const R size = magnitude_(x);
  if (size <= R(0.85)) return middle_quantile(R(0.180625) - R(0.25) * x * x) * R(0.5 * ROOT_HALF) * x;
  if (size == R(1)) return x * infinite<R>();
  const R depth = sqrt_(-log_((R(1) - size) * R(0.5)));
  const bool in_tail = sizeof(R) == 8 && depth > R(5);
  return copysign_((in_tail ? tail_quantile(depth - R(5)) : outside_quantile(depth - R(1.6))) * R(ROOT_HALF), x);
}

// `B_2k / 2k` for k from 1, with the Bernoulli numbers: the asymptotic series of `digamma`. Without the division
// (`INDEXED`) it is the series of the derivative.
template <class R, bool INDEXED>
DEV R bernoulli_series(R x) {
  const double list[] = {
      1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 5.0 / 660, -691.0 / 32760, 1.0 / 12, -3617.0 / 8160,
      43867.0 / 14364, -174611.0 / 6600};
  constexpr int COUNT = sizeof(R) == 8 ? 10 : 4;
  R value = R(0);
#pragma unroll
  for (int i = COUNT - 1; i >= 0; i--) value = fused(value, x, R(list[i] * (INDEXED ? 2 * i + 2 : 1)));
  return value;
}

// `digamma` divided by the distance from its root, at 1 + u for u from 0 to 1.
DEV float digamma_quotient(float u) {
  const double list[] = {
      0.9510558760318328, -0.21181374873764533, 0.06013563375374406, -0.018549857673541014, 0.005936542817179836,
      -0.0019392493870653736, 0.0006382816678253829, -0.00020146002836925425, 6.68554257801198e-05,
      -3.1979727061173155e-05, 1.0647059250559272e-05};
  return polynomial(u + u - 1.0f, list);
}
DEV double digamma_quotient(double u) {
  const double list[] = {
      0.951055876031833, -0.21181371064073026, 0.06013562106019355, -0.018550615381738605, 0.005936795278433826,
      -0.0019350666647832667, 0.000636888028319074, -0.00021074841215733007, 6.995020484160625e-05,
      -2.325823828431376e-05, 7.741156881253708e-06, -2.578107848270217e-06, 8.591324222417666e-07,
      -2.8628755280038686e-07, 9.500926192924096e-08, -3.166618072027162e-08, 1.10370884388543e-08,
      -3.6788868183645545e-09, 8.668257373761658e-10, -2.889363639216111e-10, 2.4765474440031764e-10,
      -8.25512972008104e-11};
  return polynomial(u + u - 1.0, list);
}

// The derivative of log|gamma(x)|: at 0 infinite with the opposite sign, NaN at negative integers. Below 0 by the
// reflection `digamma(1 - x) - digamma(x) = pi cot(pi x)`.
template <class R>
CALLED R digamma_of(R x) {
  // Its root, and the rounding error of the root in this type.
  constexpr double wide = 1.4616321449683622;
  constexpr R root = R(wide), rest = R(sizeof(R) == 8 ? 9.549995429965697e-17 : wide - (double)root);
  if (x == R(0)) return R(-1) / x;
  const R y = x < R(0) ? R(1) - x : x;
  R made;
  if (y < R(9)) {
    // The sum of the reciprocals of the recurrence `digamma(y + 1) = digamma(y) + 1 / y`, as one quotient.
    R near = y, above = R(0), under = R(1);
    while (near > R(2)) {
      near -= R(1);
      above = fused(above, near, under);
      under *= near;
    }
    // Below 1 the polynomial is evaluated at y + 1, without the rounding error of this sum.
    const bool below = y < R(1);
    const R distance = (below ? y - (root - R(1)) : near - root) - rest;
    made = digamma_quotient(below ? y : near - R(1)) * distance + (below ? R(-1) / y : above / under);
  } else {
    const R inverse = R(1) / y, square = inverse * inverse;
    made = log_(y) - fused(inverse, R(0.5), bernoulli_series<R, false>(square) * square);
  }
  if (!(x < R(0))) return made;
  const R r = x - round_(x), size = magnitude_(r);
  if (r == R(0)) return r / r;
  // Near its zeros the cotangent is computed from a sine, which is accurate there.
  const R cotangent = sin_((R(0.5) - size) * R(PI)) / sin_(size * R(PI));
  return made - R(PI) * copysign_(cotangent, r);
}

// The second derivative of log|gamma(x)|: infinite at 0 and at negative integers. Below 0 by the reflection `trigamma(1 -
// x) + trigamma(x) = (pi / sin(pi x))^2`.
template <class R>
CALLED R trigamma_of(R x) {
  const R y = x < R(0) ? R(1) - x : x;
  constexpr int FAR = sizeof(R) == 8 ? 11 : 6;
  // The sum of the reciprocal squares of the recurrence up to the start of the series, smallest first.
  R sum = R(0), a = y;
  if (y < R(FAR)) {
    for (int k = FAR - 1; k > 0; k--) sum += R(1) / ((y + R(k)) * (y + R(k)));
    a = y + R(FAR);
  }
  const R inverse = R(1) / a, square = inverse * inverse;
  R made = sum + fused(inverse, fused(inverse, R(0.5), bernoulli_series<R, true>(square) * square), inverse);
  if (y < R(FAR)) made = fused(R(1) / y, R(1) / y, made);
  if (!(x <= R(0))) return made;
  const R whole = round_(x);
  if (is_infinite(x)) return x - x;
  if (x == whole) return infinite<R>();
  const R share = R(PI) / sin_(magnitude_(x - whole) * R(PI));
  return fused(share, share, -made);
}
