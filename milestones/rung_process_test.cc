#include "milestones/rung_process.h"

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What the process does that this program becomes when it is asked for rungs:
// three rungs, of which the second one behaves as `scenario` says.
int RunScenario(const RungReporter& reporter, const std::string& scenario) {
  if (scenario == "nothing") return 1;
  const char* const names[] = {"first", "second", "third"};
  for (size_t i = reporter.first(); i < 3; ++i) {
    reporter.Begin(names[i]);
    reporter.Progress(0.5);
    if (i == 1 && scenario == "crash") {
      std::signal(SIGSEGV, SIG_DFL);  // a sanitizer has a handler
      std::raise(SIGSEGV);
    }
    if (i == 1 && scenario == "exit") std::_Exit(0);
    if (i == 1 && scenario == "abort") std::abort();
    LadderRun run;
    run.variant = names[i];
    run.correct = static_cast<int64_t>(i) + 7;
    if (i == 1 && scenario == "note") reporter.Note("the batch was cut");
    reporter.End(run, 100);
  }
  return 0;
}

// Runs all rungs as the ladder does; "name:correct" or "name:failure" of each.
std::vector<std::string> RunRungs(const std::string& scenario,
                                  std::vector<std::string>* notes = nullptr) {
  std::vector<std::string> results;
  RungListener listener;
  listener.begin = [](const std::string&) {};
  listener.progress = [](double share) { EXPECT_EQ(share, 0.5); };
  listener.note = [&](const std::string& text) {
    if (notes != nullptr) notes->push_back(text);
  };
  while (results.size() < 3) {
    auto process =
        RungProcess::Start({"rung_process_test", scenario}, results.size());
    EXPECT_TRUE(process.ok()) << process.status();
    if (!process.ok()) return results;
    while (true) {
      const auto run = (*process)->Next(listener);
      if (!run.ok()) {
        results.push_back(std::string(run.status().message()));
        return results;
      }
      if (!*run) break;
      results.push_back((*run)->variant + ":" +
                        ((*run)->failure.empty()
                             ? std::to_string((*run)->correct)
                             : (*run)->failure));
    }
  }
  return results;
}

TEST(RungProcess, ReportsEachRung) {
  EXPECT_THAT(RunRungs("fine"), ElementsAre("first:7", "second:8", "third:9"));
}

TEST(RungProcess, GoesOnBehindARungThatEndsTheProcess) {
  EXPECT_THAT(
      RunRungs("crash"),
      ElementsAre("first:7", "second:FAILED: crashed (SIGSEGV)", "third:9"));
  EXPECT_THAT(
      RunRungs("abort"),
      ElementsAre("first:7", "second:FAILED: crashed (SIGABRT)", "third:9"));
  EXPECT_THAT(
      RunRungs("exit"),
      ElementsAre("first:7", "second:FAILED: ended its process with status 0",
                  "third:9"));
}

TEST(RungProcess, PassesMessagesOn) {
  std::vector<std::string> notes;
  RunRungs("note", &notes);
  EXPECT_THAT(notes, ElementsAre("the batch was cut"));
}

TEST(RungProcess, SaysThatTheProcessDidNotWork) {
  EXPECT_THAT(RunRungs("nothing"), ElementsAre(HasSubstr("with status 1")));
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  if (const auto reporter = convlab::RungReporter::FromEnvironment()) {
    return convlab::RunScenario(*reporter, argc > 1 ? argv[1] : "");
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
