#include <fmt/format.h>

#include "commands/commands.hpp"
#include "commands/schema/file_kinds.hpp"
#include "report/schema/json_schema.hpp"

namespace stepcast {

void add_schema(Command app) {
  const Command command =
      app.add_subcommand("schema", "Print the keys of a kind of file as JSON Schema, for editors.");
  auto name = std::make_shared<std::string>();
  auto path = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const FileKind& kind : file_kinds()) names.push_back(kind.name);
  command.add_option("kind", *name, "Kind of file.").required().one_of(names);
  const Option table =
      command
          .add_option(
              "--table", *path,
              "Print a table of the keys below this key instead, in Markdown: . for the top level, noise, or "
              "network@torus for the keys of one kind.")
          .type_name("KEY");
  command.callback([=] {
    for (const FileKind& kind : file_kinds()) {
      if (kind.name != *name) continue;
      fmt::print("{}", table.given() ? key_table(table_at(kind, *path == "." ? "" : *path))
                                     : json_schema("stepcast " + kind.name, kind.keys, kind.required));
    }
  });
  command.footer("Example: stepcast schema scenario > scenario.json");
}

}  // namespace stepcast
