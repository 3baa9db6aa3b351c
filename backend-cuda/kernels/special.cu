// Special functions of one and two elements.
#include "elementwise.cuh"
#include "special.cuh"

UNARY(erfinv, "T>T", unary, FLOATS, inverse_erf(x))
UNARY(lgamma, "T>T", unary, FLOATS, log_gamma(x))
UNARY(digamma, "T>T", unary, FLOATS, digamma_of(x))
UNARY(trigamma, "", polygamma, FLOATS, trigamma_of(x))
REGISTER(polygamma, "Ti>T", polygamma, FLOATS)

PLAIN_BINARY(hypot, "TT>T", binary, FLOATS, hypotenuse(a, b))
PLAIN_BINARY(logaddexp, "TT>T", binary, FLOATS, log_sum(a, b))
PLAIN_BINARY(copysign, "TT>T", binary, FLOATS, copysign_(a, b))

// By element size: the bits of a float are ordered as its magnitudes.
template <int BYTES>
struct Bits;
template <>
struct Bits<2> {
  typedef u16 Word;
};
template <>
struct Bits<4> {
  typedef u32 Word;
};
template <>
struct Bits<8> {
  typedef u64 Word;
};
template <class T>
struct nextafter_function {
  static const int inputs = 2;
  METHOD explicit nextafter_function(const u64 (&)[3]) {}
  METHOD Wide<T> operator()(Wide<T> a, Wide<T> b) const {
    typedef typename Bits<sizeof(T)>::Word Word;
    typedef Wide<T> W;
    if (a == b) return b;
    if (is_nan(a) || is_nan(b)) return a + b;
    union {
      T number;
      Word bits;
    } next;
    next.number = Element<T>::narrow(a);
    if (a == W(0)) next.bits = (Word)(b < a ? (Word)1 << (sizeof(T) * 8 - 1) | 1 : 1);
    else next.bits = (Word)(next.bits + ((b > a) == (a > W(0)) ? 1 : -1));
    return Element<T>::widen(next.number);
  }
};
#define NEXT_ENTRIES(dtype, T, name) ENTRIES(name##_##dtype, 3, name##_function<T>, T, T, T, Absent)
FLOATS(NEXT_ENTRIES, nextafter)
REGISTER(nextafter, "TT>T", binary, FLOATS)
