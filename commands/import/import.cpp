
#include "commands/commands.hpp"
#include "commands/import/network.hpp"

namespace stepcast {
namespace {

struct Options {
  std::string file, output;
  std::int64_t sequence = 0;
};

}  // namespace

void add_import(Command app) {
  const Command command =
      app.add_subcommand("import", "Write a network file from the config.json of a Hugging Face network.");
  auto options = std::make_shared<Options>();
  command
      .add_option("file", options->file,
                  "Configuration of a network of type gpt2, llama, mistral, mixtral, bert or vit.")
      .required()
      .type_name("config.json");
  command
      .add_option("--sequence", options->sequence,
                  "Tokens of a sample. Default: as many as the configuration allows.")
      .range(1, 10'000'000);
  command.add_option("-o,--output", options->output, "Network file; the network has its name.")
      .required()
      .type_name("NETWORK.yaml");
  command.callback([options] { import_network(options->file, options->sequence, options->output); });
}

}  // namespace stepcast
