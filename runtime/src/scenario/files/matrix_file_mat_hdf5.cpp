// MATLAB's files of level 7.3: HDF5 with names of its own. A matrix is a dataset of swapped dimensions; a
// sparse one is a group of "data", "ir" and "jc" (the beginnings of its columns).
// Source: what MATLAB R2006b and later write; matio 1.5, src/mat73.c.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/files/matrix_file_mat.hpp"

#ifndef PORTWAVE_HDF5

namespace portwave::scenario_file {

ShapedMatrix parse_mat_hdf5(std::string_view, const std::string&, std::vector<std::string>&) {
  throw MatrixFileDefect{
      " is of level 7.3, which this build cannot read (it has no HDF5): write it by save(..., "
      "\"-v7\")"};
}

}  // namespace portwave::scenario_file

#else

#include <hdf5_hl.h>

#include "output/files/hdf5_handle.hpp"
#include "scenario/files/matrix_file_zip.hpp"
#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {
namespace {

constexpr int kMostInt = std::numeric_limits<int>::max();

std::vector<std::string> variables_in(hid_t file) {
  std::vector<std::string> names;
  const auto note = [](hid_t, const char* name, const H5L_info_t* info, void* to) -> herr_t {
    // "#refs#" and the like are MATLAB's own; links lead to any file.
    if (*name != '#' && info->type == H5L_TYPE_HARD) {
      static_cast<std::vector<std::string>*>(to)->emplace_back(name);
    }
    return 0;
  };
  Handle::expect(H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, nullptr, note, &names), "list");
  return names;
}

/// The one number or short text of an attribute; false where there is none.
bool read_attribute(hid_t object, const char* name, hid_t type, std::size_t bytes, void* to) {
  if (H5Aexists(object, name) <= 0) return false;
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose, "open an attribute");
  const Handle space(H5Aget_space(attribute), H5Sclose, "find a dataspace");
  const Handle stored(H5Aget_type(attribute), H5Tclose, "find a type");
  if (H5Sget_simple_extent_npoints(space) != 1 || H5Tis_variable_str(stored) > 0) return false;
  if ((H5Tget_class(stored) == H5T_STRING) != (H5Tget_class(type) == H5T_STRING)) return false;
  return H5Tget_size(type) <= bytes && H5Aread(attribute, type, to) >= 0;
}

std::string class_of(hid_t object) {
  constexpr std::size_t kLongest = 64;
  char text[kLongest + 1] = {};
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "make a type");
  Handle::expect(H5Tset_size(type, kLongest), "set a size");
  if (!read_attribute(object, "MATLAB_class", type, kLongest, text)) return "";
  return text;
}

class LevelSevenThree {
 public:
  LevelSevenThree(hid_t file, std::size_t file_bytes, std::string variable,
                  std::vector<std::string>& defects)
      : file_(file), bytes_(file_bytes), name_(std::move(variable)), defects_(defects) {}

  ShapedMatrix read() const {
    const Handle object(H5Oopen(file_, name_.c_str(), H5P_DEFAULT), H5Oclose, "open a variable");
    const H5I_type_t kind = H5Iget_type(object);
    if (kind == H5I_GROUP) return read_sparse(object);
    if (kind != H5I_DATASET) fail("is no matrix");
    if (std::string defect = defect_of_class(class_or(class_of(object), "double"));
        !defect.empty()) {
      fail(defect);
    }
    std::int64_t empty = 0;
    read_attribute(object, "MATLAB_empty", H5T_NATIVE_INT64, sizeof(empty), &empty);
    const std::vector<hsize_t> extents = extents_of(object);
    if (empty != 0) return without_entries(object);
    if (extents.size() != 2) {
      fail(fmt::format("has {} dimensions, and a matrix has two", extents.size()));
    }
    const std::vector<double> values = numbers_of(object);
    MatEntries entries(whole(extents[1]), whole(extents[0]), name_, defects_);
    entries.add_dense([&values](std::size_t k) { return values[k]; });
    return entries.take();
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw MatrixFileDefect{fmt::format(", variable {}: {}", in_quotes(name_), what)};
  }
  static std::string class_or(std::string found, const char* otherwise) {
    return found.empty() ? otherwise : found;
  }
  int whole(hsize_t extent) const {
    if (extent > static_cast<hsize_t>(kMostInt)) fail("is too large");
    return static_cast<int>(extent);
  }

  /// What an empty matrix holds in place of numbers: its shape.
  ShapedMatrix without_entries(hid_t dataset) const {
    const std::vector<double> shape = numbers_of(dataset);
    const auto fits = [](double extent) { return extent >= 0.0 && extent <= kMostInt; };
    if (shape.size() != 2 || !fits(shape[0]) || !fits(shape[1])) fail("is no matrix");
    return {static_cast<int>(shape[0]), static_cast<int>(shape[1]), {}, {}};
  }

  /// All numbers of a dataset that is in this very file. What it says of its size is looked at before.
  std::vector<double> numbers_of(hid_t dataset) const {
    const Handle properties(H5Dget_create_plist(dataset), H5Pclose, "find properties");
    if (H5Pget_external_count(properties) > 0 || H5Pget_layout(properties) == H5D_VIRTUAL) {
      fail("its numbers are in another file");
    }
    const Handle type(H5Dget_type(dataset), H5Tclose, "find a type");
    const H5T_class_t kind = H5Tget_class(type);
    if (kind == H5T_COMPOUND) fail("is complex; complex matrices are not supported");
    if (kind != H5T_INTEGER && kind != H5T_FLOAT) fail("is no matrix of numbers");
    std::uint64_t count = 1;
    for (const hsize_t extent : extents_of(dataset)) {
      constexpr std::uint64_t kMost = scenario_limits::kMatrixFileBytes / sizeof(double);
      if (extent > 0 && count > kMost / extent) fail("is too large");
      count *= extent;
    }
    const std::uint64_t size = count * sizeof(double);
    if (size > ZipArchive::kFreeBytes && size / ZipArchive::kMostRatio > bytes_) {
      fail(fmt::format("is more than {} times as large as the file, which no matrix needs",
                       ZipArchive::kMostRatio));
    }
    std::vector<double> values(count);
    if (count == 0) return values;
    Handle::expect(
        H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
        "read numbers");
    return values;
  }

  std::vector<double> numbers_in(hid_t group, const char* name) const {
    H5L_info_t info = {};
    if (H5Lget_info(group, name, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD) {
      fail(fmt::format("has no {}: it is no sparse matrix", in_quotes(name)));
    }
    const Handle dataset(H5Dopen2(group, name, H5P_DEFAULT), H5Dclose, "open a dataset");
    return numbers_of(dataset);
  }

  ShapedMatrix read_sparse(hid_t group) const {
    std::uint64_t rows = 0;
    if (!read_attribute(group, "MATLAB_sparse", H5T_NATIVE_UINT64, sizeof(rows), &rows)) {
      fail(defect_of_class(class_or(class_of(group), "struct")));
    }
    const std::vector<double> begins = numbers_in(group, "jc");
    if (begins.empty() || begins.size() > static_cast<std::size_t>(kMostInt)) {
      fail("its columns have no beginnings: the file is damaged");
    }
    MatEntries entries(whole(rows), static_cast<int>(begins.size()) - 1, name_, defects_);
    const auto at = [](const std::vector<double>& numbers, std::int64_t k) {
      const double value = numbers[static_cast<std::size_t>(k)];
      return value >= 0.0 && value <= kMostInt ? static_cast<std::int64_t>(value) : -1;
    };
    if (begins.back() == 0.0) return entries.take();  // MATLAB leaves the others out
    const std::vector<double> of_rows = numbers_in(group, "ir"), values = numbers_in(group, "data");
    entries.add_columns(
        std::min(of_rows.size(), values.size()), [&](std::int64_t k) { return at(of_rows, k); },
        [&](int column) { return at(begins, column); },
        [&](std::int64_t k) { return values[static_cast<std::size_t>(k)]; });
    return entries.take();
  }

  hid_t file_;
  std::size_t bytes_;
  std::string name_;
  std::vector<std::string>& defects_;
};

}  // namespace

ShapedMatrix parse_mat_hdf5(std::string_view bytes, const std::string& variable,
                            std::vector<std::string>& defects) {
  static std::mutex mutex;  // HDF5 as it is packed knows one thread
  const std::lock_guard lock(mutex);
  const Silence silence;
  H5PLset_loading_state(0);  // a file may name filters that would be loaded: code
  try {
    // The image is read where it is, and not written.
    void* const image =
        const_cast<char*>(bytes.data());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    const Handle file(H5LTopen_file_image(image, bytes.size(),
                                          H5LT_FILE_IMAGE_DONT_COPY | H5LT_FILE_IMAGE_DONT_RELEASE),
                      H5Fclose, "open it");
    const std::string meant = variable_meant(variables_in(file), variable);
    return LevelSevenThree(file, bytes.size(), meant, defects).read();
  } catch (const std::runtime_error& error) {
    throw MatrixFileDefect{fmt::format(": the file is cut short or damaged: {}", error.what())};
  }
}

}  // namespace portwave::scenario_file

#endif
