//===- Compile.h - From the text of a model to a plan file ------*- C++ -*-===//
//
// What megac does, without its command line.
//
//===----------------------------------------------------------------------===//
#ifndef MEGA_PASSES_COMPILE_H
#define MEGA_PASSES_COMPILE_H

#include "passes/Passes.h"
#include "runtime/plan/Status.h"

#include "llvm/Support/MemoryBuffer.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace mega {

struct CompileRequest {
  /// Sequence 0 stands for the model's max_sequence.
  CompileOptions options;
  /// The configuration as flags, kept in the plan.
  std::string flags;
  /// Where to write the IR after every phase; empty: nowhere.
  std::string dumpDirectory;
};

/// Brackets of a model may nest this deep: the parser recurses, and would
/// overflow the stack on hostile input.
inline constexpr int kMaxNesting = 256;

/// Refuses text whose brackets nest deeper than kMaxNesting; strings and
/// comments do not count.
Status checkNesting(llvm::StringRef text);

/// The plan file for `model`. Diagnostics about the model go to stderr, with
/// its source lines; the status then only says that it was rejected
/// (Code::Failed). A plan that does not pass its own verifier is
/// Code::Internal.
StatusOr<std::vector<std::byte>>
compile(std::unique_ptr<llvm::MemoryBuffer> model,
        const CompileRequest &request);

} // namespace mega

#endif // MEGA_PASSES_COMPILE_H
