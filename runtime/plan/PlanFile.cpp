//===- PlanFile.cpp - Reading and writing plans ---------------------------===//
#include "runtime/plan/PlanFile.h"

#include "runtime/plan/PackPlan.h"
#include "runtime/plan/PlanCheck.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace mega {
namespace {

static_assert(std::endian::native == std::endian::little,
              "plan files are little endian and read in place");

constexpr std::string_view kMagic = "MEGAPLAN";
constexpr size_t kHashOffset = 24;
constexpr size_t kHashBytes = 16;
constexpr size_t kReservedOffset = kHashOffset + kHashBytes;
/// flatbuffers uses signed 32-bit offsets.
constexpr uint64_t kMaxPayload = (uint64_t{1} << 31) - 1;

using Hash = std::array<std::byte, kHashBytes>;

Hash hashOf(std::span<const std::byte> file) {
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t *)> state(
      XXH3_createState(), XXH3_freeState);
  const Hash zero = {};
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), file.data(), kHashOffset);
  XXH3_128bits_update(state.get(), zero.data(), zero.size());
  const auto rest = file.subspan(kReservedOffset);
  XXH3_128bits_update(state.get(), rest.data(), rest.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state.get()));
  Hash hash;
  std::memcpy(hash.data(), canonical.digest, kHashBytes);
  return hash;
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte byte : bytes) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

template <typename T> T read(std::span<const std::byte> file, size_t offset) {
  T value;
  std::memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

template <typename T>
void write(std::span<std::byte> file, size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof(T));
}

Status checkHeader(std::span<const std::byte> file) {
  if (file.size() < kPlanHeaderBytes) {
    return badInput("the plan has {} bytes, its header alone takes {}: the "
                    "file is cut",
                    file.size(), kPlanHeaderBytes);
  }
  if (std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) {
    return badInput("not a plan: the file starts with bytes {}, not {}",
                    hexadecimal(file.first(kMagic.size())), kMagic);
  }
  if (const auto version = read<uint32_t>(file, 8); version != kPlanVersion) {
    return badInput("the plan has format version {}, this build reads {}: "
                    "compile the model again",
                    version, kPlanVersion);
  }
  if (const auto bytes = read<uint32_t>(file, 12); bytes != kPlanHeaderBytes) {
    return badInput("the plan's header says it has {} bytes, expected {}",
                    bytes, kPlanHeaderBytes);
  }
  const auto payload = read<uint64_t>(file, 16);
  if (payload != file.size() - kPlanHeaderBytes) {
    return badInput("the plan's header announces {} bytes, {} follow it: the "
                    "file is cut or was appended to",
                    payload, file.size() - kPlanHeaderBytes);
  }
  if (payload > kMaxPayload) {
    return badInput("the plan has {} bytes, at most {} are possible", payload,
                    kMaxPayload);
  }
  const auto stored = file.subspan(kHashOffset, kHashBytes);
  if (const Hash hash = hashOf(file);
      !std::equal(hash.begin(), hash.end(), stored.begin())) {
    return badInput("the plan is damaged: its bytes hash to {}, its header "
                    "says {}",
                    hexadecimal(hash), hexadecimal(stored));
  }
  // Only after the hash: nobody but a writer of plans gets this wrong.
  const auto reserved =
      file.subspan(kReservedOffset, kPlanHeaderBytes - kReservedOffset);
  if (std::any_of(reserved.begin(), reserved.end(),
                  [](std::byte byte) { return byte != std::byte{0}; })) {
    return badInput("reserved bytes of the plan's header are {}, expected 0",
                    hexadecimal(reserved));
  }
  return Status::ok();
}

Status checkStructure(std::span<const std::byte> payload) {
  const auto *data = reinterpret_cast<const uint8_t *>(payload.data());
  flatbuffers::Verifier verifier(data, payload.size());
  if (payload.size() < 8 || !plan::PlanBufferHasIdentifier(data)) {
    return badInput("the plan's flatbuffer has no identifier {}",
                    plan::PlanIdentifier());
  }
  if (!plan::VerifyPlanBuffer(verifier)) {
    return badInput("the plan's flatbuffer is malformed: an offset, a length "
                    "or a required field is wrong");
  }
  return Status::ok();
}

} // namespace

static void stamp(plan::PlanT &plan) {
  plan.version = kPlanVersion;
  plan.schema = kPlanSchema;
}

std::vector<std::byte> packPlan(const plan::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  plan::PlanT stamped(plan);
  stamp(stamped);
  for (const auto &stage : stamped.stages) {
    stamp(*stage);
  }
  plan::FinishPlanBuffer(builder, packShared(builder, stamped));

  std::vector<std::byte> file(kPlanHeaderBytes + builder.GetSize());
  std::memcpy(file.data() + kPlanHeaderBytes, builder.GetBufferPointer(),
              builder.GetSize());
  sealPlan(file);
  return file;
}

void sealPlan(std::span<std::byte> file) {
  std::fill_n(file.begin(), kPlanHeaderBytes, std::byte{0});
  std::memcpy(file.data(), kMagic.data(), kMagic.size());
  write<uint32_t>(file, 8, kPlanVersion);
  write<uint32_t>(file, 12, kPlanHeaderBytes);
  write<uint64_t>(file, 16, file.size() - kPlanHeaderBytes);
  const Hash hash = hashOf(file);
  std::copy(hash.begin(), hash.end(), file.begin() + kHashOffset);
}

Status checkPlanBytes(std::span<const std::byte> file) {
  MEGA_RETURN_IF_ERROR(checkHeader(file));
  return checkStructure(file.subspan(kPlanHeaderBytes));
}

StatusOr<LoadedPlan> loadPlan(std::vector<std::byte> file) {
  MEGA_RETURN_IF_ERROR(checkPlanBytes(file));
  LoadedPlan loaded;
  loaded.bytes_ = std::move(file);
  loaded.root_ = plan::GetPlan(loaded.bytes_.data() + kPlanHeaderBytes);
  loaded.hash_ = hexadecimal(loaded.bytes().subspan(kHashOffset, kHashBytes));
  MEGA_RETURN_IF_ERROR(checkPlan(loaded.root()));
  return loaded;
}

StatusOr<LoadedPlan> loadPlanFile(const std::string &path) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(
      std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) {
    return ioError("cannot open {}: {}", path, std::strerror(errno));
  }
  // Grows with what is read, not with what a file claims to hold.
  std::vector<std::byte> bytes;
  for (;;) {
    const size_t before = bytes.size();
    bytes.resize(before + (size_t{1} << 20));
    const size_t got =
        std::fread(bytes.data() + before, 1, size_t{1} << 20, file.get());
    bytes.resize(before + got);
    if (got == 0) {
      break;
    }
    if (bytes.size() > kMaxPayload + kPlanHeaderBytes) {
      return badInput("{}: larger than any plan, {} bytes", path, kMaxPayload);
    }
  }
  if (std::ferror(file.get())) {
    return ioError("cannot read {}: {}", path, std::strerror(errno));
  }
  auto loaded = loadPlan(std::move(bytes));
  if (!loaded.isOk()) {
    return std::move(loaded).takeStatus().withContext(path);
  }
  return loaded;
}

} // namespace mega
