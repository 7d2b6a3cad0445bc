#include "kernels/judge/source/library_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/judge/source/test_library.h"

namespace convlab {
namespace {

using ::testing::HasSubstr;

TEST(CheckKernelLibrary, WantsTheFunction) {
  EXPECT_EQ(CheckKernelLibrary(TestLibrary("convlab_kernel")),
            absl::OkStatus());
  EXPECT_THAT(CheckKernelLibrary(TestLibrary("convlab_kernels")).message(),
              HasSubstr("does not define convlab_kernel()"));
}

TEST(CheckKernelLibrary, WantsALibraryForThisMachine) {
  std::string library = TestLibrary("convlab_kernel");
  EXPECT_THAT(CheckKernelLibrary(library.substr(0, 40)).message(),
              HasSubstr("no shared library"));
  library[offsetof(Elf64_Ehdr, e_machine)] = 3;
  EXPECT_THAT(CheckKernelLibrary(library).message(),
              HasSubstr("for machine 3"));
}

}  // namespace
}  // namespace convlab
