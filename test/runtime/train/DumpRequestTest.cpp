#include "runtime/train/Trainer.h"

#include <gtest/gtest.h>

using namespace mega;

namespace {

std::string rejection(const std::string &text) {
  const auto parsed = parseDumpRequest(text);
  EXPECT_EQ(parsed.status().code(), Code::Usage) << text;
  return parsed.status().message();
}

} // namespace

TEST(DumpRequest, Parses) {
  const DumpRequest gradients = parseDumpRequest("gradients@3=out/a").take();
  EXPECT_EQ(gradients.what, DumpRequest::What::Gradients);
  EXPECT_EQ(gradients.step, 3);
  EXPECT_EQ(gradients.directory, "out/a");
  const DumpRequest weights = parseDumpRequest("weights@0=/w").take();
  EXPECT_EQ(weights.what, DumpRequest::What::Weights);
  EXPECT_EQ(weights.step, 0);
}

TEST(DumpRequest, DirectoriesMayHoldAnything) {
  EXPECT_EQ(parseDumpRequest("weights@1=a=b@c").take().directory, "a=b@c");
  EXPECT_EQ(parseDumpRequest("weights@1= ").take().directory, " ");
}

TEST(DumpRequest, RefusesOtherForms) {
  for (const char *text :
       {"", "@", "=", "@=", "weights", "weights@1", "weights=1@x", "weights@=x",
        "weights@1=", "weights@-1=x", "weights@+1=x", "weights@1x=y",
        "weights@ 1=y", "weights@0x1=y", "weights@1.0=y", "moments@1=y",
        "Weights@1=y", " weights@1=y", "weights@99999999999999999999=y"}) {
    EXPECT_EQ(rejection(text),
              "--dump " + std::string(text) +
                  " is not gradients@STEP=DIR or weights@STEP=DIR");
  }
}

TEST(DumpRequest, GradientsStartAtTheFirstStep) {
  EXPECT_EQ(rejection("gradients@0=x"),
            "--dump gradients@0=x: the first gradients are those of step 1");
}
