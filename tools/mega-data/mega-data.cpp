// mega-data: prepares and inspects training data. A thin main: the work is in
// runtime/data.
#include "runtime/data/ByteTokenizer.h"
#include "runtime/data/DescribeDataset.h"
#include "runtime/data/SampleOrder.h"
#include "runtime/data/TokenizeFiles.h"
#include "tools/CommandLine.h"

using namespace mega;

namespace {

constexpr const char *kFooter =
    "Examples:\n"
    "  mega-data tokenize book.txt --tokenizer byte -o data/book\n"
    "  zcat pages.gz | mega-data tokenize - -o data/pages "
    "--document-separator '<|end|>'\n"
    "  mega-data inspect data/book\n"
    "  mega-data samples data/book --seq-length 64 --global-batch-size 8\n"
    "\n"
    "Exit codes: 0 ok, 2 wrong usage, 65 bad data, 74 input/output error\n";

Status tokenize(const TokenizeOptions &options) {
  MEGA_ASSIGN_OR_RETURN(const TokenizeCounts counts, tokenizeFiles(options));
  std::string text = fmt::format(
      "wrote {0}.bin and {0}.idx: documents {1}, tokens {2}, type {3}, "
      "vocabulary {4}\n",
      options.prefix, counts.documents, counts.tokens, name(counts.type),
      ByteTokenizer::kVocabulary);
  if (counts.emptyDocuments > 0) {
    text += fmt::format("left out {} documents without text\n",
                        counts.emptyDocuments);
  }
  return print(text);
}

Status inspect(const std::string &prefix, int64_t firstTokens) {
  MEGA_ASSIGN_OR_RETURN(const IndexedDataset dataset,
                        IndexedDataset::open(prefix));
  return print(describeDataset(dataset, firstTokens));
}

struct SamplesOptions {
  std::string prefix;
  int64_t sequenceLength = 0;
  int64_t globalBatch = 0;
  int64_t steps = 1;
  uint64_t seed = 1234;
};

/// The samples of every step, in the order in which its rows read them, as
/// JSON: what `megart train` with the same seed and sizes sees.
Status samples(const SamplesOptions &options) {
  MEGA_ASSIGN_OR_RETURN(const IndexedDataset dataset,
                        IndexedDataset::open(options.prefix));
  SampleOrder order;
  order.samples = sampleCount(dataset.tokens(), options.sequenceLength);
  order.seed = options.seed;
  if (order.samples < options.globalBatch) {
    return badInput("{} holds {} samples of {} tokens, less than one global "
                    "batch of {}",
                    options.prefix, order.samples, options.sequenceLength,
                    options.globalBatch);
  }
  std::string text = "{\"samples\": [";
  for (int64_t step = 0; step < options.steps; ++step) {
    text += step == 0 ? "\n  [" : ",\n  [";
    for (int64_t row = 0; row < options.globalBatch; ++row) {
      text += fmt::format("{}{}", row == 0 ? "" : ", ",
                          order.sample(step * options.globalBatch + row));
    }
    text += "]";
  }
  return print(text + "\n]}\n");
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Prepares and inspects training data: Megatron .bin/.idx pairs.",
               "mega-data");
  app.set_version_flag("--version", "mega-data " MEGA_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);

  TokenizeOptions options;
  std::string tokenizer = "byte";
  CLI::App *tokenizeCommand = app.add_subcommand(
      "tokenize", "Turn text into PREFIX.bin and PREFIX.idx");
  tokenizeCommand
      ->add_option("TEXT", options.inputs,
                   "Text files, or - for standard input")
      ->required();
  tokenizeCommand
      ->add_option("--tokenizer", tokenizer,
                   "byte: 256 bytes and the end-of-document id 256")
      ->check(CLI::IsMember({"byte"}))
      ->capture_default_str();
  tokenizeCommand->add_option("-o,--output", options.prefix, "Output prefix")
      ->type_name("PREFIX")
      ->required();
  tokenizeCommand->add_option(
      "--document-separator", options.documentSeparator,
      "Text between documents (default: a file is a document)");

  std::string prefix;
  int64_t firstTokens = 16;
  CLI::App *inspectCommand =
      app.add_subcommand("inspect", "Check a dataset and print what is in it");
  inspectCommand->add_option("PREFIX", prefix, "Path without .bin or .idx")
      ->required();
  inspectCommand
      ->add_option("--first", firstTokens, "Tokens to print from the start")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();

  SamplesOptions order;
  CLI::App *samplesCommand = app.add_subcommand(
      "samples", "Print which samples the steps of a run read");
  samplesCommand
      ->add_option("PREFIX", order.prefix, "Path without .bin or .idx")
      ->required();
  samplesCommand
      ->add_option("--seq-length", order.sequenceLength, "Tokens of a sample")
      ->check(CLI::PositiveNumber)
      ->required();
  samplesCommand
      ->add_option("--global-batch-size", order.globalBatch, "Rows of a step")
      ->check(CLI::PositiveNumber)
      ->required();
  samplesCommand->add_option("--steps", order.steps, "Steps to print")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  samplesCommand->add_option("--seed", order.seed, "As in megart train")
      ->capture_default_str();

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    // --help, --version.
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    return finish(app, usageStatus(app, error, argc, argv));
  }
  if (samplesCommand->parsed()) {
    return finish(app, samples(order));
  }
  return finish(app, tokenizeCommand->parsed() ? tokenize(options)
                                               : inspect(prefix, firstTokens));
}
