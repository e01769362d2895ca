#pragma once

#include <algorithm>
#include <cstddef>
#include <hdf5.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace portwave {

/// Collects the reasons of HDF5, the deepest first.
inline herr_t note_reason(unsigned, const H5E_error2_t* error, void* texts) {
  if (error->desc != nullptr && *error->desc != '\0') {
    static_cast<std::vector<std::string>*>(texts)->emplace_back(error->desc);
  }
  return 0;
}

/// Something of HDF5, closed when it is no more needed.
class Handle {
 public:
  Handle(hid_t id, herr_t (*closes)(hid_t), const char* what) : id_(id), close_(closes) {
    if (id >= 0) return;
    std::vector<std::string> reasons;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_reason, &reasons);
    throw std::runtime_error(fmt::format("cannot {}: {}", what, fmt::join(reasons, "; ")));
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;
  operator hid_t() const { return id_; }
  /// Closes the handle and checks for failure.
  void close() { expect(close_(std::exchange(id_, -1)), "close"); }

  static void expect(herr_t result, const char* what) {
    if (result < 0) Handle(-1, H5Fclose, what);
  }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

inline std::vector<hsize_t> extents_of(hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose, "find a dataspace");
  const int dimensions = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extents(static_cast<std::size_t>(std::max(dimensions, 0)));
  if (dimensions > 0) H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  return extents;
}

/// Keeps HDF5 from printing its errors.
class Silence {
 public:
  Silence() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Silence() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace portwave
