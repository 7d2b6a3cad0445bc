"""linked_objects: the objects that libraries bring into a program."""

def _is_below(label, packages):
    if label.workspace_name:
        return False
    for package in packages:
        if (label.package + "/").startswith(package + "/"):
            return True
    return False

def _linked_objects_impl(ctx):
    files = []
    for dep in ctx.attr.deps:
        for linker_input in dep[CcInfo].linking_context.linker_inputs.to_list():
            if _is_below(linker_input.owner, ctx.attr.packages) == ctx.attr.others:
                continue
            for library in linker_input.libraries:
                archive = library.pic_static_library or library.static_library
                objects = library.pic_objects or library.objects
                files.extend(objects or ([archive] if archive else []))
    files = depset(files).to_list()
    names = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.write(names, "".join([file.short_path + "\n" for file in files]))
    return [DefaultInfo(
        files = depset([names]),
        runfiles = ctx.runfiles(files = files + [names]),
    )]

linked_objects = rule(
    implementation = _linked_objects_impl,
    doc = "A file that lists the objects of the libraries and of all that they depend on, and these as its runfiles.",
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "packages": attr.string_list(doc = "only objects of these packages and of those below them"),
        "others": attr.bool(doc = "only objects of all other packages instead"),
    },
)
