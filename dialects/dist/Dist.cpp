//===- Dist.cpp - Parsing, printing and verifying meshes and layouts ------===//
#include "dialects/dist/Dist.h"

#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace mega;
using namespace mega::dist;

#include "dialects/dist/DistDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
}

llvm::hash_code mega::hash_value(const Layout &layout) {
  llvm::hash_code hash =
      llvm::hash_combine(layout.rank, layout.replicated, layout.partial,
                         static_cast<int>(layout.reduction));
  for (int d = 0; d < layout.rank; ++d) {
    hash = llvm::hash_combine(hash, layout.dims[d].count, layout.dims[d].padded,
                              layout.dims[d].zigzag);
    for (int i = 0; i < layout.dims[d].count; ++i) {
      hash = llvm::hash_combine(hash, static_cast<int>(layout.dims[d].axes[i]));
    }
  }
  return hash;
}

//===----------------------------------------------------------------------===//
// #dist.mesh
//===----------------------------------------------------------------------===//

ParseResult mega::dist::parseAxis(AsmParser &parser, mega::Axis &axis) {
  StringRef keyword;
  const SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword)) {
    return failure();
  }
  std::string text = keyword.str();
  // One of the parts of an axis.
  if (succeeded(parser.parseOptionalColon())) {
    int64_t part = 0;
    if (parser.parseInteger(part)) {
      return failure();
    }
    text += ":" + std::to_string(part);
  }
  const auto found = findAxis(text);
  if (!found) {
    return parser.emitError(loc) << "unknown mesh axis '" << text
                                 << "' (known: tp, tp:0, tp:1, cp, dp, pp, "
                                    "ep)";
  }
  axis = *found;
  return success();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  Mesh mesh;
  int last = -1;
  if (parser.parseLess()) {
    return {};
  }
  const auto parseOne = [&]() -> ParseResult {
    mega::Axis axis;
    int64_t size = 0;
    const SMLoc loc = parser.getCurrentLocation();
    if (parseAxis(parser, axis) || parser.parseEqual() ||
        parser.parseInteger(size)) {
      return failure();
    }
    if (static_cast<int>(axis) <= last) {
      return parser.emitError(loc)
             << "mesh axes must be in the order tp, tp:1, "
                "tp:0, cp, dp, pp, ep and occur once";
    }
    if (size < 2) {
      return parser.emitError(loc) << "size of axis " << mega::name(axis)
                                   << " is " << size << ", expected at least 2";
    }
    last = static_cast<int>(axis);
    mesh.sizes[last] = size;
    return success();
  };
  if (failed(parser.parseOptionalGreater())) {
    if (parser.parseCommaSeparatedList(parseOne) || parser.parseGreater()) {
      return {};
    }
  }
  return MeshAttr::get(parser.getContext(), mesh);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  bool first = true;
  for (int i = 0; i < kAxisCount; ++i) {
    if (getMesh().sizes[i] != 1) {
      printer << (first ? "" : ", ") << mega::name(static_cast<mega::Axis>(i))
              << " = " << getMesh().sizes[i];
      first = false;
    }
  }
  printer << ">";
}

//===----------------------------------------------------------------------===//
// #dist.layout
//===----------------------------------------------------------------------===//

static ParseResult parseDimension(AsmParser &parser, Layout &layout) {
  if (layout.rank == Layout::kMaxRank) {
    return parser.emitError(parser.getCurrentLocation())
           << "a layout has at most " << Layout::kMaxRank << " dimensions";
  }
  Layout::Dimension &dim = layout.dims[layout.rank++];
  if (parser.parseLBrace()) {
    return failure();
  }
  if (succeeded(parser.parseOptionalRBrace())) {
    return success();
  }
  const auto parseOne = [&]() -> ParseResult {
    mega::Axis axis;
    const SMLoc loc = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalKeyword("pad"))) {
      if (dim.padded != 0) {
        return parser.emitError(loc) << "padding is given twice";
      }
      return parser.parseInteger(dim.padded);
    }
    if (parseAxis(parser, axis)) {
      return failure();
    }
    if (dim.count == kAxisCount) {
      return parser.emitError(loc) << "too many axes";
    }
    dim.push(axis);
    if (succeeded(parser.parseOptionalKeyword("zigzag"))) {
      if (axis != mega::Axis::Cp) {
        return parser.emitError(loc) << "only cp may be zigzag";
      }
      dim.zigzag = true;
    }
    return success();
  };
  return failure(parser.parseCommaSeparatedList(parseOne) ||
                 parser.parseRBrace());
}

static ParseResult parseAxisSet(AsmParser &parser, uint8_t &mask,
                                Reduction *reduction) {
  int last = -1;
  const auto parseOne = [&]() -> ParseResult {
    mega::Axis axis;
    const SMLoc loc = parser.getCurrentLocation();
    if (parseAxis(parser, axis)) {
      return failure();
    }
    if (static_cast<int>(axis) <= last) {
      return parser.emitError(loc)
             << "axes of a set must be in mesh order and occur once";
    }
    last = static_cast<int>(axis);
    mask |= static_cast<uint8_t>(1u << last);
    return success();
  };
  if (parser.parseEqual() || parser.parseLBrace() ||
      parser.parseCommaSeparatedList(parseOne)) {
    return failure();
  }
  if (reduction) {
    for (Reduction kind : {Reduction::Max, Reduction::Min, Reduction::Or}) {
      const std::string_view text = mega::name(kind);
      if (succeeded(parser.parseOptionalKeyword(
              StringRef(text.data(), text.size())))) {
        *reduction = kind;
      }
    }
  }
  return parser.parseRBrace();
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  Layout layout;
  if (parser.parseLess()) {
    return {};
  }
  const auto parsePart = [&]() -> ParseResult {
    const SMLoc loc = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalLSquare())) {
      if (layout.rank != 0) {
        return parser.emitError(loc) << "the dimension list is given twice";
      }
      return failure(parser.parseCommaSeparatedList([&] {
        return parseDimension(parser, layout);
      }) || parser.parseRSquare());
    }
    if (succeeded(parser.parseOptionalKeyword("replicated"))) {
      if (layout.replicated != 0) {
        return parser.emitError(loc) << "replicated is given twice";
      }
      return parseAxisSet(parser, layout.replicated, nullptr);
    }
    if (succeeded(parser.parseOptionalKeyword("partial"))) {
      if (layout.partial != 0) {
        return parser.emitError(loc) << "partial is given twice";
      }
      return parseAxisSet(parser, layout.partial, &layout.reduction);
    }
    return parser.emitError(loc)
           << "expected a dimension list, 'replicated' or 'partial'";
  };
  if (failed(parser.parseOptionalGreater())) {
    if (parser.parseCommaSeparatedList(parsePart) || parser.parseGreater()) {
      return {};
    }
  }
  return LayoutAttr::get(parser.getContext(), layout);
}

void LayoutAttr::print(AsmPrinter &printer) const {
  printer << "<" << getLayout().str() << ">";
}

LogicalResult
LayoutAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                           function_ref<InFlightDiagnostic()> emitError) const {
  const Layout &layout = getLayout();
  const Status status = layout.verify(static_cast<int>(shape.size()));
  if (!status.isOk()) {
    return emitError() << status.message();
  }
  for (int d = 0; d < layout.rank; ++d) {
    const int64_t padded = layout.dims[d].padded;
    if (padded != 0 && !ShapedType::isDynamic(shape[d]) && padded < shape[d]) {
      return emitError() << "dimension " << d << " is padded to " << padded
                         << " but has extent " << shape[d];
    }
  }
  return success();
}

Layout mega::dist::layoutIn(Type type) {
  const LayoutAttr attr = layoutOf(type);
  return attr ? attr.getLayout() : Layout();
}

Mesh mega::dist::meshOf(ModuleOp module) {
  const auto attr = module->getAttrOfType<MeshAttr>(kMeshAttrName);
  return attr ? attr.getMesh() : Mesh();
}

RankedTensorType mega::dist::localType(RankedTensorType type,
                                       const Mesh &mesh) {
  const LayoutAttr layout = layoutOf(type);
  if (!layout) {
    return type;
  }
  SmallVector<int64_t> shape(type.getShape());
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    extent =
        layout.getLayout().localExtent(static_cast<int>(dim), extent, mesh);
  }
  return type.clone(shape);
}

LayoutAttr mega::dist::layoutOf(Type type) {
  const auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? dyn_cast_or_null<LayoutAttr>(tensor.getEncoding())
                : LayoutAttr();
}

RankedTensorType mega::dist::withLayout(RankedTensorType type,
                                        LayoutAttr layout) {
  return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
}

std::optional<mega::DataType> mega::dist::toDataType(Type type) {
  if (type.isF32()) {
    return DataType::F32;
  }
  if (type.isBF16()) {
    return DataType::BF16;
  }
  if (type.isF64()) {
    return DataType::F64;
  }
  if (type.isInteger(32)) {
    return DataType::I32;
  }
  if (type.isInteger(64)) {
    return DataType::I64;
  }
  return std::nullopt;
}

BufferType mega::dist::bufferType(RankedTensorType type) {
  const auto element = toDataType(type.getElementType());
  assert(element && "no element type of the plan");
  BufferType buffer;
  buffer.type = *element;
  buffer.rank = static_cast<int>(type.getRank());
  llvm::copy(type.getShape(), buffer.dims.begin());
  buffer.rowStride = buffer.rowSize();
  return buffer;
}
