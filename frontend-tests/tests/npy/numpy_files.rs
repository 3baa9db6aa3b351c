//! Files as NumPy 2.4.6 wrote them, by `np.save`, `np.savez` and `np.savez_compressed`.

pub const F64: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\0\0\0\0\0\0\xf8?\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\xd0?";

pub const F64_BIG: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '>f8', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a?\xf8\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0?\xd0\0\0\0\0\0\0";

pub const F32: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\0\0\xc0?\0\0\0\xc0\0\0\x80>";

pub const F32_BIG: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a?\xc0\0\0\xc0\0\0\0>\x80\0\0";

pub const F16: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\0>\0\xc0\x004";

pub const F16_BIG: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '>f2', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a>\0\xc0\x004\0";

pub const I64: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\x01\0\0\0\0\0\0\0d\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f";

pub const I32_BIG: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '>i4', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\0\0\0\x01\0\0\0d\x7f\xff\xff\xff";

pub const I16: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\x01\0d\0\xff\x7f";

pub const I8: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\x01d\x7f";

pub const U8: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\x01d\xff";

pub const U16: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\x01\0d\0\xff\xff";

pub const U32_BIG: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '>u4', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\0\0\0\x01\0\0\0d\xff\xff\xff\xff";

pub const U64: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<u8', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\x01\0\0\0\0\0\0\0d\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff";

pub const BOOL: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }                             \
      \x20                              \x0a\x01\0\x01";

pub const COMPLEX_BIG: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '>c8', 'fortran_order': False, 'shape': (2,), }                             \
      \x20                              \x0a?\x80\0\0@\0\0\0\xc0@\0\0\xbf\0\0\0";

pub const FORTRAN: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }                            \
      \x20                              \x0a\0\0\0\0\x03\0\0\0\x01\0\0\0\x04\0\0\0\x02\0\0\0\x05\0\0\0";

pub const FORTRAN_BIG: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3, 2), }                         \
      \x20                              \x0a\0\0\0\x06\0\x02\0\x08\0\x04\0\x0a\0\x01\0\x07\0\x03\0\x09\0\x05\0\
      \x0b";

pub const POINT: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (), }                               \
      \x20                              \x0a\0\0\0\0\0\0\x04@";

pub const EMPTY: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }                           \
      \x20                              \x0a";

pub const VERSION_2: &[u8] =
    b"\x93NUMPY\x02\0t\0\0\0{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }                         \
      \x20                                \x0a\0\0\0\0\x01\0\0\0\x02\0\0\0";

pub const VERSION_3: &[u8] =
    b"\x93NUMPY\x03\0t\0\0\0{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }                         \
      \x20                                \x0a\0\0\0\0\x01\0\0\0\x02\0\0\0";

pub const TEXT: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }                             \
      \x20                              \x0aa\0\0\0b\0\0\0";

pub const OBJECT: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': '|O', 'fortran_order': False, 'shape': (1,), }                              \
      \x20                              \x0a\x80\x04\x95\x8b\0\0\0\0\0\0\0\x8c\x16numpy._core.multiarray\x94\x8c\
      \x0c_reconstruct\x94\x93\x94\x8c\x05numpy\x94\x8c\x07ndarray\x94\x93\x94K\0\x85\x94C\x01b\x94\x87\x94R\x94\
      (K\x01K\x01\x85\x94h\x03\x8c\x05dtype\x94\x93\x94\x8c\x02O8\x94\x89\x88\x87\x94R\x94(K\x03\x8c\x01|\x94N\
      NNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?t\x94b\x89]\x94}\x94at\x94b.";

pub const STRUCTURE: &[u8] =
    b"\x93NUMPY\x01\0v\0{'descr': [('x', '<f4'), ('y', '<i2')], 'fortran_order': False, 'shape': (2,), }      \
      \x20                              \x0a\0\0\0\0\0\0\0\0\0\0\0\0";

pub const STORED: &[u8] =
    b"PK\x03\x04-\0\0\0\0\0\0\0!\0\x91\xf4\xe7\xdb\xff\xff\xff\xff\xff\xff\xff\xff\x0a\0\x14\0weight.npy\x01\0\
      \x10\0\x90\0\0\0\0\0\0\0\x90\0\0\0\0\0\0\0\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'sh\
      ape': (2, 2), }                                                          \x0a\0\0\0\0\0\0\x80?\0\0\0@\0\0\
      @@PK\x03\x04-\0\0\0\0\0\0\0!\0\xb9\x93{\x98\xff\xff\xff\xff\xff\xff\xff\xff\x08\0\x14\0bias.npy\x01\0\x10\
      \0\x88\0\0\0\0\0\0\0\x88\0\0\0\0\0\0\0\x93NUMPY\x01\0v\0{'descr': '<i8', 'fortran_order': False, 'shape'\
      : (1,), }                                                            \x0a\x07\0\0\0\0\0\0\0PK\x01\x02-\x03\
      -\0\0\0\0\0\0\0!\0\x91\xf4\xe7\xdb\x90\0\0\0\x90\0\0\0\x0a\0\0\0\0\0\0\0\0\0\0\0\x80\x01\0\0\0\0weight.n\
      pyPK\x01\x02-\x03-\0\0\0\0\0\0\0!\0\xb9\x93{\x98\x88\0\0\0\x88\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\x80\x01\xcc\
      \0\0\0bias.npyPK\x05\x06\0\0\0\0\x02\0\x02\0n\0\0\0\x8e\x01\0\0\0\0";

pub const DEFLATED: &[u8] =
    b"PK\x03\x04-\0\0\0\x08\0\0\0!\0}\xf8\xd3\xd9\xff\xff\xff\xff\xff\xff\xff\xff\x0a\0\x14\0weight.npy\x01\0\x10\
      \0\x80\x19\0\0\0\0\0\0o\0\0\0\0\0\0\0\xed\xc8!\x0e\xc2@\x14E\xd1_\xcb*\xbe\xfb\x90\x8c\xa8\x18E\x10(\x1c\
      \xa4\xa6\xa2\xaa\x99\xd0i\x10\x84\x92\x99\xa6\x86t\x15l\xb8e\x0b\xc8\xe6\xbe\xe4\x88w\xbf\xb7\xfaZ5\x85L\
      \xf2\xb1.\xe6{\xb2\xa3\xda\xa9\xf7\xe6\xd4\xfa!\x8d)\xbc\xda!u\xf1\xd7/\xe1\x99\xe3\xda\xf3#\xbc\xe3\xfa\
      \xf7\xbet\xea\xcb\x83\xd3Y\xff\xdcND\xce\0\0\0\0\0\0\0\0\0[\xb2\0PK\x03\x04-\0\0\0\x08\0\0\0!\0\xb9\x93{\
      \x98\xff\xff\xff\xff\xff\xff\xff\xff\x08\0\x14\0bias.npy\x01\0\x10\0\x88\0\0\0\0\0\0\0H\0\0\0\0\0\0\0\x9b\
      \xec\x17\xea\x1b\x10\xc9\xc8P\xc6P\xad\x9e\x92Z\x9c\\\xa4n\xa5\xa0n\x93i\xa1\xae\xa3\xa0\x9e\x96_TR\x94\x98\
      \x17\x9f_\x94\x92\x0a\x12wK\xcc)N\x05\x8a\x17g$\x16\xa4\x02\xf9\x1a\x86:\x9a:\x0a\xb5\x0a\x14\0.v\x06\x08\
      \0\0PK\x01\x02-\x03-\0\0\0\x08\0\0\0!\0}\xf8\xd3\xd9o\0\0\0\x80\x19\0\0\x0a\0\0\0\0\0\0\0\0\0\0\0\x80\x01\
      \0\0\0\0weight.npyPK\x01\x02-\x03-\0\0\0\x08\0\0\0!\0\xb9\x93{\x98H\0\0\0\x88\0\0\0\x08\0\0\0\0\0\0\0\0\0\
      \0\0\x80\x01\xab\0\0\0bias.npyPK\x05\x06\0\0\0\0\x02\0\x02\0n\0\0\0-\x01\0\0\0\0";
