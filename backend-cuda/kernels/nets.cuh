// Shared parts of the normalisation, softmax and reduction kernels: reductions over the threads that share a row.
#pragma once
#include "math.cuh"

template <class W>
struct Infinite {
  DEV W value() { return float_of(0x7f800000); }
};

// The number of threads per block of a row kernel, and the maximum for a single row.
constexpr u32 ROW_THREADS = 128, MOST_ROW_THREADS = 512;

// The distribution of rows: `lanes` threads, a power of two, share one row. Neighbouring threads have neighbouring rows if
// these are contiguous (`beside`), otherwise neighbouring elements of one row.
struct Sharing {
  u64 rows, terms;
  u32 lanes, beside;
};

// A thread's position. All threads of a block meet at barriers, so a thread without a row continues without elements.
struct Place {
  u64 row;
  u32 lane, lanes, slot;
  // Whether neighbouring threads share a row.
  bool has_row, are_neighbours;
  METHOD explicit Place(const Sharing& s) {
    const u32 rows = blockDim.x / s.lanes;
    const u32 own = s.beside ? threadIdx.x % rows : threadIdx.x / s.lanes;
    lane = s.beside ? threadIdx.x / rows : threadIdx.x % s.lanes;
    lanes = s.lanes;
    slot = own * s.lanes + lane;
    are_neighbours = !s.beside;
    row = (u64)blockIdx.x * rows + own;
    has_row = row < s.rows;
  }
};

struct Added {
  template <class W>
  METHOD static W join(W a, W b) { return a + b; }
};
struct Largest {
  template <class W>
  METHOD static W join(W a, W b) { return larger(a, b); }
};
template <class W>
struct Pair {
  W a, b;
};
struct AddedPairs {
  template <class W>
  METHOD static Pair<W> join(Pair<W> x, Pair<W> y) { return Pair<W>{x.a + y.a, x.b + y.b}; }
};

// A thread's part of a contiguous and aligned row, cached in registers in the compute type: pieces `lane`, `lane + lanes`,
// .. Each is read once.
constexpr int KEPT_BYTES = 128;
template <class T>
struct Kept {
  typedef Wide<T> W;
  static const int V = Piece<T>::count, PIECES = KEPT_BYTES / (int)sizeof(W) / V;
  W at[PIECES * V];
  u32 lane, lanes, pieces;
  METHOD Kept(const T* row, const Place& place, u64 terms) : lane(place.lane), lanes(place.lanes) {
    pieces = place.has_row ? (u32)terms / V : 0;
    const Piece<T>* from = reinterpret_cast<const Piece<T>*>(row);
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
      if (lane + i * lanes < pieces) {
        const Piece<T> own = from[lane + i * lanes];
#pragma unroll
        for (int k = 0; k < V; k++) at[i * V + k] = Element<T>::widen(own.at[k]);
      }
    }
  }
  // Calls `f` with each element and its number.
  template <class F>
  METHOD void each(const F& f) {
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
      if (lane + i * lanes < pieces) {
#pragma unroll
        for (int k = 0; k < V; k++) f(at[i * V + k]);
      }
    }
  }
  // Calls `f` with each element and the element of another row at the same index.
  template <class F>
  METHOD void each_with(const Kept& other, const F& f) {
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
      if (lane + i * lanes < pieces) {
#pragma unroll
        for (int k = 0; k < V; k++) f(at[i * V + k], other.at[i * V + k]);
      }
    }
  }
  // Writes the row; `f` first updates each piece, given the piece in registers and its number.
  template <class F>
  METHOD void write(T* row, const F& f) {
    Piece<T>* to = reinterpret_cast<Piece<T>*>(row);
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
      if (lane + i * lanes < pieces) {
        f(at + i * V, lane + i * lanes);
        Piece<T> own;
#pragma unroll
        for (int k = 0; k < V; k++) own.at[k] = Element<T>::narrow(at[i * V + k]);
        to[lane + i * lanes] = own;
      }
    }
  }
};

// The value of the lane whose number differs in these bits; all threads of a warp exchange.
template <class A>
DEV A from_lane(A own, u32 bits) {
  union {
    A all;
    u32 words[sizeof(A) / 4];
  } value;
  value.all = own;
#pragma unroll
  for (u32 i = 0; i < sizeof(A) / 4; i++) value.words[i] = __shfl_xor_sync(0xffffffff, value.words[i], bits);
  return value.all;
}

// Reduces over the threads of a row, with the result in each of them. A kernel may call it once per J and A, each with
// shared memory of its own: before a second call some thread may still have to read the first result.
template <class J, class A>
DEV A over_row(A own, const Place& place) {
  SHARED(A, shared, MOST_ROW_THREADS);
  if (place.are_neighbours) {
    for (u32 bits = (place.lanes < 32 ? place.lanes : 32) / 2; bits > 0; bits >>= 1) own = J::join(own, from_lane(own, bits));
    if (place.lanes <= 32) return own;
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = own;
    __syncthreads();
    const A* warps = shared + (place.slot - place.lane) / 32;
    own = warps[0];
    for (u32 warp = 1; warp < place.lanes / 32; warp++) own = J::join(own, warps[warp]);
    return own;
  }
  shared[place.slot] = own;
  for (u32 half = place.lanes / 2; half > 0; half >>= 1) {
    __syncthreads();
    if (place.lane < half) shared[place.slot] = J::join(shared[place.slot], shared[place.slot + half]);
  }
  __syncthreads();
  return shared[place.slot - place.lane];
}
