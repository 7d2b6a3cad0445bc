#!/usr/bin/env python3
"""duplicate_types on small headers."""
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "duplicate_types")


class DuplicateTypesTest(unittest.TestCase):

    def check(self, *texts):
        """The exit status and the lines for headers a.h, b.h, ... in `x`."""
        with tempfile.TemporaryDirectory() as folder:
            names = []
            for name, text in zip("abc", texts):
                names.append(name + ".h")
                with open(os.path.join(folder, names[-1]), "w", encoding="utf-8") as file:
                    file.write("namespace x {\n" + text + "\n}  // namespace x\n")
            result = subprocess.run([sys.executable, PROGRAM, *names], cwd=folder, text=True,
                                    stdout=subprocess.PIPE, check=False)
            return result.returncode, result.stdout.splitlines()

    def test_two_definitions_are_told(self):
        for one in ("struct A {", "class A : public B {", "class A final {", "enum class A {",
                    "union A {", "using A = int;", "struct alignas(16) A {",
                    "class A\n    : public B {", "template <class T>\nstruct A {"):
            with self.subTest(one):
                self.assertEqual(self.check(one, "\nstruct A {"),
                                 (1, ["x::A is defined by 2 headers: a.h:%d, b.h:3" %
                                      (3 if one.startswith("template") else 2)]))

    def test_nested_namespaces_are_namespaces(self):
        nested = "namespace y {\nstruct A {\n}  // namespace y"
        self.assertEqual(self.check(nested, "struct A {"), (0, []))
        self.assertEqual(self.check(nested, nested)[0], 1)

    def test_what_is_no_second_definition(self):
        for other in ("struct A;", "class A;", "struct B {\n  struct A {\n  };\n};",
                      "namespace {\nstruct A {\n}  // namespace", "// struct A {",
                      "template <>\nstruct A<int> {", "struct A Make();"):
            with self.subTest(other):
                self.assertEqual(self.check("struct A {", other), (0, []))
        self.assertEqual(self.check("#ifdef Y\nstruct A {\n#else\nstruct A {\n#endif", ""), (0, []))


if __name__ == "__main__":
    unittest.main()
