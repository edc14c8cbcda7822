//===- PlanFile.h - Reading and writing plans -------------------*- C++ -*-===//
//
// A plan file is a header of 64 bytes and a flatbuffer (plan.fbs), little
// endian:
//
//   0   8 bytes  "MEGAPLAN"
//   8   u32      format version, kPlanVersion
//   12  u32      bytes of this header, 64
//   16  u64      bytes of the flatbuffer: all that follows the header
//   24  16 bytes xxh3-128 (canonical form) of the whole file, these 16 being 0
//   40  24 bytes zero
//   64           flatbuffer
//
// A plan is untrusted. Loading checks (1) the header and the hash, (2) the
// structure, with flatbuffers::Verifier, (3) the meaning of every field
// (PlanCheck.h), in this order; what it computes is checked by Verifier.h. A
// file that passes can be executed without another bound check.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_RUNTIME_PLAN_PLANFILE_H
#define MEGA_RUNTIME_PLAN_PLANFILE_H

#include "runtime/plan/Plan.h"
#include "runtime/plan/Status.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mega {

inline constexpr size_t kPlanHeaderBytes = 64;

/// The file for `plan`. Equal plans give equal bytes. Sets version and schema
/// to those of this build.
std::vector<std::byte> packPlan(const plan::PlanT &plan);

/// Writes the header for the flatbuffer that follows it; the file has at least
/// kPlanHeaderBytes.
void sealPlan(std::span<std::byte> file);

/// Checks (1) and (2) only.
Status checkPlanBytes(std::span<const std::byte> file);

/// A checked plan and the bytes it lives in. Move-only; `root` stays valid when
/// the object moves.
class LoadedPlan {
public:
  LoadedPlan(LoadedPlan &&) = default;
  LoadedPlan &operator=(LoadedPlan &&) = default;

  const plan::Plan &root() const { return *root_; }
  /// 32 hexadecimal digits: identifies the plan in logs and checkpoints.
  const std::string &hash() const { return hash_; }
  std::span<const std::byte> bytes() const { return bytes_; }

private:
  friend StatusOr<LoadedPlan> loadPlan(std::vector<std::byte> file);
  LoadedPlan() = default;

  std::vector<std::byte> bytes_;
  const plan::Plan *root_ = nullptr;
  std::string hash_;
};

/// All three checks; Code::BadInput. Aligned to 8 bytes as any vector is.
StatusOr<LoadedPlan> loadPlan(std::vector<std::byte> file);
/// The same for the content of a file; Code::Io if it cannot be read. Messages
/// start with the path.
StatusOr<LoadedPlan> loadPlanFile(const std::string &path);

} // namespace mega

#endif // MEGA_RUNTIME_PLAN_PLANFILE_H
