#include "output/recording/table_reader.hpp"

#include <cerrno>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "output/files/durable_file.hpp"
#include "output/files/input_file.hpp"
#include "output/recording/hdf5_file.hpp"

namespace portwave {
namespace {

void expect_readable(const std::filesystem::path& path, const InputFile& file) {
  if (file.problem().empty()) return;
  throw std::runtime_error(fmt::format("\"{}\" {}", path.string(), file.problem()));
}

class LineReader {
 public:
  explicit LineReader(std::filesystem::path path) : path_(std::move(path)), file_(path_) {
    expect_readable(path_, file_);
  }

  /// Without its end; false where there is none. Valid until the next call.
  bool next(std::string_view& line) {
    for (std::size_t sought = at_;;) {
      if (const auto end = buffer_.find('\n', sought); end != std::string::npos) {
        line = std::string_view(buffer_).substr(at_, end - at_);
        at_ = end + 1;
        ++number_;
        return true;
      }
      buffer_.erase(0, at_);
      at_ = 0;
      const std::size_t old = sought = buffer_.size();
      if (old > kLongestLine) fail(number_ + 1, "is too long for a row of results");
      buffer_.resize(old + kPiece);
      const ssize_t count = file_.read(buffer_.data() + old, kPiece);
      if (count < 0) fail_at("read", path_, errno);
      buffer_.resize(old + static_cast<std::size_t>(count));
      if (count > 0) continue;
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
  static constexpr std::size_t kLongestLine = std::size_t{1} << 28;

  std::filesystem::path path_;
  InputFile file_;
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
  if (std::filesystem::exists(text, ignored)) {
    refuse_to_leave(folder, text);
    return std::make_unique<CsvTableReader>(text);
  }
  if (std::filesystem::exists(hdf5, ignored)) {
    refuse_to_leave(folder, hdf5);
    expect_readable(hdf5, InputFile(hdf5));
    return open_hdf5_table(hdf5, name);
  }
  return nullptr;
}

}  // namespace portwave
