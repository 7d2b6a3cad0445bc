// Expectations that the tests of all importers share.
#ifndef REPORTS_IMPORTERS_EXPECTATIONS_H_
#define REPORTS_IMPORTERS_EXPECTATIONS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/profile.h"

namespace convlab {

using ParseFunction = std::function<absl::StatusOr<Profile>(absl::string_view)>;

// Parses testdata/`name`; fails the test if that is an error.
Profile ParsedFile(const ParseFunction& parse, const std::string& name);

// The entries that together exceed 90 %, with the cumulative share, each as
// "name 41.72".
std::vector<std::string> Over90(const ProfileSection& section);

// Fails the test unless every prefix of the file is either rejected or gives a
// part of what the whole file gives, and never a wrong number.
void ExpectNoCutGivesAWrongTable(const ParseFunction& parse,
                                 const std::string& name);

// Returns the error's message; fails the test if there is none, or if the error
// is not InvalidArgument.
std::string ErrorOf(const absl::StatusOr<Profile>& profile);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_EXPECTATIONS_H_
