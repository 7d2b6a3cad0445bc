#include "kernels/judge/source/source.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace convlab {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WithoutComments, KeepsOffsets) {
  EXPECT_EQ(WithoutComments("a // b\nc /* d\ne */ f"),
            "a     \nc     \n     f");
  EXPECT_EQ(WithoutComments("a // b \\\nc\nd"), "a       \n \nd");
  EXPECT_EQ(WithoutComments("\"/* a \\\" \" b"), "\"        \" b");
  EXPECT_EQ(WithoutComments("R\"x(a)\" // )x\" b"), "R\"           \" b");
  EXPECT_EQ(WithoutComments("1'000 + '\"' + 1"), "1'000 + ' ' + 1");
  EXPECT_EQ(WithoutComments("\"open\nb"), "\"    \nb");
}

TEST(WithoutComments, LeavesOutWhatIsExcluded) {
  EXPECT_EQ(WithoutComments("#if 0\na\n#if X\nb\n#endif\n#else\nc\n#endif\nd"),
            "#if 0\n \n#if X\n \n#endif\n#else\nc\n#endif\nd");
  EXPECT_EQ(WithoutComments("#if 1\na\n#else\nb\n#endif"),
            "#if 1\na\n#else\n \n#endif");
}

TEST(Includes, AreReadWithTheirLines) {
  const auto includes = Includes(
      "// #include \"a.h\"\n#include \"b/c.h\" // d\n # include <e>\n"
      "#include MACRO\n#if 0\n#include <f>\n#endif\n");
  ASSERT_EQ(includes.size(), 2);
  EXPECT_EQ(includes[0].name, "b/c.h");
  EXPECT_TRUE(includes[0].quoted);
  EXPECT_EQ(includes[0].line, 2);
  EXPECT_EQ(includes[1].name, "e");
  EXPECT_FALSE(includes[1].quoted);
  EXPECT_EQ(includes[1].line, 3);
}

// The types of a single function's parameters.
std::vector<std::string> Types(const std::string& parameters) {
  const SourceText source = ReadSource("void f(" + parameters + ");");
  std::vector<std::string> types;
  if (source.functions.size() != 1) return {"no function"};
  for (const Parameter& parameter : source.functions[0].parameters) {
    types.push_back(parameter.type);
  }
  return types;
}

TEST(ReadSource, TypesAreThoseOfTheFunction) {
  EXPECT_THAT(Types(""), IsEmpty());
  EXPECT_THAT(Types("void"), IsEmpty());
  EXPECT_THAT(Types("const float* __restrict__ x, float const *y, float *z"),
              ElementsAre("const float*", "const float*", "float*"));
  EXPECT_THAT(Types("const int B, int M, int S = 1, int"),
              ElementsAre("int", "int", "int", "int"));
  EXPECT_THAT(Types("float x[], float** y, float* const z"),
              ElementsAre("float*", "float**", "float*"));
  EXPECT_THAT(Types("const mshadow::Tensor<gpu, 4, float> &x"),
              ElementsAre("const mshadow::Tensor<gpu,4,float>&"));
}

TEST(ReadSource, FindsDefinitionsAndDeclarations) {
  const SourceText source = ReadSource(
      "class GPUInterface { public: void f(int a); };\n"
      "template <> __host__ void\nGPUInterface::f<gpu, float>(int a) { g(1); "
      "}\n"
      "#define MACRO(x) void h(int x) {}\n"
      "__global__ void __launch_bounds__(256) k(float* y) { return m(2); }\n");
  ASSERT_EQ(source.functions.size(), 3);
  const Function& declared = source.functions[0];
  EXPECT_EQ(declared.name, "f");
  EXPECT_FALSE(declared.definition);
  const Function& defined = source.functions[1];
  EXPECT_EQ(defined.name, "f");
  EXPECT_EQ(defined.scope, "GPUInterface");
  EXPECT_EQ(defined.template_arguments, "gpu,float");
  EXPECT_EQ(defined.before, "template<>__host__ void");
  EXPECT_TRUE(defined.definition);
  EXPECT_EQ(defined.line, 3);
  EXPECT_EQ(source.functions[2].name, "k");
  EXPECT_TRUE(source.launches);
  EXPECT_TRUE(source.HasClass("GPUInterface"));
  EXPECT_FALSE(source.HasClass("GPU"));
}

TEST(ReadSource, DefaultsAreNotPartOfAParameter) {
  const SourceText source = ReadSource("void f(const int K, int S = 1) {}");
  ASSERT_EQ(source.functions.size(), 1);
  EXPECT_EQ(source.functions[0].parameters[1].text, "int S");
}

}  // namespace
}  // namespace convlab
