// mega-data: prepares and inspects training data. A thin main: the work is in
// runtime/data and runtime/tokenizer.
#include "runtime/data/DatasetMeta.h"
#include "runtime/data/DescribeDataset.h"
#include "runtime/data/SampleStream.h"
#include "runtime/data/TokenizeFiles.h"
#include "runtime/tokenizer/LoadTokenizer.h"
#include "tools/support/CommandLine.h"

#include <fmt/ranges.h>

using namespace mega;

namespace {

constexpr const char *kFooter =
    "Examples:\n"
    "  mega-data tokenize pages.jsonl --tokenizer tokenizer.json -o "
    "data/pages\n"
    "  zcat pages.gz | mega-data tokenize - -o data/pages "
    "--document-separator '<|end|>'\n"
    "  mega-data inspect data/pages --tokenizer tokenizer.json\n"
    "  mega-data samples data/book --seq-length 64 --global-batch-size 8\n"
    "\n"
    "Exit codes: 0 ok, 2 wrong usage, 65 bad data, 74 input/output error\n";

struct TokenizeCommand {
  TokenizeOptions options;
  std::string tokenizer = "byte";
  std::string endOfDocument;
  std::string jsonKey = "text";
};

Status tokenize(TokenizeCommand &command) {
  TokenizeOptions &options = command.options;
  MEGA_ASSIGN_OR_RETURN(const auto tokenizer, loadTokenizer(command.tokenizer));
  MEGA_ASSIGN_OR_RETURN(options.endOfDocument,
                        chooseEndOfDocument(*tokenizer, command.endOfDocument));
  MEGA_ASSIGN_OR_RETURN(const TokenizeCounts counts,
                        tokenizeFiles(options, *tokenizer));
  std::string text = fmt::format(
      "wrote {0}.bin and {0}.idx: documents {1}, tokens {2}, type {3}, "
      "vocabulary {4}\n",
      options.prefix, counts.documents, counts.tokens, name(counts.type),
      tokenizer->vocabulary());
  if (tokenizer->kind() != "byte") {
    text +=
        fmt::format("tokenizer {} ({}), documents end with id {} ({})\n",
                    command.tokenizer, tokenizer->kind(), options.endOfDocument,
                    tokenizer->token(options.endOfDocument));
  }
  if (counts.emptyDocuments > 0) {
    text += fmt::format("left out {} documents without text\n",
                        counts.emptyDocuments);
  }
  return print(text);
}

struct InspectOptions {
  std::string prefix;
  int64_t firstTokens = 16;
  std::string tokenizer;
};

Status inspect(const InspectOptions &options) {
  std::unique_ptr<Tokenizer> tokenizer;
  if (!options.tokenizer.empty()) {
    MEGA_ASSIGN_OR_RETURN(tokenizer, loadTokenizer(options.tokenizer));
  }
  MEGA_ASSIGN_OR_RETURN(const IndexedDataset dataset,
                        IndexedDataset::open(options.prefix));
  return print(describeDataset(dataset, options.firstTokens, tokenizer.get()));
}

Status index(const std::vector<std::string> &prefixes) {
  for (const std::string &prefix : prefixes) {
    MEGA_ASSIGN_OR_RETURN(const IndexedDataset dataset,
                          IndexedDataset::open(prefix));
    const DatasetMeta meta = DatasetMeta::scan(dataset);
    MEGA_RETURN_IF_ERROR(meta.write(dataset));
    MEGA_RETURN_IF_ERROR(print(fmt::format(
        "wrote {}.meta: documents {}, tokens {}, ids {} to {}\n", prefix,
        dataset.documents(), dataset.tokens(), meta.lowest, meta.highest)));
  }
  return Status::ok();
}

struct SamplesOptions {
  std::vector<std::string> data;
  std::string split;
  int64_t sequenceLength = 0;
  int64_t globalBatch = 0;
  int64_t steps = 1;
  uint64_t seed = 1234;
};

/// The samples of every step, in the order in which its rows read them, as
/// JSON: what `megart train` with the same seed and sizes sees. Of several
/// datasets each is a pair, the dataset and its sample.
Status samples(const SamplesOptions &options) {
  MEGA_ASSIGN_OR_RETURN(DataSource source,
                        DataSource::parse("PREFIX", options.data));
  if (!options.split.empty()) {
    MEGA_ASSIGN_OR_RETURN(source.split, Split::parse(options.split));
  }
  SampleStreamOptions streamOptions;
  streamOptions.sequenceLength = options.sequenceLength;
  streamOptions.seed = options.seed;
  streamOptions.least = options.globalBatch;
  MEGA_ASSIGN_OR_RETURN(const SampleStream stream,
                        SampleStream::open(source, streamOptions));
  std::string text = "{\"samples\": [";
  for (int64_t step = 0; step < options.steps; ++step) {
    text += step == 0 ? "\n  [" : ",\n  [";
    for (int64_t row = 0; row < options.globalBatch; ++row) {
      const auto sample = *stream.at(step * options.globalBatch + row);
      text += row == 0 ? "" : ", ";
      text += stream.datasets() == 1
                  ? fmt::to_string(sample.sample)
                  : fmt::format("[{}, {}]", sample.dataset, sample.sample);
    }
    text += "]";
  }
  return print(text + "\n]}\n");
}

CLI::App *addTokenize(CLI::App &app, TokenizeCommand &tokenize) {
  TokenizeOptions &options = tokenize.options;
  CLI::App *command = app.add_subcommand(
      "tokenize", "Turn text into PREFIX.bin and PREFIX.idx");
  command
      ->add_option("TEXT", options.inputs,
                   "Text files, JSON lines (*.jsonl), or - for standard input")
      ->required();
  command
      ->add_option("--tokenizer", tokenize.tokenizer,
                   "byte, or a file: tokenizer.json (BPE), tokenizer.model")
      ->type_name("byte|FILE")
      ->capture_default_str();
  command->add_option("-o,--output", options.prefix, "Output prefix")
      ->type_name("PREFIX")
      ->required();
  command
      ->add_option("--eod", tokenize.endOfDocument,
                   "Ends a document (default: the tokenizer's own)")
      ->type_name("TOKEN|ID");
  command
      ->add_option("--document-separator", options.documentSeparator,
                   "Text between documents (default: a file is a document)")
      ->type_name("TEXT");
  command
      ->add_option("--json-key", tokenize.jsonKey,
                   "Read JSON lines; the key of the text")
      ->type_name("KEY")
      ->capture_default_str();
  command->add_option("--workers", options.workers, "Threads")
      ->type_name("N")
      ->check(wholeNumber(1, 1024))
      ->capture_default_str();
  return command;
}

CLI::App *addInspect(CLI::App &app, InspectOptions &options) {
  CLI::App *command =
      app.add_subcommand("inspect", "Check a dataset and print what is in it");
  command->add_option("PREFIX", options.prefix, "Path without .bin or .idx")
      ->required();
  command
      ->add_option("--first", options.firstTokens,
                   "Tokens to print from the start")
      ->check(wholeNumber())
      ->capture_default_str();
  command
      ->add_option("--tokenizer", options.tokenizer,
                   "Print them as text of this tokenizer")
      ->type_name("byte|FILE");
  return command;
}

CLI::App *addSamples(CLI::App &app, SamplesOptions &options) {
  CLI::App *command = app.add_subcommand(
      "samples", "Print which samples the steps of a run read");
  command
      ->add_option("PREFIX", options.data,
                   "Dataset, or W1 PREFIX1 W2 PREFIX2 ...")
      ->required();
  command
      ->add_option("--seq-length", options.sequenceLength, "Tokens of a sample")
      ->check(wholeNumber(1))
      ->required();
  command
      ->add_option("--global-batch-size", options.globalBatch, "Rows of a step")
      ->check(wholeNumber(1))
      ->required();
  command->add_option("--split", options.split, "As in megart train");
  command->add_option("--steps", options.steps, "Steps to print")
      ->check(wholeNumber(1))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "As in megart train")
      ->check(wholeNumber())
      ->capture_default_str();
  return command;
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Prepares and inspects training data: Megatron .bin/.idx pairs.",
               "mega-data");
  app.set_version_flag("--version", "mega-data " MEGA_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);

  TokenizeCommand tokenizeOptions;
  CLI::App *tokenizeCommand = addTokenize(app, tokenizeOptions);
  std::vector<std::string> prefixes;
  CLI::App *indexCommand = app.add_subcommand(
      "index", "Read a dataset once and write PREFIX.meta, so that runs need "
               "not");
  indexCommand->add_option("PREFIX", prefixes, "Paths without .bin or .idx")
      ->required();
  InspectOptions inspectOptions;
  CLI::App *inspectCommand = addInspect(app, inspectOptions);
  SamplesOptions samplesOptions;
  addSamples(app, samplesOptions);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success &request) {
    // --help, --version.
    return app.exit(request);
  } catch (const CLI::ParseError &error) {
    return finish(app, usage(app, error, argc, argv));
  }
  if (tokenizeCommand->parsed()) {
    if (!tokenizeCommand->get_option("--json-key")->empty()) {
      tokenizeOptions.options.jsonKey = tokenizeOptions.jsonKey;
    }
    return finish(app, tokenize(tokenizeOptions));
  }
  if (indexCommand->parsed()) {
    return finish(app, index(prefixes));
  }
  return finish(app, inspectCommand->parsed() ? inspect(inspectOptions)
                                              : samples(samplesOptions));
}
