// What the tests of importers ask of each of them.
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

// What `parse` makes of testdata/`name`; fails the test if it is an error.
Profile ParsedFile(const ParseFunction& parse, const std::string& name);

// "name 41.72" for each of those that together exceed 90 %, with the cumulative
// share.
std::vector<std::string> Over90(const ProfileSection& section);

// Fails the test unless every beginning of the file is refused with a place in
// it, or gives a part of what the whole gives: never a wrong number.
void ExpectNoCutGivesAWrongTable(const ParseFunction& parse,
                                 const std::string& name);

// The error's message; fails the test if there is none, or if it is no fault of
// the file.
std::string ErrorOf(const absl::StatusOr<Profile>& profile);

}  // namespace convlab

#endif  // REPORTS_IMPORTERS_EXPECTATIONS_H_
