#include "runtime/plan/PlanFile.h"

#include "runtime/plan/PlanCheck.h"
#include "runtime/plan/Verifier.h"
#include "test/runtime/Exhaustive.h"
#include "test/runtime/plan/ToyPlan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>

using namespace mega;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

Status load(std::vector<std::byte> file) {
  auto loaded = loadPlan(std::move(file));
  return loaded.isOk() ? Status::ok() : std::move(loaded).takeStatus();
}

std::string rejection(std::vector<std::byte> file) {
  const Status status = load(std::move(file));
  EXPECT_EQ(status.code(), Code::BadInput);
  return status.message();
}

template <typename T>
void poke(std::vector<std::byte> &file, size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof(T));
}

} // namespace

TEST(PlanFile, RoundTrips) {
  const std::vector<std::byte> file = packPlan(*toyPlan());
  auto loaded = loadPlan(file);
  ASSERT_TRUE(loaded.isOk()) << loaded.status().message();
  EXPECT_EQ(text(loaded->root().model()), "toy");
  EXPECT_EQ(loaded->hash().size(), 32u);
  const std::unique_ptr<plan::PlanT> unpacked(loaded->root().UnPack());
  EXPECT_EQ(packPlan(*unpacked), file);
}

TEST(PlanFile, EqualPlansGiveEqualBytes) {
  EXPECT_EQ(packPlan(*toyPlan()), packPlan(*toyPlan()));
}

TEST(PlanFile, CutAnywhereIsRefused) {
  const std::vector<std::byte> file = packPlan(*toyPlan());
  for (size_t size = 0; size < file.size(); ++size) {
    const std::vector<std::byte> cut(file.begin(), file.begin() + size);
    ASSERT_EQ(load(cut).code(), Code::BadInput) << size;
  }
}

TEST(PlanFile, AnyFlippedByteIsRefused) {
  std::vector<std::byte> file = packPlan(*toyPlan());
  for (std::byte &byte : file) {
    for (auto bits : {std::byte{0xff}, std::byte{0x01}, std::byte{0x80}}) {
      byte ^= bits;
      ASSERT_EQ(load(file).code(), Code::BadInput) << &byte - file.data();
      byte ^= bits;
    }
  }
  EXPECT_TRUE(load(file).isOk());
}

TEST(PlanFile, MessagesNameBothValues) {
  const std::vector<std::byte> good = packPlan(*toyPlan());
  std::vector<std::byte> file(good.begin(), good.begin() + 63);
  EXPECT_THAT(rejection(file), StartsWith("the plan has 63 bytes, its header "
                                          "alone takes 64"));
  file = good;
  file[0] = std::byte{'X'};
  EXPECT_THAT(rejection(file), StartsWith("not a plan"));
  file = good;
  poke<uint32_t>(file, 8, kPlanVersion + 6);
  EXPECT_EQ(rejection(file), "the plan has format version 10, this build reads "
                             "4: compile the model again");
  file = good;
  file.push_back(std::byte{0});
  EXPECT_THAT(rejection(file), HasSubstr("cut or was appended to"));
  file = good;
  file.back() ^= std::byte{1};
  EXPECT_THAT(rejection(file), StartsWith("the plan is damaged"));
}

// With a correct hash the structure must hold on its own.
TEST(PlanFile, StructureIsCheckedWithoutTheHash) {
  const std::vector<std::byte> file = packPlan(*toyPlan());
  const std::span<const std::byte> payload =
      std::span(file).subspan(kPlanHeaderBytes);
  std::vector<std::byte> copy(payload.begin(), payload.end());
  int refused = 0;
  const size_t stride = test::sweep<size_t>(3, 1);
  const int lastBit = test::sweep(0, 7);
  for (size_t n = 0; n < copy.size() * (lastBit + 1); n += stride) {
    const size_t i = n % copy.size();
    const std::byte flip{static_cast<uint8_t>(1 << n / copy.size())};
    copy[i] ^= flip;
    flatbuffers::Verifier verifier(
        reinterpret_cast<const uint8_t *>(copy.data()), copy.size());
    if (!plan::VerifyPlanBuffer(verifier)) {
      ++refused;
    } else if (const plan::Plan *root = plan::GetPlan(copy.data())) {
      // Survives: the meaning decides, without reading past the end.
      if (checkPlan(*root).isOk()) {
        (void)verifyPlan(*root);
      }
    }
    copy[i] ^= flip;
  }
  EXPECT_GT(refused, 0);
}

TEST(PlanFile, MissingFileIsAnInputOutputError) {
  auto loaded = loadPlanFile("/nonexistent/plan.mega");
  ASSERT_FALSE(loaded.isOk());
  EXPECT_EQ(loaded.status().code(), Code::Io);
  EXPECT_EQ(loaded.status().message(),
            "cannot open /nonexistent/plan.mega: No such file or directory");
}

TEST(PlanFile, LoadsFromAPath) {
  const std::string path = testing::TempDir() + "toy.mega";
  const std::vector<std::byte> file = packPlan(*toyPlan());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(file.data()),
             static_cast<std::streamsize>(file.size()));
  auto loaded = loadPlanFile(path);
  EXPECT_TRUE(loaded.isOk());
  std::ofstream(path, std::ios::trunc) << "short";
  loaded = loadPlanFile(path);
  ASSERT_FALSE(loaded.isOk());
  EXPECT_THAT(loaded.status().message(), StartsWith(path + ": the plan has 5"));
  std::remove(path.c_str());
}
