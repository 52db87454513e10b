#pragma once

#include <string>
#include <vector>

namespace stepcast {

enum class Align { left, right };

struct TableColumn {
  std::string header;     ///< words; wrapped over several lines where the cells are narrower
  std::string unit = "";  ///< own header line under the words; may be empty
  Align align = Align::right;
  int widest = 0;  ///< longer cells are cut in the middle; 0: no limit
};

/// Cells as text, one row a line.
struct Table {
  std::vector<TableColumn> columns;
  std::vector<std::vector<std::string>> rows;
};

/// The table with aligned columns, two spaces apart, a rule under the header, no trailing spaces, every line
/// ended by a newline. Widths count code points, not bytes; control characters are shown as "?".
std::string to_string(const Table& table);

}  // namespace stepcast
