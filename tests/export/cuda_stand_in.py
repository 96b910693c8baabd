"""Stand-ins for NVIDIA's libraries, so that ONNX Runtime's real CUDA provider loads without a GPU.

Every function does nothing and reports success; a few hand out memory. That is enough to open a
session, which decides for every node whether the provider has a kernel for it. Nothing can be run.

    python cuda_stand_in.py PACKAGES STAND_INS MODEL

opens MODEL as the `cuda` backend does, with the onnxruntime-gpu in the folder PACKAGES.
"""

import ctypes
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

LIBRARIES = (
    "libcublasLt.so.13",
    "libcublas.so.13",
    "libcurand.so.10",
    "libcudart.so.13",
    "libcuda.so.1",
)
_MEMORY = "{ *p = calloc(1, n + 64); return 0; }"
_HANDLE = "{ *p = calloc(1, 4096); return 0; }"
OWN = {
    "cudaMalloc": f"int cudaMalloc(void **p, size_t n) {_MEMORY}",
    "cudaMallocHost": f"int cudaMallocHost(void **p, size_t n) {_MEMORY}",
    "cudaHostAlloc": f"int cudaHostAlloc(void **p, size_t n, unsigned f) {_MEMORY}",
    "cudaStreamCreateWithFlags": f"int cudaStreamCreateWithFlags(void **p, unsigned f) {_HANDLE}",
    "cudaEventCreateWithFlags": f"int cudaEventCreateWithFlags(void **p, unsigned f) {_HANDLE}",
    "cublasCreate_v2": f"int cublasCreate_v2(void **p) {_HANDLE}",
    "cublasLtCreate": f"int cublasLtCreate(void **p) {_HANDLE}",
    "cudaGetDeviceCount": "int cudaGetDeviceCount(int *n) { *n = 1; return 0; }",
    "cudaGetDevice": "int cudaGetDevice(int *n) { *n = 0; return 0; }",
    "cudaMemGetInfo": "int cudaMemGetInfo(size_t *a, size_t *b) { *a = *b = 1UL << 34; return 0; }",
    "cudaGetErrorString": 'const char *cudaGetErrorString(int e) { return "none"; }',
    "cudaGetErrorName": 'const char *cudaGetErrorName(int e) { return "none"; }',
    # Major and minor of the compute capability stand at this place of cudaDeviceProp.
    "cudaGetDeviceProperties": (
        "int cudaGetDeviceProperties(char *p, int d)"
        " { memset(p, 0, 700); ((int *)(p + 360))[0] = 9; return 0; }"
    ),
}


def build(provider: Path, folder: Path) -> None:
    """Compile a stand-in for each library, with every function that `provider` asks for."""
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", str(provider)], capture_output=True, text=True, check=True
    )
    wanted: dict[str, list[str]] = defaultdict(list)
    for line in listed.stdout.splitlines():
        name, _, version = line.split()[-1].partition("@")
        # The driver's own library has no versions.
        wanted[version or "libcuda.so.1" * name.startswith("cu")].append(name)
    for library in LIBRARIES:
        names = wanted[library]
        source = folder / f"{library}.c"
        lines = [OWN.get(n, f"long {n}(void) {{ return 0; }}") for n in names]
        source.write_text("#include <stdlib.h>\n#include <string.h>\n" + "\n".join(lines) + "\n")
        command = ["gcc", "-shared", "-fPIC", "-w", "-o", str(folder / library), str(source)]
        command.append(f"-Wl,-soname,{library}")
        if names and library != "libcuda.so.1":
            script = folder / f"{library}.map"
            script.write_text(f"{library} {{ global: *; }};\n")
            command.append(f"-Wl,--version-script={script}")
        subprocess.run(command, check=True)


def main() -> None:
    """See the top of this file; prints what runs, or the error."""
    packages, folder, model = sys.argv[1:]
    sys.path.insert(0, packages)
    for library in LIBRARIES:
        ctypes.CDLL(f"{folder}/{library}", mode=ctypes.RTLD_GLOBAL)
    import onnxruntime

    from snakekit.runtime.backends import BackendError, BackendOptions
    from snakekit.runtime.backends.onnxcard import read_card
    from snakekit.runtime.backends.ort import open_model

    assert onnxruntime.__file__.startswith(packages)
    path = Path(model)
    try:
        print(open_model(path, "cuda", read_card(path), BackendOptions()).describe().actual)
    except BackendError as error:
        print(error)


if __name__ == "__main__":
    main()
