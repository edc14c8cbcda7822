#include "runtime/core/Files.h"

#include "test/runtime/TemporaryDirectory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace mega;
using mega::test::readFile;
using mega::test::TemporaryDirectory;
using mega::test::writeFile;
using testing::HasSubstr;

namespace {

std::string text(const MappedFile &file) {
  return {reinterpret_cast<const char *>(file.bytes().data()),
          file.bytes().size()};
}

} // namespace

TEST(MappedFile, HoldsTheBytesAndSurvivesAMove) {
  TemporaryDirectory directory;
  writeFile(directory.file("a"), "hello");
  auto opened = MappedFile::open(directory.file("a"));
  ASSERT_TRUE(opened.isOk()) << opened.status().message();
  MappedFile moved = std::move(opened).take();
  EXPECT_EQ(text(moved), "hello");
  EXPECT_EQ(moved.path(), directory.file("a"));
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  TemporaryDirectory directory;
  writeFile(directory.file("a"), "");
  auto opened = MappedFile::open(directory.file("a"));
  ASSERT_TRUE(opened.isOk());
  EXPECT_TRUE(opened->bytes().empty());
}

TEST(MappedFile, NamesTheMissingFileAndTheReason) {
  const auto opened = MappedFile::open("/nonexistent/a.bin");
  EXPECT_EQ(opened.status().code(), Code::Io);
  EXPECT_EQ(opened.status().message(),
            "cannot open /nonexistent/a.bin: No such file or directory");
}

TEST(MappedFile, RefusesFoldersAndPipesWithoutWaiting) {
  TemporaryDirectory directory;
  EXPECT_EQ(MappedFile::open(directory.path).status().code(), Code::Io);
  ASSERT_EQ(mkfifo(directory.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(MappedFile::open(directory.file("pipe")).status().message(),
              HasSubstr("not a regular file"));
}

TEST(AtomicFile, AppearsOnCommitOnly) {
  TemporaryDirectory directory;
  auto created = AtomicFile::create(directory.file("a"));
  ASSERT_TRUE(created.isOk());
  AtomicFile file = std::move(created).take();
  ASSERT_TRUE(file.write("hello ").isOk());
  ASSERT_TRUE(file.write("world").isOk());
  ASSERT_TRUE(file.sync().isOk());
  EXPECT_FALSE(std::filesystem::exists(directory.file("a")));
  ASSERT_TRUE(file.commit().isOk());
  EXPECT_EQ(readFile(directory.file("a")), "hello world");
  EXPECT_EQ(directory.count(), 1);
}

TEST(AtomicFile, AbandonedKeepsTheOldContent) {
  TemporaryDirectory directory;
  writeFile(directory.file("a"), "old");
  {
    auto created = AtomicFile::create(directory.file("a"));
    ASSERT_TRUE(created.isOk());
    ASSERT_TRUE(created->write("new").isOk());
  }
  EXPECT_EQ(readFile(directory.file("a")), "old");
  EXPECT_EQ(directory.count(), 1);
}

TEST(AtomicFile, WritesPiecesLargerThanItsBuffer) {
  TemporaryDirectory directory;
  const std::string big((1 << 19) + 3, 'x');
  auto created = AtomicFile::create(directory.file("a"));
  ASSERT_TRUE(created.isOk());
  for (const std::string &piece : {std::string("a"), big, std::string("b")}) {
    ASSERT_TRUE(created->write(piece).isOk());
  }
  ASSERT_TRUE(created->commit().isOk());
  EXPECT_EQ(readFile(directory.file("a")), "a" + big + "b");
}

TEST(AtomicFile, ReportsAMissingFolder) {
  const auto created = AtomicFile::create("/nonexistent/a");
  EXPECT_EQ(created.status().code(), Code::Io);
  EXPECT_THAT(created.status().message(), HasSubstr("cannot create"));
}

TEST(AtomicFile, RemovesTheTemporaryWhenRenamingFails) {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.file("a"));
  {
    auto created = AtomicFile::create(directory.file("a"));
    ASSERT_TRUE(created.isOk());
    const Status status = created->commit();
    EXPECT_EQ(status.code(), Code::Io);
    EXPECT_EQ(status.message(),
              "cannot replace " + directory.file("a") + ": Is a directory");
  }
  EXPECT_EQ(directory.count(), 1);
}

TEST(AtomicFile, ReportsAFullDisk) {
  const std::string full = "/dev/full";
  if (!std::filesystem::exists(full)) {
    GTEST_SKIP() << "this system has no /dev/full";
  }
  FILE *file = std::fopen(full.c_str(), "w");
  ASSERT_NE(file, nullptr);
  const std::byte bytes[4] = {};
  EXPECT_EQ(writeFully(fileno(file), bytes, full).message(),
            "cannot write /dev/full: No space left on device");
  std::fclose(file);
}

TEST(ReadWholeFile, ReadsFilesOfAnyLength) {
  TemporaryDirectory directory;
  for (size_t length : {size_t{0}, size_t{5}, (size_t{1} << 18) + 1}) {
    const std::string content(length, 'x');
    writeFile(directory.file("a"), content);
    const auto read = readWholeFile(directory.file("a"));
    ASSERT_TRUE(read.isOk());
    EXPECT_EQ(*read, content);
  }
}

TEST(ReadWholeFile, ReportsFoldersAndMissingFiles) {
  TemporaryDirectory directory;
  EXPECT_EQ(readWholeFile(directory.path).status().message(),
            "cannot read " + directory.path + ": Is a directory");
  EXPECT_EQ(readWholeFile(directory.file("a")).status().code(), Code::Io);
}
