"""Mutation operators: the small faults that a line of a kernel can be given.

An operator is a pattern and what replaces its match. It works on one line whose
comments and strings are blanked, so that positions stay those of the line. The
kinds say what is wrong then: an index, a bound, a barrier, a rounding, a stale
value, a constant, swapped operands, a dropped term, a stride, a missing tail, a
missing predicate.
"""

import re

_OPERAND = r"(?:[A-Za-z_][\w.]*(?:\[\w+\]|\(\))?|\d+|\((?:[^()]|\([^()]*\))*\))"
_NAME = r"[A-Za-z_]\w*"
_ARGUMENT = r"[A-Za-z_0-9][\w.+* /%-]*"

# Names that stand beside each other and are easily confused.
_PARTNERS = [
    ("H", "W"), ("h", "w"), ("p", "q"), ("H_out", "W_out"), ("i", "j"),
    ("height", "width"), ("row", "column"), ("rows", "columns"), ("x", "y"),
    ("C", "M"), ("high", "low"), ("first", "second"), ("h0", "w0"),
    ("p0", "q0"), ("begin", "end"), ("b", "m"), ("C", "K"), ("a", "b"),
    ("input_rows", "input_columns"), ("output_height", "output_width"),
]

# Calls without which threads, copies or caches are no longer in order.
_ORDERING = (r"(?:\w+(?:::|\.|->))*(?:__sync\w+|cudaStreamWaitEvent|__threadfence\w*|"
             r"(?:Sync|Wait|Arrive|Fence|Commit|Expect)\w*|\w+_wait|\w+_sync)")


def _swap_partners(line, nearby):
    for a, b in _PARTNERS:
        for name, other in ((a, b), (b, a)):
            if not re.search(rf"(?<![\w.>]){other}(?!\w)", nearby):
                continue
            for match in re.finditer(rf"(?<![\w.>:]){name}(?![\w(<:])", line):
                yield match.start(), match.end(), other


def _swap_operands(line):
    for match in re.finditer(rf"({_OPERAND}) ([-/%]) ({_OPERAND})", line):
        yield match.start(), match.end(), f"{match[3]} {match[2]} {match[1]}"
    for match in re.finditer(rf"(?<=[(,] )?({_NAME}), ({_NAME})(?=[,)])", line):
        yield match.start(), match.end(), f"{match[2]}, {match[1]}"


def _pattern(pattern, replacement):
    compiled = re.compile(pattern)

    def sites(line):
        for match in compiled.finditer(line):
            yield match.start(), match.end(), match.expand(replacement)
    return sites


def _index(line):
    if re.match(r"\s*(?:static |const(?:expr)? |__shared__ |__constant__ |"
                r"(?:float|double|half|__half2?|int|uint32_t|int64_t|uint64_t|auto|char|bool)\b)",
                line) and "=" not in line:
        return  # a declaration's size
    for match in re.finditer(r"(?<=[\w\])])\[([^\[\]]+)\]", line):
        if re.match(r"\s*[&=]", match[1]) or not re.search(r"\w", match[1]):
            continue
        yield match.start(), match.end(), f"[{match[1]} + 1]"
        if not match[1].isdigit():
            yield match.start(), match.end(), f"[{match[1]} - 1]"


def _constant(line):
    for match in re.finditer(r"(?<![\w.])(\d+)(?![\w.'xX])", line):
        value = int(match[1])
        yield match.start(), match.end(), str(value + 1)
        if value > 1:
            yield match.start(), match.end(), str(value - 1)
    for match in re.finditer(r"(?<![\w.])(\d+\.\d*)f?(?!\w)", line):
        yield match.start(), match.start(1) + len(match[1]), str(float(match[1]) + 1)


def _powers(line):
    """Scales and thresholds, as powers of two."""
    for match in re.finditer(r"0x1p([+-]?\d+)", line):
        for other in (int(match[1]) + 1, int(match[1]) - 1):
            yield match.start(), match.end(), f"0x1p{other}"


def _bounds(line):
    if "template" in line:
        return
    for old, new in (("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="),
                     ("!=", "==")):
        for match in re.finditer(rf" {old} ", line):
            yield match.start(), match.end(), f" {new} "


def _statement(pattern):
    """The whole statement of a line is left out."""
    compiled = re.compile(rf"^\s*({pattern};)\s*$")

    def sites(line):
        match = compiled.match(line)
        if match:
            yield match.start(1), match.end(1), ";"
    return sites


OPERATORS = {
    "index": [_index],
    "bound": [_bounds],
    "barrier": [
        _statement(rf"{_ORDERING}(?:<[^>]*>)?\([^;]*\)"),
    ],
    "rounding": [
        _pattern(r"\b(__\w+)_rn\b", r"\1_rz"),
        _pattern(r"\bCeilDivide\((.+?), ([^,()]+)\)", r"((\1) / (\2))"),
        _pattern(r"\bRoundUp\((.+?), ([^,()]+)\)", r"(\1)"),
        _pattern(r"\bMulAdd\(", "NegMulAdd("),
        _pattern(r"\bdouble\b", "float"),
        _powers,
    ],
    "stale": [
        _statement(r"(?:[\w.>*-]|\[[^\]]*\])+ (?:[-+*/^|&]|<<|>>)?= [^;]+"),
        _statement(r"(?:\+\+|--)[\w.>-]+"),
        _pattern(r" \^= 1\b", " ^= 0"),
        _pattern(rf", \+\+{_NAME}\)", ")"),
    ],
    "constant": [_constant],
    "swap": [_swap_operands],
    "term": [
        _pattern(rf"(?<=[\w\])]) [+-] {_OPERAND}(?=[,;)\]])", ""),
        _pattern(rf"(?<=[(\[,=] ){_OPERAND} \+ ", ""),
        _pattern(rf"(?<=[(\[]){_OPERAND} \+ ", ""),
    ],
    "stride": [
        _pattern(rf" \* ({_NAME})(?![\w(.])", r" * (\1 + 1)"),
        _pattern(rf" \* ({_NAME})(?![\w(.])", ""),
        _pattern(rf" \+= ({_NAME})(?=[;,)])", r" += \1 + 1"),
    ],
    "tail": [
        _pattern(rf"\b(?:std::)?min(?:<\w+>)?\(({_ARGUMENT}), ({_ARGUMENT})\)", r"(\1)"),
        _pattern(rf"\b(?:std::)?max(?:<\w+>)?\(({_ARGUMENT}), ({_ARGUMENT})\)", r"(\1)"),
        _pattern(rf"(?<=; )({_NAME}) < ([^;]+);", r"\1 + 1 < \2;"),
        _pattern(rf"(?<=; )({_NAME}) < ([^;]+);", r"\1 < \2 + 1;"),
    ],
    "predicate": [
        _pattern(r"\bif \(((?:[^()]|\((?:[^()]|\([^()]*\))*\))+)\)", "if (true)"),
        _pattern(r"\bif \(((?:[^()]|\((?:[^()]|\([^()]*\))*\))+)\)", "if (false)"),
        _pattern(rf"({_OPERAND}(?: [<>=!]=? {_OPERAND})?) && {_OPERAND}(?: [<>=!]=? {_OPERAND})?",
                 r"\1"),
        _pattern(rf"{_OPERAND}(?: [<>=!]=? {_OPERAND})? && ({_OPERAND}(?: [<>=!]=? {_OPERAND})?)",
                 r"\1"),
        _pattern(rf"({_OPERAND}(?: [<>=!]=? {_OPERAND})?) \|\| {_OPERAND}(?: [<>=!]=? {_OPERAND})?",
                 r"\1"),
        _pattern(r" \? ([^:?]+) : ([^:;,?]+?)(?=[;,)]*$)", r" ? \1 : \1"),
    ],
}

# No output depends on these: estimated times, explanations of refusals, and
# what brings memory to a cache early.
_NO_OUTPUT_FUNCTION = re.compile(r"^\S.*\b\w*(?:Estimate|Reject)\w*\(.*[^;]$")
_NO_OUTPUT_LINE = re.compile(
    r"^\s*#|\bPrefetch\w*\(|\bstatic_assert\b|\busing\b|\bnamespace\b|\btemplate\b|"
    r"\bRETURN_IF_|\breturn CheckLaunch|\boperator\b|^\s*(?:class|struct)\b|\b__launch_bounds__")
_TABLE = re.compile(r"^extern const (?:Kernel)?Variant ")


def blank(text):
    """The text with comments, strings and characters as spaces."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match[0])
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])'",
                  spaces, text, flags=re.S)


def code_lines(text):
    """(number from 1, line, blanked line) of the lines that compute outputs."""
    skipping = False
    for number, (line, code) in enumerate(
            zip(text.split("\n"), blank(text).split("\n")), start=1):
        if _TABLE.match(code):
            return
        if _NO_OUTPUT_FUNCTION.match(code):
            skipping = True
        if not skipping and code.strip() and not _NO_OUTPUT_LINE.search(code):
            yield number, line, code
        if line.startswith("}"):
            skipping = False


def mutations(line, code, nearby):
    """{kind: [the line with the fault]} of a line and its blanked form.

    `nearby` is the code around it, whose names the line may use.
    """
    found = {}
    sites = [(kind, site) for kind, operators in OPERATORS.items() for operator in operators
             for site in operator(code)]
    sites += [("swap", site) for site in _swap_partners(code, nearby)]
    for kind, (start, end, replacement) in sites:
        changed = line[:start] + replacement + line[end:]
        if changed != line:
            found.setdefault(kind, []).append(changed)
    return found
