"""What the main of every Python program does, as RunMain does for those in C++
(common/status/main.h).

    if __name__ == "__main__":
        run_main("tools/mutants/draw", lambda: main(sys.argv[1:]))

A program in a folder below this one puts its parent into sys.path first.
"""
import os
import sys


class _Remembering:
    """A stream that remembers whether it could be written.

    argparse prints its help and goes on where that cannot be written.
    """

    def __init__(self, stream):
        self._stream = stream
        self.failed = False

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def _do(self, function, *arguments):
        try:
            return function(*arguments)
        except OSError:
            self.failed = True
            raise

    def write(self, text):
        return self._do(self._stream.write, text)

    def flush(self):
        return self._do(self._stream.flush)


def run_main(program, main):
    """Calls `main` and ends the program with the status that it returns.

    Standard output that could not be written (a full disk) is an error line and
    status 1, if there is no other error.
    """
    # One that is closed can no more be written than a full one.
    output = sys.stdout = _Remembering(sys.stdout or open("/dev/full", "w"))
    try:
        status = main()
    except SystemExit as end:
        status = end.code
    except OSError:
        if not output.failed:
            raise
        status = 0
    try:
        output.flush()
    except OSError:
        # Python would try once more when it ends, and tell it in its own way.
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())
    if output.failed and not status:
        status = f"{program}: cannot write standard output"
    sys.exit(status)
