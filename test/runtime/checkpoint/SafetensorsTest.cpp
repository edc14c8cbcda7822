#include "runtime/checkpoint/Safetensors.h"

#include "test/runtime/TemporaryDirectory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>

using namespace mega;
using mega::test::readFile;
using mega::test::TemporaryDirectory;
using mega::test::writeFile;
using testing::HasSubstr;

namespace {

const std::vector<TensorInfo> kTensors = {{"b", DataType::F32, {2, 3}},
                                          {"a", DataType::BF16, {3}},
                                          {"empty", DataType::F32, {0, 5}},
                                          {"count", DataType::I64, {}},
                                          {"c.weight", DataType::F64, {1, 2}}};

/// Byte i of every tensor is i.
std::vector<std::byte> content(const TensorInfo &info) {
  std::vector<std::byte> bytes(*tensorBytes(info));
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i);
  }
  return bytes;
}

Status writeAll(const std::string &path, std::vector<TensorInfo> tensors) {
  MEGA_ASSIGN_OR_RETURN(
      auto writer,
      SafetensorsWriter::create(path, std::move(tensors), {{"step", "7"}}));
  for (const TensorInfo &info : writer.tensors()) {
    MEGA_RETURN_IF_ERROR(writer.append(info.name, content(info)));
  }
  return writer.finish();
}

class SafetensorsTest : public testing::Test {
protected:
  std::string path() const { return directory.file("x.safetensors"); }

  /// A file with this header and `dataBytes` zeros.
  StatusOr<SafetensorsReader> open(const std::string &header,
                                   size_t dataBytes) const {
    const uint64_t length = header.size();
    writeFile(path(), std::string(reinterpret_cast<const char *>(&length), 8) +
                          header + std::string(dataBytes, '\0'));
    return SafetensorsReader::open(path());
  }

  void refuses(const std::string &header, size_t dataBytes,
               const std::string &what) const {
    const auto reader = open(header, dataBytes);
    EXPECT_EQ(reader.status().code(), Code::BadInput) << header;
    EXPECT_THAT(
        reader.status().message(),
        testing::AllOf(testing::StartsWith(path() + ": "), HasSubstr(what)));
  }

  TemporaryDirectory directory;
};

std::string entry(const std::string &name, const std::string &type,
                  const std::string &shape, const std::string &offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

} // namespace

TEST_F(SafetensorsTest, WritesTheDocumentedBytes) {
  ASSERT_TRUE(writeAll(path(), {{"b", DataType::I32, {2}},
                                {"a", DataType::BF16, {1, 1}}})
                  .isOk());
  const std::string file = readFile(path());
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const std::string json =
      R"({"__metadata__":{"format":"pt","step":"7"},)"
      R"("a":{"data_offsets":[8,10],"dtype":"BF16","shape":[1,1]},)"
      R"("b":{"data_offsets":[0,8],"dtype":"I32","shape":[2]}})";
  std::string header = file.substr(8, length);
  EXPECT_EQ(header.substr(0, json.size()), json);
  EXPECT_EQ(header.find_first_not_of(' ', json.size()), std::string::npos);
  EXPECT_EQ(file.substr(8 + length), std::string("\0\1\2\3\4\5\6\7\0\1", 10));
}

TEST_F(SafetensorsTest, RoundTripsAllTypes) {
  ASSERT_TRUE(writeAll(path(), kTensors).isOk());
  auto opened = SafetensorsReader::open(path());
  ASSERT_TRUE(opened.isOk()) << opened.status().message();
  const SafetensorsReader reader = std::move(opened).take();
  EXPECT_EQ(reader.tensors().size(), kTensors.size());
  for (const TensorInfo &info : kTensors) {
    const auto *tensor = reader.find(info.name);
    ASSERT_NE(tensor, nullptr) << info.name;
    EXPECT_EQ(static_cast<const TensorInfo &>(*tensor), info);
    EXPECT_TRUE(std::ranges::equal(tensor->bytes, content(info)));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor->bytes.data()) %
                  byteSize(info.type),
              0u);
  }
  EXPECT_EQ(reader.find("missing"), nullptr);
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.metadata().at("step"), "7");
  EXPECT_EQ(directory.count(), 1);
}

TEST_F(SafetensorsTest, TheSameTensorsGiveTheSameBytesInAnyOrder) {
  ASSERT_TRUE(writeAll(path(), kTensors).isOk());
  const std::string first = readFile(path());
  ASSERT_TRUE(writeAll(path(), {kTensors.rbegin(), kTensors.rend()}).isOk());
  EXPECT_EQ(readFile(path()), first);
}

TEST_F(SafetensorsTest, TakesPiecesAndNoTensors) {
  auto writer = SafetensorsWriter::create(path(), {{"a", DataType::F32, {2}}});
  ASSERT_TRUE(writer.isOk());
  const auto bytes = content(writer->tensors()[0]);
  ASSERT_TRUE(writer->append("a", std::span(bytes).first(3)).isOk());
  ASSERT_TRUE(writer->append("a", std::span(bytes).subspan(3)).isOk());
  ASSERT_TRUE(writer->finish().isOk());
  EXPECT_TRUE(SafetensorsReader::open(path()).isOk());

  ASSERT_TRUE(writeAll(path(), {}).isOk());
  EXPECT_TRUE(SafetensorsReader::open(path()).isOk());
}

TEST_F(SafetensorsTest, TheWriterRefusesWrongUse) {
  const std::byte bytes[9] = {};
  {
    auto writer = SafetensorsWriter::create(
        path(), {{"a", DataType::F32, {2}}, {"b", DataType::F32, {2}}});
    ASSERT_TRUE(writer.isOk());
    EXPECT_EQ(writer->append("b", bytes).message(),
              path() + ": tensor b appended, but a is due");
    EXPECT_EQ(writer->append("a", bytes).message(),
              path() + ": 9 bytes appended to tensor a, which lacks 8");
    ASSERT_TRUE(writer->append("a", std::span(bytes).first(8)).isOk());
    EXPECT_EQ(writer->finish().message(), path() + ": tensor b lacks 8 bytes");
  }
  EXPECT_EQ(directory.count(), 0);
}

TEST_F(SafetensorsTest, TheWriterRefusesWrongTensors) {
  const auto refused = [&](std::vector<TensorInfo> tensors) {
    const auto writer = SafetensorsWriter::create(path(), std::move(tensors));
    EXPECT_EQ(writer.status().code(), Code::BadInput);
    return writer.status().message();
  };
  const TensorInfo a{"a", DataType::F32, {2}};
  EXPECT_EQ(refused({a, a}), path() + ": a duplicate tensor name 'a'");
  EXPECT_THAT(refused({{"", DataType::F32, {2}}}), HasSubstr("an empty"));
  EXPECT_THAT(refused({{"__metadata__", DataType::F32, {2}}}),
              HasSubstr("a reserved"));
  EXPECT_THAT(refused({{"\xff", DataType::F32, {2}}}), HasSubstr("UTF-8"));
  EXPECT_THAT(refused({{"a", DataType::F32, {-1}}}),
              HasSubstr("an extent of -1"));
  EXPECT_THAT(refused({{"a", DataType::F32, {int64_t{1} << 40, 1 << 30}}}),
              HasSubstr("below 2^63"));
  const TensorInfo half{"a", DataType::I32, {int64_t{1} << 60}};
  EXPECT_THAT(refused({half, {"b", half.type, half.shape}}),
              HasSubstr("ends beyond 2^63"));
  EXPECT_EQ(directory.count(), 0);
}

TEST_F(SafetensorsTest, RefusesAFileCutAtAnyByte) {
  ASSERT_TRUE(writeAll(path(), kTensors).isOk());
  const std::string whole = readFile(path());
  for (size_t length = 0; length < whole.size(); ++length) {
    writeFile(path(), whole.substr(0, length));
    EXPECT_EQ(SafetensorsReader::open(path()).status().code(), Code::BadInput)
        << length;
  }
}

TEST_F(SafetensorsTest, NeverCrashesOnAFlippedHeaderByte) {
  ASSERT_TRUE(writeAll(path(), kTensors).isOk());
  const std::string whole = readFile(path());
  uint64_t header = 0;
  std::memcpy(&header, whole.data(), 8);
  for (size_t at = 0; at < 8 + header; ++at) {
    for (int flip : {0x01, 0x02, 0x10, 0x20, 0x80, 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      writeFile(path(), damaged);
      const auto reader = SafetensorsReader::open(path());
      if (!reader.isOk()) {
        EXPECT_EQ(reader.status().code(), Code::BadInput) << at;
        continue;
      }
      // A renamed tensor, or a type of the same width: still a valid file.
      int64_t bytes = 0;
      for (const auto &tensor : reader->tensors()) {
        EXPECT_EQ(*tensorBytes(tensor), std::ssize(tensor.bytes));
        bytes += std::ssize(tensor.bytes);
      }
      EXPECT_EQ(bytes, std::ssize(whole) - 8 - static_cast<int64_t>(header));
    }
  }
}

TEST_F(SafetensorsTest, ReadsWhatOthersWrite) {
  const auto reader = open("{" + entry("b", "I32", "[]", "[0,4]") + "," +
                               entry("a", "BF16", "[2, 1]", "[4, 8]") + "}   ",
                           8);
  ASSERT_TRUE(reader.isOk()) << reader.status().message();
  EXPECT_EQ(reader->tensors()[0].name, "a");
  EXPECT_TRUE(reader->metadata().empty());
}

TEST_F(SafetensorsTest, RefusesHeaderLengthsThatDoNotFit) {
  for (uint64_t length : {uint64_t{3}, uint64_t{100'000'001},
                          std::numeric_limits<uint64_t>::max()}) {
    writeFile(path(),
              std::string(reinterpret_cast<const char *>(&length), 8) + "{}");
    EXPECT_THAT(SafetensorsReader::open(path()).status().message(),
                HasSubstr(fmt::format("a header of {} bytes", length)));
  }
}

TEST_F(SafetensorsTest, RefusesTextThatIsNoHeader) {
  refuses("", 0, "does not begin with {");
  refuses(" {}", 0, "does not begin with {");
  refuses("[]", 0, "does not begin with {");
  refuses("{", 0, "not valid JSON");
  refuses("{}x", 0, "not valid JSON");
  refuses("{\"a\":1}", 0, "not exactly dtype, shape and data_offsets");
  refuses("{\"\xff\":1}", 0, "not valid JSON");
  refuses("{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') +
              "}",
          0, "nested deeper");
}

TEST_F(SafetensorsTest, RefusesDuplicateKeys) {
  const std::string a = entry("a", "F32", "[0]", "[0,0]");
  refuses("{" + a + "," + a + "}", 0, "the key a twice");
  refuses(R"({"a":{"dtype":"F32","dtype":"F32","shape":[0],)"
          R"("data_offsets":[0,0]}})",
          0, "the key dtype twice");
  EXPECT_TRUE(
      open("{" + a + "," + entry("b", "F32", "[0]", "[0,0]") + "}", 0).isOk());
}

TEST_F(SafetensorsTest, RefusesWrongEntries) {
  const auto one = [&](const std::string &type, const std::string &shape,
                       const std::string &offsets) {
    return "{" + entry("a", type, shape, offsets) + "}";
  };
  refuses(one("F16", "[2]", "[0,4]"), 4,
          "dtype \"F16\", expected F32, BF16, F64, I32, I64");
  refuses(one("F32", "[-1]", "[0,4]"), 4, "no valid shape");
  refuses(one("F32", "[1.0]", "[0,4]"), 4, "no valid shape");
  refuses(one("F32", "1", "[0,4]"), 4, "no valid shape");
  refuses(one("F32", "[9223372036854775808]", "[0,4]"), 4, "no valid shape");
  refuses(one("F32", "[4294967296,4294967296]", "[0,0]"), 0, "below 2^63");
  refuses(one("F32", "[1]", "[0]"), 4, "no valid data_offsets");
  refuses(one("F32", "[1]", "[4,0]"), 4, "no valid data_offsets");
  refuses(one("F32", "[1]", "[0,8]"), 4, "no valid data_offsets");
  refuses(one("F32", "[1]", "[-4,0]"), 4, "no valid data_offsets");
  refuses(one("F32", "[1]", "[0,18446744073709551616]"), 4,
          "no valid data_offsets");
  refuses(one("F32", "[1]", "[0,8]"), 8,
          "tensor a has 8 bytes at [0, 8), but its shape and dtype F32 make 4");
  refuses(R"({"__metadata__":1})", 0, "__metadata__ is no object");
  refuses(R"({"__metadata__":{"a":1}})", 0, "__metadata__ a is no string");
  refuses(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":0}})", 4,
          "not exactly");
}

TEST_F(SafetensorsTest, RefusesHolesAndOverlaps) {
  const std::string first = entry("a", "F32", "[1]", "[0,4]");
  refuses("{" + first + "," + entry("b", "F32", "[1]", "[8,12]") + "}", 12,
          "tensor b begins at byte 8 of the data, expected 4");
  refuses("{" + first + "," + entry("b", "F32", "[1]", "[2,6]") + "}", 6,
          "tensor b begins at byte 2 of the data, expected 4");
  refuses("{" + first + "," + entry("b", "F32", "[1]", "[0,4]") + "}", 4,
          "a hole or an overlap");
  refuses("{" + first + "}", 5, "end at byte 4 of the data, which has 5");
  refuses("{}", 1, "end at byte 0 of the data, which has 1");
}

TEST_F(SafetensorsTest, NamesTheMissingFile) {
  const auto reader = SafetensorsReader::open(path());
  EXPECT_EQ(reader.status().code(), Code::Io);
  EXPECT_EQ(reader.status().message(),
            "cannot open " + path() + ": No such file or directory");
}
