#include "output/recording/hdf5_file.hpp"

#include <stdexcept>

#include "portwave/runtime/output/file_recorder.hpp"

namespace portwave {

bool is_matrix(const ResultLayout& layout) {
  return layout.columns.size() > kMostColumns + 1 && layout.time == 0;
}

}  // namespace portwave

#ifndef PORTWAVE_HDF5

namespace portwave {

bool has_hdf5() { return false; }

void write_hdf5(const std::filesystem::path&, const std::vector<SpilledTable>&,
                const std::string&) {
  throw std::invalid_argument("portwave was built without HDF5: results can be written as CSV");
}

std::unique_ptr<TableReader> open_hdf5_table(const std::filesystem::path&, const std::string&) {
  throw std::invalid_argument("portwave was built without HDF5: it reads results as CSV only");
}

}  // namespace portwave

#else

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <hdf5.h>
#include <hdf5_hl.h>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>

#include <fmt/format.h>

#include "output/files/durable_file.hpp"
#include "output/files/hdf5_handle.hpp"
#include "portwave/subsystems/base/version.hpp"

namespace portwave {

bool has_hdf5() { return true; }

namespace {

/// Numbers of a table in memory at once.
constexpr std::size_t kNumbersAtOnce = std::size_t{1} << 22;

Handle text_type() {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "make a type");
  Handle::expect(H5Tset_size(type, H5T_VARIABLE), "set a size");
  Handle::expect(H5Tset_cset(type, H5T_CSET_UTF8), "set a character set");
  return type;
}

void put_attribute(hid_t object, const char* name, const std::string& text) {
  const Handle type = text_type();
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, "make a dataspace");
  const Handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                         "make an attribute");
  const char* const value = text.c_str();
  Handle::expect(H5Awrite(attribute, type, &value), "write an attribute");
}

/// Times of making would differ from run to run.
Handle timeless(hid_t kind) {
  Handle properties(H5Pcreate(kind), H5Pclose, "make properties");
  Handle::expect(H5Pset_obj_track_times(properties, 0), "set properties");
  return properties;
}

Handle make_space(std::span<const hsize_t> extents) {
  return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose,
          "make a dataspace"};
}

Handle make_dataset(hid_t group, const std::string& name, hid_t type,
                    std::span<const hsize_t> extents, hid_t with = -1) {
  const Handle space = make_space(extents);
  const Handle plain = timeless(H5P_DATASET_CREATE);
  const hid_t properties = with < 0 ? static_cast<hid_t>(plain) : with;
  return {H5Dcreate2(group, name.c_str(), type, space, H5P_DEFAULT, properties, H5P_DEFAULT),
          H5Dclose, "make a dataset"};
}

void put_texts(hid_t dataset, const std::vector<const char*>& texts, hsize_t first = 0) {
  if (texts.empty()) return;
  const Handle type = text_type();
  const hsize_t count = texts.size();
  const Handle memory(H5Screate_simple(1, &count, nullptr), H5Sclose, "make a dataspace");
  const Handle space(H5Dget_space(dataset), H5Sclose, "find a dataspace");
  Handle::expect(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, nullptr, &count, nullptr),
                 "select");
  Handle::expect(H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, texts.data()), "write texts");
}

/// Names of datasets: a "/" would be a group of its own.
class DatasetNames {
 public:
  std::string of(const std::string& column) {
    std::string name = column;
    std::ranges::replace(name, '/', ':');
    if (name.empty() || name == "." || name == "..") name = "_" + name;
    const std::string stem = name;
    for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", stem, i);
    return name;
  }

 private:
  std::set<std::string> taken_;
};

/// Reads a table that was spilled, some rows at a time.
class SpilledRows {
 public:
  explicit SpilledRows(const SpilledTable& table)
      : path_(table.rows),
        width_(table.files.empty() ? table.layout.columns.size() : 1),
        rows_(std::filesystem::file_size(path_) / (width_ * sizeof(double))),
        at_once_(
            std::clamp<std::size_t>(kNumbersAtOnce / width_, 1, std::max<std::size_t>(rows_, 1))),
        numbers_(at_once_ * width_) {}

  std::size_t count() const { return rows_; }
  std::size_t width() const { return width_; }

  /// Calls `take(first row, rows)` for all rows in order.
  template <typename Take>
  void for_each_piece(Take take) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path_.c_str(), "rb"),
                                                               std::fclose);
    if (file == nullptr) fail_at("read", path_, errno);
    for (std::size_t first = 0; first < rows_; first += at_once_) {
      const std::size_t count = std::min(at_once_, rows_ - first) * width_;
      if (std::fread(numbers_.data(), sizeof(double), count, file.get()) != count) {
        fail_at("read", path_, errno == 0 ? EIO : errno);
      }
      take(first, std::span<const double>(numbers_).first(count));
    }
  }

 private:
  std::filesystem::path path_;
  std::size_t width_, rows_, at_once_;
  std::vector<double> numbers_;
};

void write_piece(hid_t dataset, std::span<const hsize_t> first, std::span<const hsize_t> extents,
                 const double* numbers) {
  const auto dimensions = static_cast<int>(extents.size());
  const Handle memory(H5Screate_simple(dimensions, extents.data(), nullptr), H5Sclose,
                      "make a dataspace");
  const Handle space(H5Dget_space(dataset), H5Sclose, "find a dataspace");
  Handle::expect(
      H5Sselect_hyperslab(space, H5S_SELECT_SET, first.data(), nullptr, extents.data(), nullptr),
      "select");
  Handle::expect(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, numbers),
                 "write numbers");
}

hid_t type_of(const TableColumn& column, hid_t text) {
  if (column.kind == TableColumn::Kind::text) return text;
  return column.kind == TableColumn::Kind::integer ? H5T_STD_I64LE : H5T_IEEE_F64LE;
}

/// For a dataset that is made of others.
Handle virtual_properties() {
  Handle properties = timeless(H5P_DATASET_CREATE);
  const double missing = std::numeric_limits<double>::quiet_NaN();
  Handle::expect(H5Pset_fill_value(properties, H5T_NATIVE_DOUBLE, &missing), "set properties");
  return properties;
}

/// Names of datasets in the files of others, by column.
std::vector<std::string> names_there(const SpilledTable& table) {
  std::map<std::string, DatasetNames> files;
  std::vector<std::string> out = {"time_s"};
  for (std::size_t i = 1; i < table.layout.columns.size(); ++i) {
    const auto [names, is_new] = files.try_emplace(table.files[i - 1]);
    if (is_new) names->second.of("time_s");
    out.push_back(names->second.of(table.layout.columns[i].name));
  }
  return out;
}

Handle make_virtual_column(hid_t group, const std::string& name, const SpilledTable& table,
                           std::size_t column, const std::string& name_there, hsize_t rows) {
  const Handle properties = virtual_properties();
  const Handle space = make_space({&rows, 1});
  const std::string source = fmt::format("/{}/{}", table.layout.name, name_there);
  Handle::expect(
      H5Pset_virtual(properties, space, table.files[column - 1].c_str(), source.c_str(), space),
      "refer to a dataset");
  return make_dataset(group, name, H5T_IEEE_F64LE, {&rows, 1}, properties);
}

/// Columns of one dataset are those of others, in the same order.
Handle make_virtual_matrix(hid_t group, const SpilledTable& table,
                           std::span<const hsize_t> extents) {
  std::map<std::string, std::vector<hsize_t>> columns;
  for (hsize_t i = 0; i < table.files.size(); ++i) columns[table.files[i]].push_back(i);
  const Handle properties = virtual_properties();
  const std::string source = fmt::format("/{}/values", table.layout.name);
  for (const auto& [file, own] : columns) {
    const Handle space = make_space(extents);
    Handle::expect(H5Sselect_none(space), "select");
    for (std::size_t i = 0, end = 0; i < own.size(); i = end) {
      for (end = i + 1; end < own.size() && own[end] == own[end - 1] + 1;) ++end;
      const hsize_t first[] = {0, own[i]}, count[] = {extents[0], end - i};
      Handle::expect(H5Sselect_hyperslab(space, H5S_SELECT_OR, first, nullptr, count, nullptr),
                     "select");
    }
    const hsize_t there[] = {extents[0], own.size()};
    const Handle all = make_space(there);
    Handle::expect(H5Pset_virtual(properties, space, file.c_str(), source.c_str(), all),
                   "refer to a dataset");
  }
  return make_dataset(group, "values", H5T_IEEE_F64LE, extents, properties);
}

/// A dataset for each column.
void write_columns(hid_t group, const SpilledTable& table, SpilledRows& rows) {
  const std::vector<TableColumn>& columns = table.layout.columns;
  const Handle text = text_type();
  const hsize_t extent = rows.count();
  const bool is_virtual = !table.files.empty();
  const std::vector<std::string> sources =
      is_virtual ? names_there(table) : std::vector<std::string>();
  DatasetNames names;
  names.of("time_s");
  std::vector<Handle> datasets;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string name = i == table.layout.time ? "time_s" : names.of(columns[i].name);
    datasets.push_back(is_virtual && i > 0
                           ? make_virtual_column(group, name, table, i, sources[i], extent)
                           : make_dataset(group, name, type_of(columns[i], text), {&extent, 1}));
    if (!columns[i].unit.empty()) put_attribute(datasets.back(), "units", columns[i].unit);
    if (name != columns[i].name) put_attribute(datasets.back(), "long_name", columns[i].name);
  }
  const hid_t time = datasets[table.layout.time];
  Handle::expect(H5DSset_scale(time, "time_s"), "make a scale");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i != table.layout.time)
      Handle::expect(H5DSattach_scale(datasets[i], time, 0), "join a scale");
  }
  std::vector<double> column;
  std::vector<const char*> texts;
  rows.for_each_piece([&](std::size_t first, std::span<const double> numbers) {
    const hsize_t from = first, count = numbers.size() / rows.width();
    for (std::size_t i = 0; i < rows.width(); ++i) {
      column.clear();
      for (std::size_t k = i; k < numbers.size(); k += rows.width()) column.push_back(numbers[k]);
      if (columns[i].kind != TableColumn::Kind::text) {
        write_piece(datasets[i], {&from, 1}, {&count, 1}, column.data());
        continue;
      }
      texts.clear();
      for (const double number : column) {
        texts.push_back(columns[i].texts[static_cast<std::size_t>(number)].c_str());
      }
      put_texts(datasets[i], texts, from);
    }
  });
  for (Handle& dataset : datasets) dataset.close();
}

/// All columns but the time in one dataset.
void write_matrix(hid_t group, const SpilledTable& table, SpilledRows& rows) {
  const std::vector<TableColumn>& columns = table.layout.columns;
  const hsize_t extents[] = {rows.count(), columns.size() - 1};
  const bool is_virtual = !table.files.empty();
  const Handle text = text_type();
  Handle time = make_dataset(group, "time_s", H5T_IEEE_F64LE, {&extents[0], 1});
  Handle quantity = make_dataset(group, "quantity", text, {&extents[1], 1});
  Handle units = make_dataset(group, "units", text, {&extents[1], 1});
  Handle values = is_virtual ? make_virtual_matrix(group, table, extents)
                             : make_dataset(group, "values", H5T_IEEE_F64LE, extents);
  put_attribute(time, "units", "s");
  std::vector<const char*> labels, unit_texts;
  for (std::size_t i = 1; i < columns.size(); ++i) {
    labels.push_back(columns[i].name.c_str());
    unit_texts.push_back(columns[i].unit.c_str());
  }
  put_texts(quantity, labels);
  put_texts(units, unit_texts);
  Handle::expect(H5DSset_scale(time, "time_s"), "make a scale");
  Handle::expect(H5DSset_scale(quantity, "quantity"), "make a scale");
  Handle::expect(H5DSattach_scale(units, quantity, 0), "join a scale");
  Handle::expect(H5DSattach_scale(values, time, 0), "join a scale");
  Handle::expect(H5DSattach_scale(values, quantity, 1), "join a scale");
  std::vector<double> times, rest;
  rows.for_each_piece([&](std::size_t first, std::span<const double> numbers) {
    times.clear();
    rest.clear();
    for (std::size_t k = 0; k < numbers.size(); k += rows.width()) {
      times.push_back(numbers[k]);
      rest.insert(rest.end(), numbers.begin() + static_cast<std::ptrdiff_t>(k + 1),
                  numbers.begin() + static_cast<std::ptrdiff_t>(k + rows.width()));
    }
    const hsize_t from[] = {first, 0}, count[] = {times.size(), extents[1]};
    write_piece(time, {from, 1}, {count, 1}, times.data());
    if (!is_virtual) write_piece(values, from, count, rest.data());
  });
  for (Handle* dataset : {&time, &quantity, &units, &values}) dataset->close();
}

}  // namespace

void write_hdf5(const std::filesystem::path& path, const std::vector<SpilledTable>& tables,
                const std::string& name) {
  static std::mutex one_at_a_time;  // ranks may be threads, and scales are not for several
  const std::lock_guard lock(one_at_a_time);
  const Silence silence;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "make properties");
  // Attributes with many references (a scale of a thousand columns) do not fit the oldest form.
  // Nor do virtual datasets fit the form after that.
  const bool is_virtual =
      std::ranges::any_of(tables, [](const SpilledTable& own) { return !own.files.empty(); });
  const H5F_libver_t newest = is_virtual ? H5F_LIBVER_V110 : H5F_LIBVER_V18;
  Handle::expect(H5Pset_libver_bounds(access, H5F_LIBVER_V18, newest), "set properties");
  const Handle creation = timeless(H5P_FILE_CREATE);
  const std::string what = fmt::format("write \"{}\"", path.string());
  Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), H5Fclose, what.c_str());
  put_attribute(file, "title", name);
  put_attribute(file, "source", fmt::format("portwave {}", kVersion));
  for (const SpilledTable& table : tables) {
    const Handle properties = timeless(H5P_GROUP_CREATE);
    Handle group(H5Gcreate2(file, table.layout.name.c_str(), H5P_DEFAULT, properties, H5P_DEFAULT),
                 H5Gclose, "make a group");
    SpilledRows rows(table);
    if (table.is_matrix.value_or(is_matrix(table.layout))) {
      write_matrix(group, table, rows);
    } else {
      write_columns(group, table, rows);
    }
    group.close();
  }
  file.close();
}

}  // namespace portwave

#endif
