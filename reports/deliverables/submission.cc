#include "reports/deliverables/submission.h"

#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/status/status.h"
#include "reports/deliverables/deliverable.h"
#include "reports/deliverables/facts.h"
#include "reports/deliverables/notes.h"
#include "reports/quantities.h"

namespace convlab {
namespace {

struct Milestone {
  const char* name;
  const char* title;
  absl::StatusOr<Parts> (*parts)(const Source&);
};

template <Parts (*kParts)(const Source&)>
absl::StatusOr<Parts> Always(const Source& source) {
  return kParts(source);
}

// The course's order, from which sections have their numbers.
constexpr Milestone kMilestones[] = {
    {"m1", "Profile of the baseline", Always<Milestone1>},
    {"m2", "CPU convolution", Always<Milestone2>},
    {"m3", "GPU convolution", Always<Milestone3>},
    {"m4", "Optimizations", Always<Milestone4>},
    {"final", "The fastest convolution", FinalMilestone},
};

std::string MilestoneName(absl::string_view milestone) {
  return milestone == "final" ? std::string("Final")
                              : absl::StrCat("Milestone ", milestone.substr(1));
}

// Every name is of a variant that a ladder of the records compared.
absl::Status CheckVariants(const Records& records,
                           const std::vector<std::string>& names,
                           const char* what) {
  for (const std::string& name : names) {
    bool known = false;
    for (const NamedRecord& run : records.runs) {
      for (const LadderRun& rung : run.record.ladder) {
        known |= rung.variant == name;
      }
    }
    if (known) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "no record of the ladder has the ", what, " '", name, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Source> SourceOf(const Records& records,
                                const SubmissionOptions& options) {
  RETURN_IF_ERROR(CheckSameMachine(records));
  RETURN_IF_ERROR(
      CheckVariants(records, options.optimizations, "optimization"));
  if (!options.base.empty()) {
    RETURN_IF_ERROR(CheckVariants(records, {options.base}, "base"));
  }
  Source source;
  source.records = &records;
  source.network = records.runs.front().record.network;
  source.optimizations = options.optimizations;
  source.base = options.base;
  source.participants = options.participants;
  source.has_appendix = options.has_appendix;
  source.out = options.out;
  for (const auto& [name, content] : records.traces) {
    absl::StatusOr<std::vector<TimelineEvent>> events = ReadTimeline(content);
    if (!events.ok()) return Annotate(events.status(), name);
    source.timelines[name] = *std::move(events);
  }
  return source;
}

std::vector<Block> Summary(Parts& parts,
                           const std::vector<std::string>& incomplete) {
  std::vector<Block> blocks = {Heading{2, "Summary", "summary"}};
  blocks.push_back(Generated(Strong("What was asked.") + " " + parts.asked));
  List reached;
  for (Text& text : parts.reached) reached.items.push_back(std::move(text));
  if (!reached.items.empty()) blocks.emplace_back(std::move(reached));
  Append(blocks, std::move(parts.picture));
  if (incomplete.empty()) return blocks;
  blocks.push_back(Paragraph{
      absl::StrCat(incomplete.size(), " of ", parts.sections.size(),
                   " parts are not complete. Each says what it lacks and the "
                   "command that makes it; in the bundle, ") +
      Code("./convlab m3") + " stands for " +
      Code("bazel run //milestones:m3 --") + ":"});
  List list;
  for (const std::string& title : incomplete) list.items.emplace_back(title);
  blocks.emplace_back(std::move(list));
  return blocks;
}

bool IsGenerated(const Block& block) {
  if (const Paragraph* paragraph = std::get_if<Paragraph>(&block)) {
    return paragraph->is_generated;
  }
  const List* list = std::get_if<List>(&block);
  return list != nullptr && list->is_generated;
}

// Says below headings without a text that the student has the word.
void FillEmpty(std::vector<Block>& blocks) {
  std::vector<Block> filled;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Heading* heading = std::get_if<Heading>(&blocks[i]);
    const Heading* next =
        i + 1 < blocks.size() ? std::get_if<Heading>(&blocks[i + 1]) : nullptr;
    const bool is_empty = heading != nullptr &&
                          (i + 1 == blocks.size() ||
                           (next != nullptr && next->level <= heading->level));
    filled.push_back(std::move(blocks[i]));
    if (is_empty) {
      filled.push_back(Paragraph{Text("Not answered yet: ") + Code("--notes") +
                                 " puts your text here."});
    }
  }
  blocks = std::move(filled);
}

// Tables of several rows are sorted by their readers.
void MakeSortable(std::vector<Block>& blocks) {
  for (Block& block : blocks) {
    Table* table = std::get_if<Table>(&block);
    if (table != nullptr) table->sortable = table->rows.size() > 2;
  }
}

absl::StatusOr<const Milestone*> FindMilestone(absl::string_view name) {
  const Milestone* const milestone = absl::c_find_if(
      kMilestones, [&](const Milestone& one) { return name == one.name; });
  if (milestone != std::end(kMilestones)) return milestone;
  return absl::InvalidArgumentError(absl::StrCat(
      "unknown milestone '", name, "', expected m1, m2, m3, m4 or final"));
}

}  // namespace

absl::Status CheckOptions(const SubmissionOptions& options) {
  RETURN_IF_ERROR(FindMilestone(options.milestone).status());
  return Notes::Parse(options.notes).status();
}

absl::StatusOr<Submission> MakeSubmission(const Records& records,
                                          const SubmissionOptions& options) {
  ASSIGN_OR_RETURN(const Milestone* const milestone,
                   FindMilestone(options.milestone));
  ASSIGN_OR_RETURN(const Source source, SourceOf(records, options));
  ASSIGN_OR_RETURN(Parts parts, milestone->parts(source));

  Submission submission;
  std::vector<Block> body;
  int number = 0;
  for (Deliverable& section : parts.sections) {
    const std::string title =
        absl::StrCat(milestone - std::begin(kMilestones) + 1, ".", ++number,
                     " ", section.title);
    if (!section.complete) submission.incomplete.push_back(title);
    body.push_back(Heading{2, title, section.id});
    Append(body, std::move(section.blocks));
  }
  char letter = 'A';
  for (Deliverable& part : parts.appendix) {
    if (!options.has_appendix || part.blocks.empty()) continue;
    body.push_back(Heading{
        2,
        absl::StrCat("Appendix ", std::string(1, letter++), ": ", part.title),
        part.id});
    Append(body, std::move(part.blocks));
  }
  Document& document = submission.document;
  document.title = absl::StrCat(MilestoneName(milestone->name), ": ",
                                milestone->title, ", ", source.network);
  document.blocks = Summary(parts, submission.incomplete);
  document.blocks.emplace_back(Contents{});
  document.blocks.emplace_back(FactsOf(records, options.team, options.members));
  Append(document.blocks, std::move(body));
  MakeSortable(document.blocks);
  submission.notes_template = NotesTemplate(document);

  ASSIGN_OR_RETURN(const Notes notes, Notes::Parse(options.notes));
  RETURN_IF_ERROR(notes.InsertInto(document.blocks));
  if (!options.has_prose) {
    std::vector<Block> kept;
    for (Block& block : document.blocks) {
      if (!IsGenerated(block)) kept.push_back(std::move(block));
    }
    document.blocks = std::move(kept);
  }
  FillEmpty(document.blocks);
  return submission;
}

}  // namespace convlab
