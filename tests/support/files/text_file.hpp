#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace portwave::testing {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush()) throw std::runtime_error("cannot write " + path.string());
}

/// Names in a folder, hidden ones too, in order.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A CSV file of numbers under one line of names.
struct CsvTable {
  std::vector<std::string> names;
  std::vector<std::vector<double>> rows;

  const std::vector<double>& last() const { return rows.back(); }
  std::size_t column(const std::string& name) const {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) throw std::runtime_error("no column " + name);
    return static_cast<std::size_t>(found - names.begin());
  }
};

/// Throws when a row is cut short or holds anything but numbers.
inline CsvTable read_csv(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  if (text.empty() || text.back() != '\n') throw std::runtime_error("the last line is cut short");
  const auto split = [](const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
    return fields;
  };
  CsvTable table;
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  table.names = split(line);
  while (std::getline(in, line)) {
    std::vector<double> row;
    for (const std::string& field : split(line)) {
      std::size_t used = 0;
      row.push_back(std::stod(field, &used));
      if (used != field.size()) throw std::runtime_error("not a number: " + field);
    }
    if (row.size() != table.names.size()) throw std::runtime_error("wrong number of columns");
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace portwave::testing
