// Products of matrices and vectors, and of batches of matrices, of any strides.
#include "product.cuh"

#define PRODUCT(name, signature, host, dtypes) dtypes(PRODUCT_ENTRIES, name)
#define PRODUCT_ENTRIES(dtype, T, name)                                                             \
  KERNEL(name##_##dtype##_tile, Product) { multiply(Matrices<T>{p}, p.shape); }                     \
  KERNEL(name##_##dtype##_finish, Product) { add_parts(Matrices<T>{p}, p.shape); }

PRODUCT(mm, "TT>T", mm, NUMBERS)
// The same kernels with other sizes.
REGISTER(addmm, "TTTss>T", added, NUMBERS)
REGISTER(bmm, "TT>T", mm, NUMBERS)
REGISTER(baddbmm, "TTTss>T", added, NUMBERS)
REGISTER(mv, "TT>T", mm, NUMBERS)
REGISTER(dot, "TT>T", mm, NUMBERS)
