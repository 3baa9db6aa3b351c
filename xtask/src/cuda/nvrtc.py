"""Compiles one kernel file to PTX by NVRTC: nvrtc.py KERNELS FAMILY TARGET OUT.

NVRTC is that of the environment that runs this; no GPU is needed. The image ends without the 0 byte that NVRTC adds.
"""

import ctypes
import pathlib
import sys


def library():
    import nvidia.cuda_nvrtc

    folder = pathlib.Path(list(nvidia.cuda_nvrtc.__path__)[0]) / "lib"
    # The compiler asks the system for its built-in functions by name, and finds them if they are loaded already.
    for builtins in folder.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(sorted(folder.glob("libnvrtc.so.*"))[0]))


def check(nvrtc, what, result):
    if result != 0:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        sys.exit(f"{what}: {nvrtc.nvrtcGetErrorString(result).decode()}")


def text(nvrtc, program, name):
    size = ctypes.c_size_t()
    check(nvrtc, name, getattr(nvrtc, f"nvrtcGet{name}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    check(nvrtc, name, getattr(nvrtc, f"nvrtcGet{name}")(program, buffer))
    return buffer.value


def main(kernels, family, target, out):
    nvrtc = library()
    folder = pathlib.Path(kernels)
    headers = sorted(folder.glob("*.cuh"))
    count = len(headers)
    names = (ctypes.c_char_p * count)(*[header.name.encode() for header in headers])
    texts = (ctypes.c_char_p * count)(*[header.read_bytes() for header in headers])
    source = (folder / f"{family}.cu").read_bytes()
    program = ctypes.c_void_p()
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, f"{family}.cu".encode(), count, texts, names)
    check(nvrtc, "nvrtcCreateProgram", made)
    options = [f"--gpu-architecture={target}", "--std=c++17", "-fmad=false", "-diag-suppress=186"]
    array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    result = nvrtc.nvrtcCompileProgram(program, len(options), array)
    log = text(nvrtc, program, "ProgramLog").decode().strip()
    if log:
        print(log, file=sys.stderr)
    check(nvrtc, f"{family}.cu", result)
    pathlib.Path(out).write_bytes(text(nvrtc, program, "PTX"))


if __name__ == "__main__":
    main(*sys.argv[1:])
