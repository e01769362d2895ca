#include "soak/recorded.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace portwave::soak {

const std::vector<double>& RecordedTable::column(const std::string& name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw std::out_of_range("no column " + name);
  return columns[static_cast<std::size_t>(found - names.begin())];
}

RecordedTable read_table(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  RecordedTable table;
  std::string line, cell;
  std::getline(in, line);
  std::istringstream head(line);
  while (std::getline(head, cell, ',')) table.names.push_back(cell);
  table.columns.resize(table.names.size());
  while (std::getline(in, line)) {
    const char* at = line.c_str();
    for (std::vector<double>& column : table.columns) {
      char* end = nullptr;
      column.push_back(std::strtod(at, &end));  // an empty cell is 0
      at = *end == ',' ? end + 1 : end;
    }
  }
  return table;
}

}  // namespace portwave::soak
