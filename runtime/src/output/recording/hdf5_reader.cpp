// Reads the files of hdf5_file.cpp.

#include "output/recording/hdf5_file.hpp"

#ifdef PORTWAVE_HDF5

#include <algorithm>
#include <compare>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include "output/files/hdf5_handle.hpp"
#include "output/files/input_file.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

constexpr std::size_t kNumbersOfPiece = std::size_t{1} << 20;

struct TextsOfHdf5 {
  std::vector<char*> texts;
  hid_t type, space;
  ~TextsOfHdf5() { H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts.data()); }
};

bool holds(hid_t dataset, H5T_class_t kind) {
  const Handle type(H5Dget_type(dataset), H5Tclose, "find a type");
  return H5Tget_class(type) == kind;
}

/// Reads texts of variable length from a dataset or an attribute.
template <typename Read>
std::vector<std::string> texts_of(std::size_t count, hid_t space, Read read) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "make a type");
  Handle::expect(H5Tset_size(type, H5T_VARIABLE), "set a size");
  Handle::expect(H5Tset_cset(type, H5T_CSET_UTF8), "set a character set");
  TextsOfHdf5 raw{std::vector<char*>(count, nullptr), type, space};
  Handle::expect(read(type, raw.texts.data()), "read texts");
  std::vector<std::string> out;
  for (const char* text : raw.texts) out.emplace_back(text == nullptr ? "" : text);
  return out;
}

/// The name of a column, which a dataset does not always bear itself.
std::string column_of(hid_t dataset, const std::string& name) {
  if (H5Aexists(dataset, "long_name") <= 0) return name;
  const Handle attribute(H5Aopen(dataset, "long_name", H5P_DEFAULT), H5Aclose, "open");
  const Handle space(H5Aget_space(attribute), H5Sclose, "find a dataspace");
  return texts_of(1, space, [&](hid_t type, void* to) { return H5Aread(attribute, type, to); })
      .front();
}

std::vector<std::string> names_in(hid_t group) {
  std::vector<std::string> names;
  const auto note = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
    static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    return 0;
  };
  Handle::expect(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, note, &names), "list");
  return names;
}

/// What is not in this very file is not read by its name: links lead to any file. `path`: of groups and a
/// dataset.
void refuse_links(hid_t place, const std::string& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string name = path.substr(0, end);
    H5L_info_t info = {};
    if (name.empty() || H5Lget_info(place, name.c_str(), &info, H5P_DEFAULT) < 0) continue;
    if (info.type == H5L_TYPE_HARD) continue;
    throw std::runtime_error(fmt::format("{} is a link, and is not followed", in_quotes(name)));
  }
}

/// One whose numbers are in this file, or in others of the folder (`sources_of`).
Handle open_dataset(hid_t group, const std::string& name) {
  refuse_links(group, name);
  Handle dataset(H5Dopen2(group, name.c_str(), H5P_DEFAULT), H5Dclose, "open a dataset");
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose, "find properties");
  if (H5Pget_external_count(properties) > 0) {
    throw std::runtime_error(
        fmt::format("the numbers of {} are in a file of another kind", in_quotes(name)));
  }
  return dataset;
}

/// Rows from `first` on, `width` numbers each.
void read_piece(hid_t dataset, hsize_t first, hsize_t count, hsize_t width, double* to) {
  const hsize_t from[] = {first, 0}, extents[] = {count, width};
  const int dimensions = width == 0 ? 1 : 2;
  const Handle memory(H5Screate_simple(dimensions, extents, nullptr), H5Sclose, "make a dataspace");
  const Handle space(H5Dget_space(dataset), H5Sclose, "find a dataspace");
  Handle::expect(H5Sselect_hyperslab(space, H5S_SELECT_SET, from, nullptr, extents, nullptr),
                 "select");
  Handle::expect(H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, to),
                 "read numbers");
}

/// A table as datasets: one of two dimensions, or one for each column.
struct TableInHdf5 {
  std::vector<std::string> columns;  // time_s first
  Handle time;
  std::vector<Handle> datasets;
  hsize_t rows = 0;
  bool is_matrix = false;
};

void expect_rows(hid_t dataset, hsize_t rows, const std::string& name) {
  const std::vector<hsize_t> extents = extents_of(dataset);
  if (!extents.empty() && extents[0] == rows) return;
  throw std::runtime_error(fmt::format("\"{}\" is not as long as the times", name));
}

TableInHdf5 open_table_in(hid_t group) {
  TableInHdf5 table{{"time_s"}, open_dataset(group, "time_s"), {}};
  const std::vector<hsize_t> extents = extents_of(table.time);
  if (extents.size() != 1) throw std::runtime_error("\"time_s\" is no row of numbers");
  table.rows = extents[0];
  if (H5Lexists(group, "quantity", H5P_DEFAULT) > 0 &&
      H5Lexists(group, "values", H5P_DEFAULT) > 0) {
    const Handle quantity = open_dataset(group, "quantity");
    const Handle space(H5Dget_space(quantity), H5Sclose, "find a dataspace");
    const std::vector<hsize_t> size = extents_of(quantity);
    Handle values = open_dataset(group, "values");
    const std::vector<hsize_t> shape = extents_of(values);
    if (holds(quantity, H5T_STRING) && size.size() == 1 && shape.size() == 2 &&
        shape[1] == size[0]) {
      expect_rows(values, table.rows, "values");
      const auto names = texts_of(size[0], space, [&](hid_t type, void* to) {
        return H5Dread(quantity, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to);
      });
      table.columns.insert(table.columns.end(), names.begin(), names.end());
      table.datasets.push_back(std::move(values));
      table.is_matrix = true;
      return table;
    }
  }
  for (const std::string& name : names_in(group)) {
    if (name == "time_s") continue;
    Handle dataset = open_dataset(group, name);
    if (holds(dataset, H5T_STRING)) continue;
    expect_rows(dataset, table.rows, name);
    table.columns.push_back(column_of(dataset, name));
    table.datasets.push_back(std::move(dataset));
  }
  return table;
}

/// A dataset of another file that one is made of.
struct Source {
  std::string file, dataset;
  auto operator<=>(const Source&) const = default;
};

std::string text_of(hid_t properties, std::size_t number,
                    ssize_t (*get)(hid_t, std::size_t, char*, std::size_t)) {
  const ssize_t size = get(properties, number, nullptr, 0);
  std::string text(static_cast<std::size_t>(std::max<ssize_t>(size, 0)), '\0');
  get(properties, number, text.data(), text.size() + 1);
  return text;
}

/// The pieces of a virtual dataset; nothing for a plain one.
std::vector<Source> sources_of(hid_t dataset) {
  const Handle properties(H5Dget_create_plist(dataset), H5Pclose, "find properties");
  if (H5Pget_layout(properties) != H5D_VIRTUAL) return {};
  std::size_t count = 0;
  Handle::expect(H5Pget_virtual_count(properties, &count), "count files");
  std::vector<Source> sources;
  for (std::size_t i = 0; i < count; ++i) {
    sources.push_back({text_of(properties, i, H5Pget_virtual_filename),
                       text_of(properties, i, H5Pget_virtual_dsetname)});
  }
  return sources;
}

std::vector<double> times_in(hid_t group) {
  const Handle time = open_dataset(group, "time_s");
  const std::vector<hsize_t> extents = extents_of(time);
  std::vector<double> times(extents.size() == 1 ? extents[0] : 0);
  if (!times.empty()) read_piece(time, 0, times.size(), 0, times.data());
  return times;
}

/// HDF5 silently gives NaN for missing data, and follows names to any file.
void expect_files(const std::filesystem::path& path, const std::string& name,
                  const TableInHdf5& table, hid_t group) {
  if (!sources_of(table.time).empty()) throw std::runtime_error("\"time_s\" is not in this file");
  std::set<Source> sources;
  for (const Handle& dataset : table.datasets) {
    for (Source& source : sources_of(dataset)) sources.insert(std::move(source));
  }
  if (sources.empty()) return;
  const std::filesystem::path folder = path.parent_path();
  const std::vector<double> times = times_in(group);
  for (const auto& [file, dataset] : sources) {
    const std::filesystem::path there = folder / file;
    const auto fail = [&, &file = file](const char* why) {
      throw std::runtime_error(fmt::format("cannot read \"{}\": columns of \"{}\" are in {}, {}",
                                           path.string(), name, in_quotes((folder / file).string()),
                                           why));
    };
    if (std::filesystem::path(file).filename() != file) {
      fail("which is no file of the same folder");
    }
    std::error_code ignored;
    if (!std::filesystem::exists(there, ignored)) {
      fail("which is not there: files of a run on several ranks belong together");
    }
    refuse_to_leave(folder, there);
    const std::string what = fmt::format("read \"{}\"", there.string());
    const Handle source(H5Fopen(there.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose,
                        what.c_str());
    refuse_links(source, name);
    if (H5Lexists(source, name.c_str(), H5P_DEFAULT) <= 0) fail("which does not have them");
    const Handle own(H5Gopen2(source, name.c_str(), H5P_DEFAULT), H5Gclose, "open a group");
    if (times_in(own) != times) fail("which is of another run: its times are others");
    if (!sources_of(open_dataset(source, dataset)).empty()) fail("which does not have them itself");
  }
}

class Hdf5TableReader final : public TableReader {
 public:
  Hdf5TableReader(Handle file, TableInHdf5 table)
      : TableReader(table.columns), file_(std::move(file)), table_(std::move(table)) {}

  bool next(std::vector<double>& row) override {
    const std::size_t width = columns().size();
    if (at_ == numbers_.size()) {
      if (first_ == table_.rows) return false;
      const Silence silence;
      read_rows(width);
    }
    const auto from = numbers_.begin() + static_cast<std::ptrdiff_t>(at_);
    row.assign(from, from + static_cast<std::ptrdiff_t>(width));
    at_ += width;
    return true;
  }

 private:
  void read_rows(std::size_t width) {
    const hsize_t most = std::max<hsize_t>(kNumbersOfPiece / width, 1);
    const hsize_t count = std::min(most, table_.rows - first_);
    numbers_.resize(count * width);
    const auto put = [&](std::size_t place, std::size_t many) {
      for (hsize_t k = 0; k < count; ++k) {
        std::copy_n(column_.begin() + static_cast<std::ptrdiff_t>(k * many), many,
                    numbers_.begin() + static_cast<std::ptrdiff_t>(k * width + place));
      }
    };
    column_.resize(count);
    read_piece(table_.time, first_, count, 0, column_.data());
    put(0, 1);
    if (table_.is_matrix) {
      column_.resize(count * (width - 1));
      read_piece(table_.datasets[0], first_, count, width - 1, column_.data());
      put(1, width - 1);
    } else {
      for (std::size_t i = 1; i < width; ++i) {
        read_piece(table_.datasets[i - 1], first_, count, 0, column_.data());
        put(i, 1);
      }
    }
    first_ += count;
    at_ = 0;
  }

  Handle file_;
  TableInHdf5 table_;
  hsize_t first_ = 0;  // row not yet read
  std::vector<double> column_, numbers_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<TableReader> open_hdf5_table(const std::filesystem::path& path,
                                             const std::string& table) {
  const Silence silence;
  H5PLset_loading_state(0);  // a file may name filters that would be loaded: code
  const std::string what = fmt::format("read \"{}\"", path.string());
  Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, what.c_str());
  if (H5Lexists(file, table.c_str(), H5P_DEFAULT) <= 0) return nullptr;
  refuse_links(file, table);
  const Handle group(H5Gopen2(file, table.c_str(), H5P_DEFAULT), H5Gclose, "open a group");
  TableInHdf5 opened = open_table_in(group);
  expect_files(path, table, opened, group);
  return std::make_unique<Hdf5TableReader>(std::move(file), std::move(opened));
}

}  // namespace portwave

#endif
