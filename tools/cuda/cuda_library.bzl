"""cuda_library: CUDA C++ sources, compiled by nvcc, as a C++ library.

The attributes have the names of bazel-contrib/rules_cuda (which needs a newer
Bazel), so that a BUILD file can move there.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@local_cuda//:defs.bzl", "CUDA")

def _gencode_flags(archs, least_capability):
    """nvcc's flags for architectures such as sm_90a (machine code) and compute_75 (PTX)."""
    flags = []
    older_ptx = False
    for arch in archs:
        kind, _, number = arch.partition("_")
        if kind not in ["sm", "compute"] or not number.rstrip("af").isdigit():
            fail("CUDA architecture '%s': expected names like sm_90a or compute_75" % arch)
        if kind == "compute" and int(number.rstrip("af")) < least_capability:
            older_ptx = True
        flags.append("--generate-code=arch=compute_%s,code=%s" % (number, arch))
    least_ptx = "compute_%d" % least_capability
    if older_ptx and least_ptx not in archs:
        flags.append("--generate-code=arch=%s,code=%s" % (least_ptx, least_ptx))
    return flags

def _release_at_least(major, minor):
    release = [int(part) for part in CUDA.release.split(".")[:2]]
    return release >= [major, minor]

def _compression_flags():
    """Machine code as small as it can be packed: each program of the bundle holds all of it."""
    return ["--compress-mode=size"] if _release_at_least(12, 8) else []

def _compile(ctx, cc_toolchain, compilation_context, source):
    """One object from one source; it is position-independent, and serves both ways."""
    object_file = ctx.actions.declare_file(
        "_objs/%s/%s.o" % (ctx.label.name, source.basename[:-len(".cu")]),
    )
    args = ctx.actions.args()
    args.add_all(["-x", "cu", "-c", source, "-o", object_file])
    args.add_all(["-std=c++17", "-O3", "--extended-lambda", "--expt-relaxed-constexpr"])
    args.add_all(_gencode_flags(
        ctx.attr.archs or ctx.attr._archs[BuildSettingInfo].value,
        ctx.attr.least_capability,
    ))
    args.add_all(_compression_flags())
    if ctx.attr._fast_compile[BuildSettingInfo].value and _release_at_least(13, 0):
        args.add("--Ofast-compile=" + ctx.attr.fast_compile_level)
    args.add("-ccbin", cc_toolchain.compiler_executable)

    # Sandboxes share /tmp, where nvcc's temporary files would collide. Their
    # names must not depend on the process, or objects would differ between
    # builds.
    args.add("-objtemp")
    args.add("-frandom-seed=%s" % ctx.label)
    args.add_all(ctx.attr.copts)
    if ctx.attr.ptxasopts:
        args.add_all(ctx.attr.ptxasopts, before_each = "-Xptxas")
    host_flags = ["-fPIC", "-Wall", "-Wextra", "-Werror"] + ctx.attr.host_copts
    args.add_all(host_flags, before_each = "-Xcompiler")
    args.add_all(["-Werror", "all-warnings"])
    args.add_all(ctx.attr.defines + ctx.attr.local_defines, before_each = "-D")
    args.add_all(compilation_context.defines, before_each = "-D")
    args.add_all(compilation_context.quote_includes, before_each = "-I")
    args.add_all(compilation_context.includes, before_each = "-isystem")
    args.add_all(compilation_context.system_includes, before_each = "-isystem")
    ctx.actions.run(
        executable = CUDA.nvcc,
        arguments = [args],
        inputs = depset(
            [source] + ctx.files.hdrs,
            transitive = [compilation_context.headers, cc_toolchain.all_files],
        ),
        outputs = [object_file],
        mnemonic = "CudaCompile",
        progress_message = "Compiling %s" % source.short_path,
        # A toolkit of another release recompiles everything.
        env = {"PATH": "/usr/bin:/bin", "CUDA_RELEASE": CUDA.release},
    )
    return object_file

def _cuda_library_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    dependencies = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    own = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        defines = depset(ctx.attr.defines),
    )
    compilation_context = cc_common.merge_cc_infos(
        direct_cc_infos = [CcInfo(compilation_context = own)],
        cc_infos = [dependencies],
    ).compilation_context
    objects = depset([
        _compile(ctx, cc_toolchain, dependencies.compilation_context, source)
        for source in ctx.files.srcs
    ])
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        name = ctx.label.name,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        # As pic_objects alone they would be dropped in optimized builds.
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = objects,
            pic_objects = objects,
        ),
        linking_contexts = [dependencies.linking_context],
        alwayslink = ctx.attr.alwayslink,
        disallow_dynamic_library = True,
    )
    return [
        DefaultInfo(files = objects),
        CcInfo(compilation_context = compilation_context, linking_context = linking_context),
    ]

_cuda_library = rule(
    implementation = _cuda_library_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(doc = "for nvcc"),
        "host_copts": attr.string_list(doc = "for the host compiler"),
        "ptxasopts": attr.string_list(doc = "for the assembler, e.g. -v"),
        "archs": attr.string_list(doc = "instead of //tools/cuda:archs"),
        "fast_compile_level": attr.string(
            default = "max",
            values = ["min", "mid", "max"],
            doc = "nvcc's level for //tools/cuda:fast_compile. At max the assembler may have so much " +
                  "more code to do that mid is faster",
        ),
        "least_capability": attr.int(doc = "80 for code that is empty below 8.0: " +
                                           "beside PTX of less there is PTX of that"),
        "defines": attr.string_list(),
        "local_defines": attr.string_list(),
        "alwayslink": attr.bool(),
        "_archs": attr.label(default = "//tools/cuda:archs"),
        "_fast_compile": attr.label(default = "//tools/cuda:fast_compile"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def cuda_library(name, deps = [], target_compatible_with = [], **kwargs):
    """See the rule's attributes; the CUDA runtime is always among the deps.

    Args:
      name: the target's name.
      deps: C++ and CUDA libraries.
      target_compatible_with: as everywhere; without a toolkit the target is
        incompatible, and skipped, whatever this says.
      **kwargs: the rule's other attributes.
    """
    if CUDA.available:
        _cuda_library(
            name = name,
            deps = deps + ["@local_cuda//:cuda_runtime"],
            target_compatible_with = target_compatible_with,
            **kwargs
        )
    else:
        native.cc_library(
            name = name,
            tags = kwargs.get("tags", []),
            target_compatible_with = ["//tools/cuda:not_on_this_machine"],
            visibility = kwargs.get("visibility"),
        )
