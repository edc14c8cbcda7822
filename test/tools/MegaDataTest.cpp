// Runs the installed command: arguments, exit codes, streams.
#include "test/runtime/TemporaryDirectory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>

using mega::test::readFile;
using mega::test::TemporaryDirectory;
using mega::test::writeFile;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

class MegaDataTest : public testing::Test {
protected:
  MegaDataTest() { writeFile(directory.file("text"), "First Citizen:\n"); }

  /// Runs `mega-data arguments` in the folder; the streams go to files.
  int run(const std::string &arguments, const std::string &before = "") {
    // Redirections of the arguments come later and win.
    const std::string command = "cd " + directory.path + " && " + before +
                                " >stdout 2>stderr " MEGA_DATA_PATH " " +
                                arguments;
    const int status = std::system(command.c_str());
    out = readFile(directory.file("stdout"));
    error = readFile(directory.file("stderr"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TemporaryDirectory directory;
  std::string out;
  std::string error;
};

} // namespace

TEST_F(MegaDataTest, TokenizesAndInspects) {
  EXPECT_EQ(run("tokenize text --tokenizer byte -o book"), 0) << error;
  EXPECT_EQ(out, "wrote book.bin and book.idx: documents 1, tokens 16, type "
                 "u16, vocabulary 257\n");
  EXPECT_EQ(run("inspect book"), 0) << error;
  EXPECT_THAT(out, HasSubstr("tokens        16\n"));
  EXPECT_THAT(out, HasSubstr("\"First Citizen:\\n\""));
  EXPECT_EQ(error, "");
}

TEST_F(MegaDataTest, ReadsStandardInput) {
  EXPECT_EQ(run("tokenize - text -o all --document-separator '|'",
                "printf 'one||two' | "),
            0)
      << error;
  EXPECT_EQ(out, "wrote all.bin and all.idx: documents 3, tokens 24, type u16, "
                 "vocabulary 257\nleft out 1 documents without text\n");
}

TEST_F(MegaDataTest, TakesATokenizerFileAndSaysHowDocumentsEnd) {
  writeFile(directory.file("t.json"), R"({
    "added_tokens": [{"id": 2, "content": "<eos>", "special": true}],
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})");
  writeFile(directory.file("pages.jsonl"),
            "{\"text\": \"abba\"}\n{\"text\": \"bb\"}\n");
  EXPECT_EQ(run("tokenize pages.jsonl --tokenizer t.json -o p --workers 2"), 0)
      << error;
  EXPECT_EQ(out, "wrote p.bin and p.idx: documents 2, tokens 8, type u16, "
                 "vocabulary 3\n"
                 "tokenizer t.json (bpe), documents end with id 2 (<eos>)\n");
  EXPECT_EQ(run("inspect p --tokenizer t.json"), 0) << error;
  EXPECT_THAT(out, HasSubstr("\"abba<eos>bb<eos>\""));
  writeFile(directory.file("pages.jsonl"), "{\"text\": \"abc\"}");
  EXPECT_EQ(run("tokenize pages.jsonl --tokenizer t.json -o q"), 65);
  EXPECT_EQ(error, "mega-data: error: pages.jsonl:1: the tokenizer has no "
                   "token for \"c\", and no unk_token\n");
  EXPECT_EQ(run("tokenize pages.jsonl --tokenizer none -o q"), 74);
  EXPECT_EQ(run("tokenize pages.jsonl --tokenizer pages.jsonl -o q"), 65);
}

TEST_F(MegaDataTest, IndexesAndRefusesAStaleIndex) {
  EXPECT_EQ(run("tokenize text -o a"), 0) << error;
  const std::string meta = readFile(directory.file("a.meta"));
  std::filesystem::remove(directory.file("a.meta"));
  EXPECT_EQ(run("index a"), 0) << error;
  EXPECT_EQ(out, "wrote a.meta: documents 1, tokens 16, ids 10 to 256\n");
  EXPECT_EQ(readFile(directory.file("a.meta")), meta);
  EXPECT_EQ(run("index missing"), 74);
}

TEST_F(MegaDataTest, HelpFitsOneScreen) {
  for (const char *arguments :
       {"--help", "-h", "tokenize --help", "inspect --help", "index --help",
        "samples --help"}) {
    EXPECT_EQ(run(arguments), 0);
    EXPECT_LE(std::count(out.begin(), out.end(), '\n'), 24) << out;
    EXPECT_EQ(error, "");
  }
  EXPECT_EQ(run("--version"), 0);
  EXPECT_THAT(out, StartsWith("mega-data "));
}

TEST_F(MegaDataTest, WrongUsageIsTwo) {
  for (const char *arguments :
       {"", "tokenise text -o a", "tokenize", "tokenize text",
        "tokenize text -o a --what", "tokenize -o a",
        "tokenize text -o a --eod 257", "tokenize text -o a --eod none",
        "tokenize text -o a --workers 0", "index", "inspect",
        "inspect a --first x", "inspect a --first -1", "inspect a b"}) {
    EXPECT_EQ(run(arguments), 2) << arguments;
    EXPECT_THAT(error, StartsWith("mega-data: error: ")) << arguments;
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << error;
    EXPECT_EQ(out, "");
  }
}

TEST_F(MegaDataTest, WrongUsageNamesWhatIsWrong) {
  run("tokenise text -o a");
  EXPECT_EQ(error,
            "mega-data: error: unknown command tokenise (commands: "
            "tokenize, index, inspect, samples); see mega-data --help\n");
  run("");
  EXPECT_THAT(error,
              StartsWith("mega-data: error: no command (commands: tokenize"));
  run("tokenize text -o a --eod '<eos>'");
  EXPECT_EQ(error, "mega-data: error: --eod <eos>: the tokenizer has no such "
                   "token (it names no special tokens)\n");
}

TEST_F(MegaDataTest, BadDataIs65) {
  writeFile(directory.file("a.idx"), "no index");
  writeFile(directory.file("a.bin"), "");
  EXPECT_EQ(run("inspect a"), 65);
  EXPECT_EQ(error, "mega-data: error: a.idx: not a Megatron index: it does not "
                   "begin with MMIDIDX\n");
  EXPECT_EQ(run("tokenize stdout -o a"), 65);
  EXPECT_EQ(error, "mega-data: error: no text in stdout\n");
}

TEST_F(MegaDataTest, InputAndOutputErrorsAre74) {
  EXPECT_EQ(run("inspect missing"), 74);
  EXPECT_EQ(error, "mega-data: error: cannot open missing.idx: No such file or "
                   "directory\n");
  EXPECT_EQ(run("tokenize missing -o a"), 74);
  EXPECT_EQ(run("tokenize text -o no/such/folder"), 74);
  EXPECT_THAT(error, HasSubstr("no/such/folder.bin.tmp-"));
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_EQ(run("tokenize text -o b >/dev/full"), 74);
    EXPECT_EQ(error, "mega-data: error: cannot write standard output: No space "
                     "left on device\n");
  }
}
