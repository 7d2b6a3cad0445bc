"""Runs programs while something is refused to them, and tells what became of
each run: a case.
"""
import collections
import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile

SECONDS = 60  # after which a program hangs
UNFINISHED = "/.unfinished-"  # a folder that reports/submission_main.cc makes

Outcome = collections.namedtuple("Outcome", "status out err files before")


class Campaign:
    def __init__(self, root, programs, folder, options):
        self.root = root  # of the repository's files
        self.programs, self.folder = programs, folder  # of everything made
        self.leaks, self.bundle = options.leaks, options.bundle

    def forks(self, fault):
        """Whether one run does for many cases, as far as that is possible."""
        return fault.kind == "allocation" and not self.bundle

    def command(self, program, fault, at, log):
        """A case's command and environment."""
        path, tools = program.path, "tools/faults"
        if self.bundle:
            path, tools = os.path.basename(path.replace("_without_gpu", "")), ""
        tools = os.path.join(self.programs, tools)
        command = [os.path.join(self.programs, path)]
        command += program.arguments.split()
        environment = {"PATH": os.environ["PATH"], "TMPDIR": "tmp", "CI": "1"}
        for name in ("RUNFILES_DIR", "TEST_SRCDIR", "CONVLAB_DATA"):
            if name in os.environ:
                environment[name] = os.environ[name]
        environment.update(program.environment)
        environment["CONVLAB_FAULT"] = at
        if at == "0":
            # To know the places, each call's stack is walked, which takes most
            # of a run's time.
            environment["CONVLAB_FAULT_LOG"] = log
        if self.forks(fault) or self.bundle:
            environment["LD_PRELOAD"] = os.path.join(
                tools, "libdriver_faults.so" if self.bundle
                else "liballocations.so")
        elif fault.kind != "cuda":
            command = [os.path.join(tools, "system_calls"), fault.kind,
                       fault.error, at, log] + command
        if self.leaks:
            # 23: what it finds; 0 and 1 are the programs' own.
            environment["ASAN_OPTIONS"] = (
                "exitcode=23:detect_leaks=1:allocator_may_return_null=1:"
                "alloc_dealloc_mismatch=0:verify_asan_link_order=0")
            environment["LSAN_OPTIONS"] = (
                "print_suppressions=0:suppressions=" +
                os.path.join(self.root, "tools/faults/leaks.suppressions"))
        return command, environment

    def start(self, program, fault, at, folder):
        """A run's status, standard output and standard error."""
        command, environment = self.command(program, fault, at, folder + ".log")
        try:
            done = subprocess.run(
                command, env=environment, cwd=folder, timeout=SECONDS,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, check=False)
            return done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            return "hangs", late.stdout or b"", late.stderr or b""

    @contextlib.contextmanager
    def prepared(self, program):
        """A new folder with the program's inputs, and the files in it."""
        folder = tempfile.mkdtemp(dir=self.folder)
        try:
            os.mkdir(os.path.join(folder, "tmp"))
            for source, name in program.inputs:
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                source = os.path.join(self.root, source)
                if os.path.isdir(source):
                    os.symlink(source, path)
                else:
                    shutil.copyfile(source, path)
            for name in program.outputs:
                path = os.path.join(folder, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                if not os.path.exists(path):
                    with open(path, "wb") as file:
                        file.write(b"old\n")
            yield folder, files_in(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def without_unfinished(self, program, fault, folder, outcome):
        """The outcome but for unfinished folders that the next run removes."""
        if not any(UNFINISHED in path for path in outcome.files):
            return outcome
        # It does so in a copy: the parent of a run that was forked is alive and
        # keeps its lock.
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            copy = os.path.join(place, "copy")
            shutil.copytree(folder, copy, symlinks=True)
            self.start(program, fault, "0", copy)
            left = files_in(copy)
        return outcome._replace(files={
            path: content for path, content in outcome.files.items()
            if UNFINISHED not in path or path in left})

    def run(self, program, fault, at):
        """Runs a case in a new folder; returns its outcome and its log."""
        with self.prepared(program) as (folder, before):
            ended = self.start(program, fault, at, folder)
            outcome = self.without_unfinished(
                program, fault, folder,
                Outcome(*ended, files_in(folder), before))
            log = folder + ".log"
            if not os.path.exists(log):
                return outcome, []
            with open(log, encoding="ascii") as file:
                numbers = [int(line) for line in file]
            os.remove(log)
            return outcome, numbers

    def fork(self, program, fault, cases):
        """Yields cases of rising calls, and the outcome of each: all run in
        children of one run (allocations.cc), which share its folder one after
        the other. None is the outcome where that is not possible."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command, environment = self.command(
            program, fault, "@%d" % theirs.fileno(), "")
        with self.prepared(program) as (folder, before), \
                tempfile.TemporaryFile() as out, \
                tempfile.TemporaryFile() as err, \
                subprocess.Popen(
                    command, env=environment, cwd=folder, stdout=out,
                    stderr=err, stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()]), ours:
            theirs.close()
            for at in cases:
                child = ask(ours, at)
                if child is None or child < 0:
                    yield at, None
                    continue
                kept, told = files_in(folder), (written(out), written(err))
                ours.send(b"go")
                late = not select.select([ours], [], [], SECONDS)[0]
                if late:
                    os.kill(child, signal.SIGKILL)
                status = os.waitstatus_to_exitcode(int(ours.recv(32)))
                outcome = Outcome("hangs" if late else status, written(out),
                                  written(err), files_in(folder), before)
                yield at, self.without_unfinished(program, fault, folder,
                                                  outcome)
                put_back(folder, outcome.files, kept)
                out.truncate(len(told[0]))
                err.truncate(len(told[1]))

    def outcomes(self, program, fault, cases):
        """Yields cases, the outcome of each, and whether that was forked."""
        anew = cases
        if self.forks(fault):
            anew = []
            for at, outcome in self.fork(program, fault, cases):
                # A fork while the program ends, in a library that holds a lock
                # of its own, may wait for that lock forever.
                if outcome is None or outcome.status == "hangs":
                    anew.append(at)
                else:
                    yield at, outcome, True
        for at in anew:
            yield at, self.run(program, fault, at)[0], False


def ask(run, case):
    """Names a case to a run that forks; returns the child, or None if the run
    has ended before such a call."""
    try:
        run.send(case.encode())
        return int(run.recv(32) or 0) or None
    except ConnectionError:
        return None


def written(file):
    """What a process has written to a file that it shares with this one."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def files_in(folder):
    """The contents of files by their paths; folders have none."""
    found = {}
    for place, folders, names in os.walk(folder):
        below = place[len(folder) + 1:]
        for name in folders:
            found[os.path.join(below, name, "")] = b""
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                found[os.path.join(below, name)] = file.read()
    return found


def put_back(folder, now, files):
    """Gives a folder the files that it had; `now` it has what a run has left."""
    for path in sorted(now.keys() - files.keys(), reverse=True):
        remove = os.rmdir if path.endswith("/") else os.remove
        remove(os.path.join(folder, path))
    for path, content in files.items():
        if now.get(path) == content:
            continue
        if path.endswith("/"):
            os.mkdir(os.path.join(folder, path))
        else:
            with open(os.path.join(folder, path), "wb") as file:
                file.write(content)
