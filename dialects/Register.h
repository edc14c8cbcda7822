//===- Register.h - All dialects of the project -----------------*- C++ -*-===//
#ifndef MEGA_DIALECTS_REGISTER_H
#define MEGA_DIALECTS_REGISTER_H

#include "dialects/dist/Dist.h"
#include "dialects/exec/Exec.h"
#include "dialects/pipe/Pipe.h"
#include "dialects/tfm/Tfm.h"

namespace mega {
inline void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<dist::DistDialect, exec::ExecDialect, pipe::PipeDialect,
                  tfm::TfmDialect>();
}
} // namespace mega

#endif // MEGA_DIALECTS_REGISTER_H
