//===- TfmOps.td - All ops of the tfm dialect -----------------------------===//
include "dialects/tfm/TfmModelOps.td"
include "dialects/tfm/TfmLayerOps.td"
include "dialects/tfm/TfmTrainingOps.td"
