"""The list of mutants as a file, and a mutant as a tree's overlay.

A mutant in the file is a line with its number, kind, file and the number of the
line, then the line as it is and as it is with the fault:

  17 bound kernels/convolution/cpu/blocked.cc:54
  -          for (int64_t w = 0; w < W_out; w += kColumns) {
  +          for (int64_t w = 0; w <= W_out; w += kColumns) {
"""

import collections
import functools
import os
import re
import sys

Mutant = collections.namedtuple("Mutant", "number kind path line before after")


def read_list(path):
    mutants = []
    with open(path) as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    for i in range(0, len(lines) - 2, 3):
        number, kind, place = lines[i].split()
        where, _, line = place.rpartition(":")
        mutants.append(Mutant(int(number), kind, where, int(line), lines[i + 1][1:],
                              lines[i + 2][1:]))
    return mutants


def write_list(path, heading, mutants):
    with open(path, "w") as file:
        file.write(heading)
        for one in mutants:
            file.write(f"{one.number} {one.kind} {one.path}:{one.line}\n"
                       f"-{one.before}\n+{one.after}\n")


def find(mutant, tree):
    """(the lines of the mutant's file, the index of its line); None if one is gone.

    A line that has moved is found where it is nearest to its old place.
    """
    path = os.path.join(tree, mutant.path)
    if not os.path.exists(path):
        return None
    with open(path) as file:
        lines = file.read().split("\n")
    places = [i for i, line in enumerate(lines) if line == mutant.before]
    if not places:
        return None
    return lines, min(places, key=lambda i: abs(i + 1 - mutant.line))


def warn_of_stale(mutants, tree):
    """Returns those that are there, and says how many are not."""
    present = [one for one in mutants if find(one, tree)]
    gone = sorted(one.number for one in mutants if one not in present)
    if gone:
        print(f"{len(gone)} of {len(mutants)} mutants are of lines that are gone, "
              f"tools/mutants/draw --renew draws others: {gone}", file=sys.stderr)
    return present


def apply(mutant, tree, overlay):
    """Writes the mutant's file to `overlay`; false if its line is gone."""
    found = find(mutant, tree)
    if found is None:
        return False
    lines, place = found
    lines[place] = mutant.after
    target = os.path.join(overlay, mutant.path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w") as file:
        file.write("\n".join(lines))
    return True


@functools.lru_cache(maxsize=None)
def included(tree, path):
    """The project's files that the file includes, itself among them."""
    found = {path}
    with open(os.path.join(tree, path)) as file:
        names = re.findall(r'^#include "([^"]+)"', file.read(), flags=re.M)
    for name in names:
        if os.path.exists(os.path.join(tree, name)):
            found |= included(tree, name)
    return frozenset(found)
