"""bundle: programs, tests and data as one archive for a machine without Bazel."""

def bundle(name, programs, scripts, tests, weights, data, launcher, notice, licences, tags = []):
    """A tar.gz with a folder convlab: programs.tar.xz (bin/, tests/), scripts/, weights/, data/, licences/, NOTICE and the launcher.

    Args:
      name: the target's name, and the archive's.
      programs: labels of programs, each named as its file.
      scripts: labels of shell scripts, which find the programs beside them.
      tests: labels of tests, each named as its file.
      weights: label of the trained weights, or None.
      data: label of the data set's files.
      launcher: label of the launcher.
      notice: label of the list of what others wrote.
      licences: label of their terms.
      tags: the target's tags.
    """
    parts = [("bin", programs), ("scripts", scripts), ("tests", tests), ("data", [data]), ("licences", [licences])]
    if weights:
        parts.append(("weights", [weights]))
    commands = []
    for folder, labels in parts:
        commands.append("mkdir -p $$root/%s" % folder)
        for label in labels:
            commands.append("cp -L $(locations %s) $$root/%s/" % (label, folder))
    native.genrule(
        name = name,
        srcs = programs + scripts + tests + [data, launcher, notice, licences] + ([weights] if weights else []),
        outs = [name + ".tar.gz"],
        testonly = True,
        tags = tags,
        # The archive is reproducible: it contains no times, no owners and no
        # directory order. Stripping symbols halves the programs' size.
        cmd = """
root=$$(mktemp -d)/convlab
mkdir -p $$root
{commands}
cp -L $(location {launcher}) $(location {notice}) $$root/
chmod -R u+w,a+rX $$root
strip $$root/bin/* $$root/tests/*
# Each program that runs kernels holds all of them: in one archive whose
# dictionary is larger than a program they are there once. The launcher unpacks
# it.
tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
  --directory $$root bin tests | xz --threads=1 --lzma2=preset=4,dict=64MiB > $$root/programs.tar.xz
rm -r $$root/bin $$root/tests
tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
  --directory $$root/.. convlab | gzip -9 -n > $@
rm -rf $$root
""".format(commands = "\n".join(commands), launcher = launcher, notice = notice),
        visibility = ["//visibility:public"],
    )
