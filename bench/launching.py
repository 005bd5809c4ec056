"""Python's part of a call of the fused engine, without a GPU: a driver that is played takes every launch and runs none.

    python bench/launching.py        prints a table and keeps bench/results/launching.json
    python bench/launching.py --once   starts every kernel of both templates, of decoding and of sweeps once: how many

The host's side runs as on Hopper, with Triton's own launcher in C. Arrays lie on the CPU, on one thread: what PyTorch
adds for a GPU is left out. Told are milliseconds of a call, forward and both ways, the kernels that it starts, and its
time in launches of a kernel that has one argument, in the same run. Needs triton and a C compiler.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import in_turns, keep, timed

ROUNDS, AT_ONCE = 15, 20  # of each call, and calls in one
N, WIDTH, HEADS = 256, 128, 2

DRIVER = """
#include "cuda.h"
#include <string.h>
#undef cuDevicePrimaryCtxRetain
#undef cuPointerGetAttribute
#undef cuCtxGetDevice
#undef cuStreamIsCapturing
static int launched = 0;
int launches(void) { return launched; }
CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** p, void** e) { launched++; return 0; }
CUresult cuPointerGetAttribute(void* to, CUpointer_attribute a, CUdeviceptr p) { *(CUdeviceptr*)to = p; return 0; }
CUresult cuTensorMapEncodeTiled(CUtensorMap* t, CUtensorMapDataType a, cuuint32_t b, void* c, const cuuint64_t* d,
    const cuuint64_t* e, const cuuint32_t* f, const cuuint32_t* g, CUtensorMapInterleave h, CUtensorMapSwizzle i,
    CUtensorMapL2promotion j, CUtensorMapFloatOOBfill k) { memset(t, 0, sizeof *t); return 0; }
CUresult cuGetErrorString(CUresult e, const char** s) { *s = "an error that is played"; return 0; }
CUresult cuDriverGetVersion(int* v) { *v = 13000; return 0; }
CUresult cuCtxGetCurrent(CUcontext* c) { *c = (CUcontext)1; return 0; }
CUresult cuCtxSetCurrent(CUcontext c) { return 0; }
CUresult cuCtxGetDevice(CUdevice* d) { *d = 0; return 0; }
CUresult cuCtxGetLimit(size_t* v, CUlimit l) { *v = 0; return 0; }
CUresult cuCtxSetLimit(CUlimit l, size_t v) { return 0; }
CUresult cuDeviceGet(CUdevice* d, int place) { *d = 0; return 0; }
CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice d) { *c = (CUcontext)1; return 0; }
CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute a, CUdevice d) {
    *v = a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT ? 132 : 232448; return 0; }
CUresult cuFuncGetAttribute(int* v, CUfunction_attribute a, CUfunction f) {
    *v = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0; return 0; }
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int v) { return 0; }
CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache c) { return 0; }
CUresult cuModuleLoadData(CUmodule* m, const void* image) { *m = (CUmodule)1; return 0; }
CUresult cuModuleUnload(CUmodule m) { return 0; }
CUresult cuModuleGetFunction(CUfunction* f, CUmodule m, const char* name) { *f = (CUfunction)1; return 0; }
CUresult cuOccupancyMaxActiveClusters(int* n, CUfunction f, const CUlaunchConfig* c) { *n = 1; return 0; }
CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus* to) { *to = 0; return 0; }
"""


def main() -> None:
    """Build the driver, measure in a process that loads it, print the table, keep it as JSON."""
    once = "--once" in sys.argv
    if "--played" in sys.argv:
        sys.stdout.write(json.dumps(started() if once else measured()) + "\n")
        return
    import triton

    headers = Path(triton.__file__).parent / "backends" / "nvidia" / "include"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "driver.c")
        source.write_text(DRIVER, encoding="utf-8")
        library = [f"-I{headers}", "-shared", "-fPIC", "-O2", str(source), "-o", f"{folder}/libcuda.so.1"]
        subprocess.run([compiler, *library], check=True)
        found = {"LD_LIBRARY_PATH": folder, "TRITON_LIBCUDA_PATH": folder}
        environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"} | found
        done = subprocess.run(
            [sys.executable, __file__, "--played", *sys.argv[1:]],
            env=environment, check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    rows = json.loads(done.stdout.splitlines()[-1])
    if once:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'formula':28} {'forward':>8} {'both':>8}   ms  {'kernels':>8} {'forward':>8} {'both':>8}   bare launches")
    for name, row in rows.items():
        counts = f"{row['kernels']:8d} {row['forward_launches']:8.1f} {row['both_launches']:8.1f}"
        print(f"{name:28} {row['forward_ms']:8.3f} {row['both_ms']:8.3f}       {counts}")
    keep("launching", "calls", {"n": N, "width": WIDTH, "rows": rows}, "regard", "torch", "triton")


def play() -> None:
    """From here on, the host's side believes in a chip, and Triton in its driver."""
    import torch
    from triton.backends.nvidia.driver import CudaDriver
    from triton.runtime import driver

    from regard.engines import triton as engine
    from regard.engines.triton.hopper import launch as hopper
    from regard.engines.triton.templates import launch

    played = CudaDriver()
    played.get_device_capability = lambda *_: (9, 0)
    played.get_current_device = lambda: 0
    played.get_current_stream = lambda *_: 0
    driver.set_active(played)
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(multi_processor_count=132, total_memory=2**37)
    engine.is_interpreted = lambda: True  # arrays lie on the CPU here
    launch.has_descriptors = lambda _: True
    hopper._chip = lambda _: None


def cases(n: int = N) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Formulas, with their tables."""
    import torch

    import regard as rg
    from regard import H, causal, d, documents, dot, h, i, j, sqrt, table

    ids, bias = torch.arange(n)[None] // 64, torch.randn(HEADS, 2 * n - 1, requires_grad=True)
    masked = rg.Attention(mask=documents("ids"))
    return {
        "softmax": (rg.Attention(), {}),
        "causal": (rg.Attention(mask=causal), {}),
        "ALiBi, causal": (rg.Attention(score=dot / sqrt(d) - 2 ** (-8 * (h + 1) / H) * (i - j), mask=causal), {}),
        "documents": (masked, {"ids": ids}),
        "documents, int32": (masked, {"ids": ids.int()}),
        "relative": (rg.Attention(score=dot / sqrt(d) + table("bias")[h, i - j + n - 1]), {"bias": bias}),
    }


def started() -> dict[str, dict[str, int]]:
    """How many kernels each case starts: forward and backward on either template, and a few queries."""
    import torch

    import regard as rg

    play()
    count = ctypes.CDLL("libcuda.so.1").launches
    keys = 1024
    q, k, v = (torch.randn(1, HEADS, keys, WIDTH).bfloat16().requires_grad_() for _ in range(3))
    few = torch.randn(1, HEADS, 3, WIDTH).bfloat16()

    def launched(attention: Any, query: Any, tables: dict[str, Any], template: str | None) -> int:
        before = count()
        with rg.fused(template=template):
            y = attention(query, k, v, engine="triton", **tables)
            if query is q:
                leaves = [x for x in (q, k, v, *tables.values()) if x.requires_grad]
                torch.autograd.grad(y, leaves, torch.randn_like(y))
        return int(count()) - before

    found = {}
    for name, (attention, tables) in cases(keys).items():
        found[name] = {how: launched(attention, q, tables, how) for how in ("hopper", "triton")}
        found[name]["decoding"] = launched(attention, few, tables, None)
    return {**found, "sweeps": swept(count)}


def swept(count: Callable[[], int]) -> dict[str, int]:
    """How many kernels one run starts in `gpu_sweep.py`, by what is swept, and in `gpu_decode.py`."""
    import gpu_decode
    import gpu_sweep

    gpu_sweep.DEVICE = "cpu"
    runs = {}
    for kernel in gpu_sweep.PRODUCTS:
        tiles = next(gpu_sweep.tilings(kernel, WIDTH))
        runs[kernel] = gpu_sweep.runner(gpu_sweep.Variant("documents", WIDTH, 1024, kernel, tiles))
    variant = gpu_decode.variants("soft-cap", 16, (4, 2), 1024)[0]
    runs["decoding"] = lambda: gpu_decode.run(variant)
    found = {}
    for name, run in runs.items():
        before = count()
        run()
        found[name] = int(count()) - before
    return found


def measured() -> dict[str, dict[str, float]]:
    import torch
    import triton
    import triton.language as tl

    play()
    torch.set_num_threads(1)
    q, k, v = (torch.randn(1, HEADS, N, WIDTH).bfloat16().requires_grad_() for _ in range(3))
    dy, one = torch.randn_like(v), torch.zeros(1)
    count = ctypes.CDLL("libcuda.so.1").launches

    @triton.jit
    def bare(x):  # type: ignore[no-untyped-def]
        tl.store(x, 1.0)

    def forward(attention: Any, tables: dict[str, Any]) -> None:
        with torch.no_grad():
            attention(q, k, v, engine="triton", **tables)

    def both(attention: Any, tables: dict[str, Any]) -> None:
        leaves = [x for x in (q, k, v, *tables.values()) if x.requires_grad]
        torch.autograd.grad(attention(q, k, v, engine="triton", **tables), leaves, dy)

    def many(run: Callable[..., None], *arguments: Any) -> Callable[[], float]:
        return timed(lambda: [run(*arguments) for _ in range(AT_ONCE)])

    found = {}
    for name, case in cases().items():
        runs = {"forward": many(forward, *case), "both": many(both, *case), "bare": many(bare[(1,)], one)}
        times = {key: seconds / AT_ONCE for key, seconds in in_turns(runs, ROUNDS).items()}
        before = count()
        both(*case)
        found[name] = {
            "kernels": count() - before,
            **{f"{key}_ms": 1e3 * times[key] for key in ("forward", "both")},
            **{f"{key}_launches": times[key] / times["bare"] for key in ("forward", "both")},
        }
    return found


if __name__ == "__main__":
    main()
