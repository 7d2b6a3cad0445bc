// Writes a milestone's submission from run records: bazel run
// //reports:submission -- --milestone m3 --records DIR --out DIR
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "common/files/folder.h"
#include "common/flags/flags.h"
#include "common/status/main.h"
#include "common/status/status.h"
#include "gflags/gflags.h"
#include "reports/deliverables/deliverable.h"
#include "reports/deliverables/submission.h"
#include "reports/document/writers.h"
#include "reports/pdf.h"
#include "reports/records/records.h"

DEFINE_string(milestone, "", "m1, m2, m3, m4 or final");
DEFINE_string(records, "",
              "folder with run records, Chrome traces (*.json) and ncu's "
              "counters (VARIANT.csv), at any depth");
DEFINE_string(out, "", "folder to write to; created if it does not exist");
DEFINE_string(team, "", "name of the team");
DEFINE_string(members, "", "names, separated by commas");
DEFINE_string(network, "",
              "use only the records of this network, for a folder with "
              "several");
DEFINE_string(optimizations, "",
              "variants that m4 and final discuss, in this order, separated by "
              "commas; if not given, those that gain most");
DEFINE_string(base, "",
              "variant that the optimizations are compared with; if not given, "
              "each with the one before");
DEFINE_string(notes, "",
              "your own words, a file in Markdown whose headings name the "
              "sections in which they stand");
DEFINE_string(notes_template, "",
              "write a file with all headings that notes can have, and end");
DEFINE_bool(check, false,
            "check the flags and --notes, as far as that is possible before "
            "there are records, and end");
DEFINE_string(prose, "yes",
              "yes or no: whether generated prose, which is marked as such, "
              "stands beside the measurements");
DEFINE_string(appendix, "yes",
              "yes or no: whether the other rungs, raw outputs and long names "
              "follow");
DEFINE_string(participants, "",
              "folders of run records, one per participant, separated by "
              "commas, which the final report ranks");

namespace convlab {
namespace {

namespace fs = std::filesystem;

std::string HelpText() {
  return absl::StrCat(
      "Usage: bazel run //reports:submission -- --milestone MILESTONE "
      "--records DIR\n    --out DIR [--flags]\n\n",
      WrapText(
          "Writes a milestone's submission as submission.md, "
          "submission.html and submission.pdf, with the charts beside them "
          "in charts/. What the records lack is named, with the command "
          "that makes it. weasyprint writes the PDF; tools/setup.sh "
          "installs it, and without it the rest is written.",
          0, 0),
      "\n\n", DescribeFlags(__FILE__),
      "\nExit status: 0 done, 1 failed, 2 bad usage or bad records.\n");
}

std::vector<std::string> SplitNames(const std::string& names) {
  std::vector<std::string> list;
  for (absl::string_view name : absl::StrSplit(names, ',')) {
    name = absl::StripAsciiWhitespace(name);
    if (!name.empty()) list.emplace_back(name);
  }
  return list;
}

// FileError of a call that may have failed.
absl::Status FileStatus(absl::string_view action, const std::string& path,
                        const std::error_code& error) {
  if (!error) return absl::OkStatus();
  return FileError(action, path, error.value());
}

constexpr char kUnfinished[] = ".unfinished-";

// Locks the folder for as long as this program runs; -1 if another program has
// locked it, or if there is none.
int LockFolder(const std::string& folder) {
  const int descriptor =
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    return descriptor;
  }
  close(descriptor);
  return -1;
}

// Removes what programs that were killed have left in `out`: their locks ended
// with them.
void RemoveUnfinished(const std::string& out) {
  std::error_code ignored;
  const auto names = NamesIn(out);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string folder = absl::StrCat(out, "/", name);
    if (!absl::StartsWith(name, kUnfinished) ||
        !fs::is_directory(fs::symlink_status(folder, ignored))) {
      continue;
    }
    const int lock = LockFolder(folder);
    if (lock < 0) continue;
    fs::remove_all(folder, ignored);
    close(lock);
  }
}

// Files that are made in a temporary folder beside `out` and moved to `out`
// when all of them are complete.
class Output {
 public:
  static absl::StatusOr<Output> Begin(const std::string& out) {
    std::error_code error;
    const bool is_new = !fs::exists(out, error);
    fs::create_directories(out, error);
    RETURN_IF_ERROR(FileStatus("make the folder", out, error));
    RemoveUnfinished(out);
    std::string scratch = absl::StrCat(out, "/", kUnfinished, "XXXXXX");
    if (mkdtemp(scratch.data()) == nullptr) {
      return FileError("write to", out, errno);
    }
    return Output(out, scratch, is_new, LockFolder(scratch));
  }

  Output(Output&& other) noexcept
      : out_(std::move(other.out_)),
        scratch_(std::exchange(other.scratch_, "")),
        is_new_(other.is_new_),
        lock_(std::exchange(other.lock_, -1)) {}
  ~Output() {
    if (scratch_.empty()) return;
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
    if (lock_ >= 0) close(lock_);
    if (is_new_ && fs::is_empty(out_, ignored)) fs::remove(out_, ignored);
  }

  const std::string& scratch() const { return scratch_; }

  // Moves all files; those in `obsolete` are removed unless they were made.
  // Nothing is changed if a folder is in the place of a file, or a file in the
  // place of a folder.
  absl::Status Finish(const std::vector<std::string>& obsolete) {
    std::error_code error;
    ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                     PathsBelow(scratch_));
    for (const std::string& path : paths) {
      const std::string target = TargetOf(path);
      const bool is_folder = fs::is_directory(path, error);
      if (fs::exists(target, error) &&
          fs::is_directory(target, error) != is_folder) {
        return FileError("write", target, is_folder ? ENOTDIR : EISDIR);
      }
    }
    for (const std::string& name : obsolete) {
      if (fs::exists(scratch_ + "/" + name, error)) continue;
      fs::remove(out_ + "/" + name, error);
      RETURN_IF_ERROR(FileStatus("remove", out_ + "/" + name, error));
    }
    for (const std::string& path : paths) {
      const std::string target = TargetOf(path);
      if (fs::is_directory(path, error)) {
        fs::create_directories(target, error);
      } else {
        fs::rename(path, target, error);
      }
      RETURN_IF_ERROR(FileStatus("write", target, error));
    }
    return absl::OkStatus();
  }

 private:
  std::string TargetOf(const std::string& path) const {
    return out_ + path.substr(scratch_.size());
  }

  Output(std::string out, std::string scratch, bool is_new, int lock)
      : out_(std::move(out)),
        scratch_(std::move(scratch)),
        is_new_(is_new),
        lock_(lock) {}

  std::string out_, scratch_;
  bool is_new_;
  int lock_;
};

absl::StatusOr<bool> YesOrNo(const char* flag, const std::string& value) {
  if (value == "yes" || value == "true") return true;
  if (value == "no" || value == "false") return false;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " is '", value, "', expected yes or no"));
}

absl::Status WriteTemplate(const std::string& content) {
  const std::string path = UserPath(FLAGS_notes_template);
  if (fs::exists(path)) {
    return absl::InvalidArgumentError(
        absl::StrCat(FLAGS_notes_template,
                     " is there already, and may hold your text: choose "
                     "another name for --notes_template"));
  }
  RETURN_IF_ERROR(WriteFileAtomically(path, content));
  absl::PrintF("%s\n", FLAGS_notes_template);
  return absl::OkStatus();
}

absl::Status CheckFlags(const ParsedFlags& flags) {
  if (!flags.positional.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "unexpected argument '", flags.positional[0], "'; --help lists flags"));
  }
  std::vector<std::pair<const char*, std::string>> needed = {
      {"milestone", FLAGS_milestone}};
  if (!FLAGS_check) needed.emplace_back("records", FLAGS_records);
  if (!FLAGS_check && FLAGS_notes_template.empty()) {
    needed.emplace_back("out", FLAGS_out);
  }
  for (const auto& [flag, value] : needed) {
    if (!value.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " is missing; --help lists flags"));
  }
  return absl::OkStatus();
}

// Everything but the participants.
absl::StatusOr<SubmissionOptions> OptionsOfFlags() {
  SubmissionOptions options;
  options.milestone = FLAGS_milestone;
  options.team = FLAGS_team;
  options.members = SplitNames(FLAGS_members);
  options.optimizations = SplitNames(FLAGS_optimizations);
  options.base = FLAGS_base;
  options.out = UserPath(FLAGS_out);
  ASSIGN_OR_RETURN(options.has_prose, YesOrNo("prose", FLAGS_prose));
  ASSIGN_OR_RETURN(options.has_appendix, YesOrNo("appendix", FLAGS_appendix));
  if (!FLAGS_notes.empty()) {
    ASSIGN_OR_RETURN(options.notes, ReadFile(UserPath(FLAGS_notes)));
  }
  return options;
}

// An error in the notes says which file they are.
absl::Status AnnotateNotes(const absl::Status& status) {
  const bool is_of_notes = absl::StartsWith(status.message(), "line ");
  return is_of_notes ? Annotate(status, FLAGS_notes) : status;
}

absl::Status Run(const std::vector<std::string>& args) {
  ASSIGN_OR_RETURN(const ParsedFlags flags, ParseFlags(args, __FILE__));
  if (flags.help) {
    std::fputs(HelpText().c_str(), stdout);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckFlags(flags));
  ASSIGN_OR_RETURN(SubmissionOptions options, OptionsOfFlags());
  if (FLAGS_check) return AnnotateNotes(CheckOptions(options));
  ReadOptions read;
  read.network = FLAGS_network;
  read.keep_failed = true;
  ASSIGN_OR_RETURN(const Records records, ReadRecords(FLAGS_records, read));
  for (const std::string& folder : SplitNames(FLAGS_participants)) {
    ASSIGN_OR_RETURN(Participant participant, ReadParticipant(folder, ""));
    if (!participant.failure.empty()) {
      return absl::InvalidArgumentError(participant.failure);
    }
    options.participants.push_back(std::move(participant));
  }
  absl::StatusOr<Submission> made = MakeSubmission(records, options);
  if (!made.ok()) return AnnotateNotes(made.status());
  const Submission submission = *std::move(made);
  if (!FLAGS_notes_template.empty()) {
    return WriteTemplate(submission.notes_template);
  }

  ASSIGN_OR_RETURN(Output output, Output::Begin(options.out));
  const std::string& scratch = output.scratch();
  const std::string charts = absl::StrCat(scratch, "/", kChartsFolder);
  std::error_code error;
  fs::create_directories(charts, error);
  RETURN_IF_ERROR(FileStatus("make the folder", charts, error));
  for (const auto& [name, svg] : ChartFiles(submission.document)) {
    RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(charts, "/", name), svg));
  }
  RETURN_IF_ERROR(WriteFileAtomically(scratch + "/submission.md",
                                      WriteMarkdown(submission.document)));
  RETURN_IF_ERROR(WriteFileAtomically(scratch + "/submission.html",
                                      WriteHtml(submission.document)));
  const absl::Status pdf =
      WritePdf(submission.document, scratch, "submission.pdf");
  const bool has_pdf = !absl::IsNotFound(pdf);
  if (has_pdf) RETURN_IF_ERROR(pdf);
  // That of an earlier report is obsolete.
  RETURN_IF_ERROR(output.Finish({"submission.pdf"}));

  for (const std::string& title : submission.incomplete) {
    absl::FPrintF(stderr, "submission: incomplete: %s\n", OneLine(title));
  }
  if (!has_pdf) {
    absl::FPrintF(
        stderr,
        "submission: without weasyprint here, the PDF is missing; where "
        "tools/setup.sh has run, this finishes the report: "
        "bazel run //reports:submission -- %s\n",
        absl::StrJoin(args, " ", [](std::string* line, const std::string& arg) {
          line->append(ShellWord(arg));
        }));
  }
  absl::PrintF("%s/submission.%s\n", FLAGS_out, has_pdf ? "pdf" : "html");
  return absl::OkStatus();
}

}  // namespace
}  // namespace convlab

int main(int argc, char** argv) {
  return convlab::RunMain("submission", [&] {
    return convlab::Run({argv + 1, argv + argc});
  });
}
