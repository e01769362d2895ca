#include "output/table_reader.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "output/durable_file.hpp"
#include "output/hdf5_file.hpp"

namespace portwave {
namespace {

class LineReader {
 public:
  explicit LineReader(std::filesystem::path path)
      : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rb"), std::fclose) {
    if (file_ == nullptr) fail_at("read", path_, errno);
  }

  /// Without its end; false where there is none. Valid until the next call.
  bool next(std::string_view& line) {
    for (;;) {
      const auto rest = std::string_view(buffer_).substr(at_);
      if (const auto end = rest.find('\n'); end != std::string_view::npos) {
        line = rest.substr(0, end);
        at_ += end + 1;
        ++number_;
        return true;
      }
      buffer_.erase(0, at_);
      at_ = 0;
      const std::size_t old = buffer_.size();
      buffer_.resize(old + kPiece);
      const std::size_t count = std::fread(buffer_.data() + old, 1, kPiece, file_.get());
      buffer_.resize(old + count);
      if (count > 0) continue;
      if (std::ferror(file_.get()) != 0) fail_at("read", path_, errno);
      if (!buffer_.empty()) fail(number_ + 1, "ends within a line");
      return false;
    }
  }

  std::size_t number() const { return number_; }  ///< of the last one

  [[noreturn]] void fail(std::size_t line, std::string_view what) const {
    throw std::runtime_error(
        fmt::format("cannot read \"{}\": line {} {}", path_.string(), line, what));
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18;

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t number_ = 0;  // of lines read
};

template <typename Take>
void for_each_cell(std::string_view line, Take take) {
  for (;;) {
    const auto comma = line.find(',');
    take(line.substr(0, comma));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

std::vector<std::string> header_of(LineReader& lines) {
  std::string_view line;
  if (!lines.next(line)) lines.fail(1, "is missing: there are no names of columns");
  std::vector<std::string> columns;
  for_each_cell(line, [&](std::string_view cell) { columns.emplace_back(cell); });
  return columns;
}

class CsvTableReader final : public TableReader {
 public:
  explicit CsvTableReader(const std::filesystem::path& path) : CsvTableReader(LineReader(path)) {}

  bool next(std::vector<double>& row) override {
    std::string_view line;
    if (!lines_.next(line)) return false;
    row.clear();
    for_each_cell(line, [&](std::string_view cell) {
      double number = std::numeric_limits<double>::quiet_NaN();
      std::from_chars(cell.data(), cell.data() + cell.size(), number);
      row.push_back(number);
    });
    if (row.size() != columns().size()) {
      lines_.fail(lines_.number(), fmt::format("has {} cells, and there are {} columns", row.size(),
                                               columns().size()));
    }
    return true;
  }

 private:
  explicit CsvTableReader(LineReader&& lines)
      : TableReader(header_of(lines)), lines_(std::move(lines)) {}

  LineReader lines_;
};

}  // namespace

std::unique_ptr<TableReader> open_table(const std::filesystem::path& folder,
                                        const std::string& name) {
  const std::filesystem::path text = folder / (name + ".csv"), hdf5 = folder / "results.h5";
  std::error_code ignored;
  if (std::filesystem::exists(text, ignored)) return std::make_unique<CsvTableReader>(text);
  if (std::filesystem::exists(hdf5, ignored)) return open_hdf5_table(hdf5, name);
  return nullptr;
}

}  // namespace portwave
