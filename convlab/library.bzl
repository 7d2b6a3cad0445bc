"""static_archive: a library and all that it needs as one archive, whose symbols are the interface's alone."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _static_archive_impl(ctx):
    cc_toolchain = find_cpp_toolchain(ctx)
    objects = []
    archives = []
    flags = []
    for linker_input in ctx.attr.dep[CcInfo].linking_context.linker_inputs.to_list():
        # Those of system libraries; what is left are shared ones, which the
        # archive's users link.
        flags.extend([flag for flag in linker_input.user_link_flags if flag.startswith("-l:")])
        for library in linker_input.libraries:
            found = library.pic_objects or library.objects
            archive = library.pic_static_library or library.static_library
            if found:
                objects.extend(found)
            elif archive:
                archives.append(archive)
    objects = depset(objects).to_list()
    archives = depset(archives).to_list()
    args = ctx.actions.args()
    args.add(cc_toolchain.compiler_executable)
    args.add(ctx.file.symbols)
    args.add(ctx.outputs.archive)
    args.add_all(objects)
    args.add("-Wl,--start-group")
    args.add_all(archives)
    args.add_all(depset(flags).to_list())
    args.add("-Wl,--end-group")
    ctx.actions.run_shell(
        inputs = depset(
            objects + archives + [ctx.file.symbols],
            transitive = [cc_toolchain.all_files],
        ),
        outputs = [ctx.outputs.archive],
        # One object, in which the linker has merged what headers brought many
        # times, and of whose symbols others see the interface only. objcopy
        # does not hide unique ones (type u), unless they were made weak before:
        # users' own copies, as of std::make_shared's, would clash with them.
        command = """
set -eu
compiler=$1 symbols=$2 archive=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$compiler" -nostdlib -r -Wl,--force-group-allocation -o "$work/convlab.o" "$@"
nm --defined-only --extern-only "$work/convlab.o" | awk '$2 == "u" { print $3 }' > "$work/unique"
objcopy --weaken-symbols="$work/unique" "$work/convlab.o"
objcopy --strip-debug --keep-global-symbols="$symbols" "$work/convlab.o"
ar rcsD "$archive" "$work/convlab.o"
""",
        arguments = [args],
        mnemonic = "StaticArchive",
        use_default_shell_env = True,
    )

static_archive = rule(
    implementation = _static_archive_impl,
    attrs = {
        "dep": attr.label(mandatory = True, providers = [CcInfo]),
        "symbols": attr.label(mandatory = True, allow_single_file = True, doc = "their names, one a line"),
        "archive": attr.output(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
