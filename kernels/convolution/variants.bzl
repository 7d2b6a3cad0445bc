"""Every variant of the convolution, in the order in which programs and reports list them.

Adding a kernel is a file and a row. The file is `cpu/<name>.cc`, which defines
the Variant k<Name>, or `cuda/<folder>/<name>.cu`, which defines the
KernelVariant k<Name> (im2col_eigen: kIm2colEigen). Library target, table, tests,
milestones and reports follow from the row.
"""

load("@local_cuda//:defs.bzl", "CUDA")
load("//tools/cuda:cuda_library.bzl", "cuda_library")

def _row(name, folder, deps = [], least_capability = 0, fast_compile_level = "max"):
    """A variant whose file lies in `folder`, below this one; the first part names its backend."""
    return struct(
        name = name,
        folder = folder,
        backend = folder.split("/")[0],
        deps = deps,
        least_capability = least_capability,
        fast_compile_level = fast_compile_level,
    )

# It is one for all convolutions of a kernel, which take turns; those that are
# replayed from a recording do not.
_CONSTANT_MEMORY = "//kernels/convolution/cuda/lib:constant_memory"

# What every variant's library may use without saying so in its row.
CPU_KERNEL_DEPS = [
    "//common/math:rounding",
    "//common/parallel",
    "//common/status",
    "//kernels/convolution",
    "@abseil",
]
CUDA_KERNEL_DEPS = [
    "//common/math:rounding",
    "//kernels/convolution/cuda/lib:kernel",
]

VARIANTS = [
    # The path on the CPU.
    _row("naive", "cpu"),
    _row("naive_parallel", "cpu"),
    _row("im2col_eigen", "cpu", ["@eigen"]),
    _row("blocked", "cpu"),
    _row("vectorized", "cpu", ["//kernels/simd:cpu_target"]),
    _row("register_tiled", "cpu", [
        ":filter_groups",
        "//kernels/simd:cpu_target",
    ]),
    _row("dense_lanes", "cpu", [
        ":dense_lanes_block",
        ":dense_lanes_plan",
        ":filter_groups",
        "//kernels/layers",
    ]),

    # The lessons on the GPU, one path.
    _row("naive", "cuda/lessons"),
    _row("tiled_shared", "cuda/lessons", [":tiles"]),
    _row("constant_weights", "cuda/lessons", [
        ":constant_filters",
        ":tiles",
        _CONSTANT_MEMORY,
    ]),
    _row("restrict_unrolled", "cuda/lessons", [
        ":constant_filters",
        ":tiles",
        _CONSTANT_MEMORY,
    ]),
    _row("channel_parallel", "cuda/lessons", [":tiles"]),
    _row("channel_tree", "cuda/lessons"),
    _row("channel_atomics", "cuda/lessons"),
    _row("im2col_shared", "cuda/lessons"),
    _row("im2col_cublas", "cuda/lessons", ["//kernels/cuda:cublas"]),
    _row("fused_im2col", "cuda/lessons"),
    _row("register_tiled", "cuda/lessons"),
    _row("whole_image", "cuda/lessons", [
        ":whole_image_kernel",
        "//kernels/convolution/cuda/lib:launch",
    ]),

    # Specialties: few images, techniques, lower precision.
    _row("few_images", "cuda/few_images", [
        ":estimate",
        ":kernels",
        "//kernels/convolution/cuda/lib:inset",
        "//kernels/convolution/cuda/lib:launch",
    ]),
    _row("streams", "cuda/lessons"),
    _row("fft", "cuda/lessons", [":tiles"]),
    _row("half2", "cuda/direct", [
        ":half2_kernel",
        ":launch",
    ]),
    _row("tensor_tf32", "cuda/implicit", [":tensor_core"], least_capability = 80),
    _row("tensor_fp16", "cuda/implicit", [":tensor_core"], least_capability = 80),
    _row("wgmma_fp16", "cuda/wgmma", [":wgmma_convolution"]),

    # Production kernels.
    _row("direct_tiled", "cuda/direct", [
        ":direct_tiled_kernel",
        ":launch",
        _CONSTANT_MEMORY,
    ]),
    _row("tensor_split", "cuda/split", [
        ":kernel",
        ":padded_split",
        ":plan",
        "//kernels/convolution/cuda/lib:arranging_kernel",
        "//kernels/convolution/cuda/lib:halves",
        "//kernels/convolution/cuda/lib:inset",
        "//kernels/convolution/cuda/lib:launch",
        "//kernels/convolution/cuda/lib:mend",
    ], least_capability = 80),
    _row("tensor_strips", "cuda/strips", [
        ":padded_strips",
        ":padded_tensor_strips",
        ":tensor_strips_kernel",
        "//kernels/convolution/cuda/lib:arranging_kernel",
        "//kernels/convolution/cuda/lib:halves",
        "//kernels/convolution/cuda/lib:inset",
        "//kernels/convolution/cuda/lib:launch",
        "//kernels/convolution/cuda/lib:mend",
    ], least_capability = 80),
    _row("wgmma_strips", "cuda/strips", [
        ":padded_strips",
        ":padded_wgmma_strips",
        ":wgmma_strips_kernel",
        "//kernels/convolution/cuda/lib:arranging_kernel",
        "//kernels/convolution/cuda/lib:halves",
        "//kernels/convolution/cuda/lib:inset",
        "//kernels/convolution/cuda/lib:launch",
        "//kernels/convolution/cuda/lib:mend",
    ]),
    _row("tensor_wgmma", "cuda/wgmma", [
        ":padded_kernel",
        ":wgmma_convolution",
    ], fast_compile_level = "mid"),
]

def _symbol(row):
    return "k" + "".join([word.capitalize() for word in row.name.split("_")])

def variant_libraries():
    """One target per variant of the calling folder, so that each compiles and rebuilds alone."""
    for row in VARIANTS:
        if native.package_name() != "kernels/convolution/" + row.folder:
            continue
        elif row.backend == "cpu":
            native.cc_library(
                name = row.name,
                srcs = [row.name + ".cc"],
                deps = CPU_KERNEL_DEPS + row.deps,
                visibility = ["//kernels/convolution:__pkg__"],
            )
        else:
            cuda_library(
                name = row.name,
                srcs = [row.name + ".cu"],
                fast_compile_level = row.fast_compile_level,
                least_capability = row.least_capability,
                deps = CUDA_KERNEL_DEPS + row.deps,
                visibility = ["//kernels:__subpackages__"],
            )

_TABLE = """cat > $@ <<'END'
// Generated from variants.bzl.
#include "kernels/convolution/variants.h"
{include}

namespace convlab {{
{declarations}
absl::Span<const Variant* const> Variants() {{
{adapted}
  static const Variant* const kTable[] = {{
{pointers}
  }};
  return kTable;
}}

std::map<std::string, double> EstimatesNs(const Problem& problem,
                                          const cuda::DeviceLimits& limits) {{
  std::map<std::string, double> estimates;
{estimates}
  return estimates;
}}

}}  // namespace convlab
END
"""

def variant_table(name, hdrs, srcs, visibility):
    """The C++ table of all variants, generated: no registration at start-up."""
    rows = [row for row in VARIANTS if row.backend == "cpu" or CUDA.available]
    declarations = []
    adapted = []
    pointers = []
    for row in rows:
        symbol = "%s::%s" % (row.backend, _symbol(row))
        if row.backend == "cpu":
            declarations.append("namespace cpu { extern const Variant %s; }" % _symbol(row))
            pointers.append("    &%s," % symbol)
        else:
            declarations.append("namespace cuda { extern const KernelVariant %s; }" % _symbol(row))
            recordable = "false" if _CONSTANT_MEMORY in row.deps else "true"
            adapted.append("  static const Variant %s = cuda::Adapt<%s>(/*recordable=*/%s);" %
                           (row.name, symbol, recordable))
            pointers.append("    &%s," % row.name)
    native.genrule(
        name = name + "_source",
        outs = [name + ".cc"],
        cmd = _TABLE.format(
            include = "#include \"kernels/convolution/cuda/lib/adapt.h\"" if CUDA.available else "",
            declarations = "\n".join(declarations),
            adapted = "\n".join(adapted),
            pointers = "\n".join(pointers),
            estimates = "\n".join([
                "  cuda::AddEstimate(cuda::%s, problem, limits, estimates);" % _symbol(row)
                for row in rows
                if row.backend == "cuda"
            ]) or "  static_cast<void>(problem), static_cast<void>(limits);",
        ),
    )
    native.cc_library(
        name = name,
        srcs = [name + ".cc"] + srcs,
        hdrs = hdrs,
        deps = [
            ":convolution",
            "//kernels/convolution/cuda/lib:device_limits",
            "@abseil",
        ] + ["//kernels/convolution/%s:%s" % (row.folder, row.name) for row in rows] +
               (["//kernels/convolution/cuda/lib:adapt"] if CUDA.available else []),
        visibility = visibility,
    )
