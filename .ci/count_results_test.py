#!/usr/bin/env python3
"""count_results on small event files, in the form that Bazel 4.2.3 writes."""
import json
import os
import subprocess
import tempfile
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count_results")

GOOGLETEST_XML = """<testsuites tests="4"><testsuite name="S">
<testcase name="a" status="run" result="completed"/>
<testcase name="b" status="run" result="completed"/>
<testcase name="c" status="run" result="skipped"><skipped message="no GPU"/></testcase>
<testcase name="d" status="notrun" result="suppressed"/>%s
</testsuite></testsuites>"""
FAILED_CASE = '<testcase name="e" status="run"><failure message="1 is 2"/></testcase>'
SHELL_XML = '<testsuites><testsuite name="s"><testcase name="s"/></testsuite></testsuites>'


class CountResultsTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.events = []

    def built(self, label):
        self.events.append({"id": {"targetCompleted": {"label": label}},
                            "completed": {"success": True}})

    def ran(self, label, status, xml=None):
        self.built(label)
        outputs = [{"name": "test.log", "uri": "file:///nowhere/test.log"}]
        if xml is not None:
            path = os.path.join(self.folder.name, "a test %d.xml" % len(self.events))
            with open(path, "w", encoding="utf-8") as file:
                file.write(xml)
            outputs.append({"name": "test.xml",
                            "uri": "file://" + path.replace(" ", "%20")})
        self.events.append({"id": {"testResult": {"label": label}},
                            "testResult": {"status": status, "testActionOutput": outputs}})
        self.events.append({"id": {"testSummary": {"label": label}},
                            "testSummary": {"overallStatus": status}})

    def expect(self, line, *statuses, status):
        path = os.path.join(self.folder.name, "events.json")
        with open(path, "w", encoding="utf-8") as file:
            for event in self.events:
                file.write((event if isinstance(event, str) else json.dumps(event)) + "\n")
        run = subprocess.run([PROGRAM, path, *map(str, statuses)], text=True,
                             capture_output=True, check=False)
        self.assertEqual((run.stdout, run.returncode), (line + "\n", status), run.stderr)
        self.assertNotIn("Traceback", run.stderr)

    def test_cases_are_counted_and_checks_are_none(self):
        self.ran("//:a", "PASSED", GOOGLETEST_XML % "")
        self.ran("//:b", "PASSED", SHELL_XML)
        self.expect("3 passed, 0 failed, 1 skipped", 0, 0, 0, status=0)

    def test_checks_may_fail(self):
        self.ran("//:a", "PASSED", SHELL_XML)
        self.expect("1 passed, 2 failed, 0 skipped", 0, 1, 123, status=1)

    def test_bazels_status_counts_where_nothing_else_failed(self):
        self.ran("//:a", "PASSED", GOOGLETEST_XML % "")
        self.expect("2 passed, 1 failed, 1 skipped", 1, 0, 0, status=1)
        self.ran("//:b", "FAILED", GOOGLETEST_XML % FAILED_CASE)
        self.expect("4 passed, 1 failed, 2 skipped", 3, 0, 0, status=1)
        self.expect("4 passed, 2 failed, 2 skipped", 3, 1, 0, status=1)

    def test_crash_and_timeout(self):
        self.ran("//:crashed", "FAILED", GOOGLETEST_XML % "")
        self.ran("//:too_slow", "TIMEOUT")
        self.expect("2 passed, 2 failed, 1 skipped", 3, status=1)

    def test_damaged_xml(self):
        self.ran("//:a", "PASSED", SHELL_XML)
        self.ran("//:b", "PASSED", "<testsuites><testsuite")
        self.ran("//:c", "PASSED", "")
        self.expect("1 passed, 2 failed, 0 skipped", 0, status=1)

    def test_missing_xml(self):
        self.ran("//:a", "PASSED", SHELL_XML)
        self.events[1]["testResult"]["testActionOutput"][1]["uri"] = "file:///nowhere/x.xml"
        self.expect("0 passed, 1 failed, 0 skipped", 0, status=1)

    def test_targets_that_do_not_build(self):
        self.ran("//:a", "PASSED", SHELL_XML)
        # A compiler's error, in a library and in the test that needs it.
        for label in ("//:broken", "//:broken_test"):
            self.events.append({"id": {"targetCompleted": {"label": label}},
                                "completed": {"failureDetail": {"message": "gcc failed"}}})
        self.events.append({"id": {"targetCompleted": {"label": "//:c"}},
                            "aborted": {"reason": "ANALYSIS_FAILURE"}})
        self.expect("1 passed, 3 failed, 0 skipped", 1, status=1)

    def test_targets_that_do_not_fit_the_machine(self):
        self.ran("//:a", "PASSED", SHELL_XML)
        self.events.append({"id": {"targetCompleted": {"label": "//:cuda_test"}},
                            "aborted": {"reason": "SKIPPED"}})
        self.expect("1 passed, 0 failed, 1 skipped", 0, status=0)

    def test_events_cut_off(self):
        self.ran("//:a", "PASSED", SHELL_XML)
        self.events.append('{"id": {"testRes')
        self.expect("1 passed, 1 failed, 0 skipped", 37, status=1)

    def test_no_events(self):
        self.expect("0 passed, 1 failed, 0 skipped", 1, status=1)
        self.expect("0 passed, 0 failed, 0 skipped", 0, status=1)
        run = subprocess.run([PROGRAM, "/nowhere/events", "2"], text=True,
                             capture_output=True, check=False)
        self.assertEqual(run.stdout, "0 passed, 1 failed, 0 skipped\n")


if __name__ == "__main__":
    unittest.main()
