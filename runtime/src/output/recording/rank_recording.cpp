#include "output/recording/rank_recording.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <zlib.h>

#include <fmt/format.h>

#include "output/files/durable_file.hpp"
#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

constexpr std::string_view kHead = "results.rank-", kTail = ".h5";

/// Far more than there are.
constexpr std::int32_t kMostRanks = 1 << 20;
bool is_rank(std::int32_t rank) { return rank >= 0 && rank < kMostRanks; }

std::string file_of_rank(int rank) { return fmt::format("{}{}{}", kHead, rank, kTail); }

void archive_text(StateArchive& archive, std::string& text) {
  std::vector<char> letters(text.begin(), text.end());
  archive.vector(letters);
  text.assign(letters.begin(), letters.end());
}

/// The text of each rank, known to all.
std::vector<std::string> gather_texts(Ranks* ranks, const std::string& own) {
  if (ranks == nullptr) return {own};
  const std::vector<std::size_t> sizes = gather_values(*ranks, own.size());
  std::string all(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), '\0');
  ranks->gather(std::as_bytes(std::span(own)), sizes, std::as_writable_bytes(std::span(all)));
  std::vector<std::string> out;
  for (std::size_t from = 0; const std::size_t size : sizes) {
    out.push_back(all.substr(from, size));
    from += size;
  }
  return out;
}

/// Thrown by all ranks together.
class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Something that all ranks do. Gives the text that `act` gives on each. Errors: Failure, on all ranks,
/// where it went wrong on any.
template <class Act>
std::vector<std::string> do_together(Ranks* ranks, const Act& act) {
  std::string said, problem;
  try {
    said = act();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  const std::vector<std::string> problems = gather_texts(ranks, problem);
  for (std::size_t r = 0; r < problems.size(); ++r) {
    if (problems[r].empty()) continue;
    throw Failure(ranks == nullptr || r == 0 ? problems[r]
                                             : fmt::format("rank {}: {}", r, problems[r]));
  }
  return gather_texts(ranks, said);
}

}  // namespace

RankRecording::RankRecording(RecordingOptions options) : options_(std::move(options)) {
  options_.every = std::max(options_.every, 1);
}

RankRecording::~RankRecording() = default;

bool RankRecording::is_name_of_file(const std::string& name) {
  const std::string_view text = name;
  if (!text.starts_with(kHead) || !text.ends_with(kTail)) return false;
  const std::string_view digits =
      text.substr(kHead.size(), text.size() - kHead.size() - kTail.size());
  return !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string> RankRecording::files() const {
  std::vector<std::string> out = table_.files;
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Hash of the data that ranks must have in common.
std::uint32_t RankRecording::checksum() const {
  std::string text = fmt::format("{} {} {} {}", options_.every, options_.every_s, options_.envelope,
                                 static_cast<int>(options_.format));
  for (const Quantity& own : options_.quantities) text += "\n" + own.label;
  return static_cast<std::uint32_t>(
      ::crc32_z(0, reinterpret_cast<const unsigned char*>(text.data()), text.size()));
}

std::vector<int> RankRecording::quantities_of(const Stretch& stretch, int rank) const {
  std::vector<int> out;
  for (std::size_t i = 0; i < stretch.ranks.size(); ++i) {
    if (stretch.ranks[i] == rank) out.push_back(static_cast<int>(i));
  }
  return out;
}

std::size_t RankRecording::width(const std::vector<int>& quantities) const {
  return 1 + columns_per_quantity(options_) * quantities.size();
}

std::filesystem::path RankRecording::rows_file(std::size_t stretch, int rank) const {
  return unfinished_ / fmt::format("trajectory.{}.rank-{}.rows", stretch, rank);
}

void RankRecording::archive_rows(StateArchive& archive) {
  std::uint64_t count = stretches_.size();
  archive.count(count, sizeof(std::int64_t) + sizeof(std::uint64_t));
  archive.expect(count > 0, "the number of times that the run was gone on with");
  if (archive.reads()) stretches_.assign(static_cast<std::size_t>(count), {});
  const std::size_t quantities = options_.quantities.size();
  for (Stretch& own : stretches_) {
    archive.value(own.rows);
    archive.vector(own.ranks);
    archive.expect_counts({own.rows}, "the number of rows of a rank");
    archive.expect(own.ranks.size() == quantities && std::ranges::all_of(own.ranks, is_rank),
                   "the rank that recorded a quantity");
  }
  archive.value(grid_rows_);
  archive.expect_counts({grid_rows_}, "the number of rows");
  for (std::vector<double>* extremes : {&smallest_, &largest_}) {
    archive.vector(*extremes);
    archive.expect(extremes->size() == (smallest_.empty() ? 0 : quantities),
                   "the number of extremes");
  }
}

// Rank 0.

void RankRecording::begin(const Stepper& stepper, const std::filesystem::path& results,
                          const std::filesystem::path& unfinished, bool is_initial) {
  results_ = std::filesystem::absolute(results);
  unfinished_ = unfinished.empty() ? unfinished : std::filesystem::absolute(unfinished);
  Stretch own;
  for (const Quantity& one : options_.quantities) own.ranks.push_back(rank_of(stepper, one));
  stretches_.push_back(std::move(own));
  tell(stepper, Call::begin, is_initial ? "initial" : "");
}

void RankRecording::take(const Stepper& stepper, const StepReport& report) {
  if (writer_) quantities_->take(stepper, report.step_s, *writer_);
}

void RankRecording::archive(const Stepper& stepper, StateArchive& archive) {
  if (!archive.reads()) tell(stepper, Call::checkpoint);
  archive_rows(archive);
}

void RankRecording::make_files(const Stepper& stepper, const std::string& title) {
  tell(stepper, Call::make_files, title);
}

void RankRecording::publish(const Stepper& stepper) { tell(stepper, Call::publish); }

void RankRecording::tell(const Stepper& stepper, Call call, const std::string& title) {
  std::vector<std::byte> bytes;
  StateArchive writer = StateArchive::writer(bytes);
  writer.value(call);
  std::string text = title;
  archive_text(writer, text);
  if (call == Call::begin) {
    std::uint32_t sum = checksum();
    writer.value(sum);
    std::string results = results_.string(), unfinished = unfinished_.string();
    archive_text(writer, results);
    archive_text(writer, unfinished);
    archive_rows(writer);
  }
  writer.finish();
  if (RankedStepper(stepper).ranks() != nullptr) RankedStepper(stepper).tell_followers(bytes);
  StateArchive reader = StateArchive::reader(bytes);
  act(stepper, reader);
}

// Other ranks.

void RankRecording::stepped(const Stepper& stepper, const StepReport& report) {
  take(stepper, report);
}

void RankRecording::told(const Stepper& stepper, std::span<const std::byte> message) {
  StateArchive reader = StateArchive::reader(message);
  try {
    act(stepper, reader);
  } catch (const Failure&) {  // rank 0 tells of it
    writer_.reset();
  }
}

// All of them.

void RankRecording::act(const Stepper& stepper, StateArchive& message) {
  Ranks* const ranks = RankedStepper(stepper).ranks();
  Call call{};
  std::string text;
  message.value(call);
  archive_text(message, text);
  switch (call) {
    case Call::begin: {
      const auto files = do_together(ranks, [&] {
        read_begin(message);
        rank_ = ranks == nullptr ? 0 : ranks->rank();
        ranks_ = ranks == nullptr ? 1 : ranks->size();
        own_ = quantities_of(stretches_.back(), rank_);
        RecordingOptions own = options_;
        own.quantities.clear();
        for (const int i : own_) own.quantities.push_back(options_.quantities[at(i)]);
        quantities_.emplace(own, 0);
        rows_.reset();
        writer_.reset();
        if (own_.empty()) return std::string();
        const std::filesystem::path file =
            unfinished_.empty() ? results_ / fmt::format("trajectory.rank-{}.rows", rank_)
                                : rows_file(stretches_.size() - 1, rank_);
        rows_ = unfinished_.empty() ? std::make_unique<PendingFile>(file)
                                    : std::make_unique<PendingFile>(file, file, false);
        return rows_->path_meanwhile().string();
      });
      if (rank_ == 0) {
        for (std::size_t r = 0; r < files.size(); ++r) {
          if (files[r].empty() || is_there(files[r])) continue;
          throw std::runtime_error(fmt::format(
              "rank {} has a folder \"{}\" of its own: with \"per_rank\" ranks write to "
              "one that all of them have",
              r, results_.string()));
        }
      }
      open(stepper, text == "initial");
      break;
    }
    case Call::checkpoint:
      gather_extremes(stepper);
      break;
    case Call::make_files:
      gather_extremes(stepper);
      do_together(ranks, [&] {
        make_own_file(text);
        return std::string();
      });
      break;
    case Call::publish:
      do_together(ranks, [&] {
        if (hdf5_) hdf5_->publish();
        hdf5_.reset();
        merged_.reset();
        return std::string();
      });
      break;
  }
}

void RankRecording::read_begin(StateArchive& message) {
  std::uint32_t sum = 0;
  message.value(sum);
  if (sum != checksum()) {
    throw std::runtime_error("what is recorded is not the same as on rank 0");
  }
  std::string results, unfinished;
  archive_text(message, results);
  archive_text(message, unfinished);
  results_ = results;
  unfinished_ = unfinished;
  archive_rows(message);
  message.finish();
  // Earlier records still exist.
  for (std::size_t i = 0; i + 1 < stretches_.size(); ++i) {
    const int last =
        stretches_[i].ranks.empty() ? -1 : *std::ranges::max_element(stretches_[i].ranks);
    for (int r = 0; r <= last; ++r) {
      const std::vector<int> theirs = quantities_of(stretches_[i], r);
      if (theirs.empty()) continue;
      const std::filesystem::path file = rows_file(i, r);
      std::error_code error;
      const std::uintmax_t size = std::filesystem::file_size(file, error);
      const std::uintmax_t least =
          static_cast<std::uintmax_t>(stretches_[i].rows) * width(theirs) * sizeof(double);
      if (!error && size >= least) continue;
      throw std::runtime_error(
          error ? fmt::format("cannot read \"{}\": {}", file.string(), error.message())
                : fmt::format("\"{}\" has {} bytes, and had {} when the checkpoint was made",
                              file.string(), size, least));
    }
  }
}

void RankRecording::open(const Stepper& stepper, bool is_initial) {
  table_ = {{"trajectory", trajectory_columns(options_)}, {}, {}, {}};
  if (ranks_ > 1) {
    for (const std::int32_t rank : stretches_.back().ranks) {
      table_.files.insert(table_.files.end(), columns_per_quantity(options_), file_of_rank(rank));
    }
  }
  written_ = 0;
  quantities_->begin(stepper);
  quantities_->rows() = grid_rows_;
  if (!smallest_.empty()) {
    for (std::size_t i = 0; i < own_.size(); ++i) {
      quantities_->smallest()[i] = smallest_[at(own_[i])];
      quantities_->largest()[i] = largest_[at(own_[i])];
    }
  }
  if (own_.empty()) return;
  const std::size_t row = 1 + width(own_);
  writer_ = std::make_unique<RowWriter>(row, [this, row](std::span<const double> numbers) {
    for (; !numbers.empty(); numbers = numbers.subspan(row)) {
      const std::span<const double> values = numbers.first(row).subspan(1);
      rows_->append(
          std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
      ++written_;
    }
  });
  if (is_initial) quantities_->take_initial(stepper, *writer_);
}

/// All rows so far are on the disk, and all ranks have as many; rank 0 knows what rows to come need.
void RankRecording::gather_extremes(const Stepper& stepper) {
  Ranks* const ranks = RankedStepper(stepper).ranks();
  do_together(ranks, [&] {
    if (!writer_) return std::string();
    writer_->drain();
    std::vector<std::byte> ignored;
    StateArchive length = StateArchive::writer(ignored);
    rows_->archive(length);
    return std::string();
  });
  const std::int64_t own_rows = writer_ ? written_ : -1;
  const std::vector<std::int64_t> rows =
      ranks == nullptr ? std::vector{own_rows} : gather_values(*ranks, own_rows);
  std::int64_t most = 0;
  for (const std::int64_t count : rows) most = std::max(most, count);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r] < 0 || rows[r] == most) continue;
    throw Failure(fmt::format(
        "rank {} has recorded {} rows, and another one {}: every step is to be recorded", r,
        rows[r], most));
  }
  stretches_.back().rows = most;
  grid_rows_ = quantities_->rows();
  if (!options_.envelope) return;
  std::vector<double> own = quantities_->smallest();
  own.insert(own.end(), quantities_->largest().begin(), quantities_->largest().end());
  std::vector<std::size_t> bytes;
  std::vector<std::vector<int>> theirs;
  for (int r = 0; r < ranks_; ++r) {
    theirs.push_back(quantities_of(stretches_.back(), r));
    bytes.push_back(2 * theirs.back().size() * sizeof(double));
  }
  std::vector<double> all(2 * options_.quantities.size());
  if (ranks == nullptr) {
    all = own;
  } else {
    ranks->gather(std::as_bytes(std::span(own)), bytes, std::as_writable_bytes(std::span(all)));
  }
  smallest_.resize(options_.quantities.size());
  largest_.resize(options_.quantities.size());
  const double* from = all.data();
  for (const std::vector<int>& some : theirs) {
    for (const int i : some) smallest_[at(i)] = *from++;
    for (const int i : some) largest_[at(i)] = *from++;
  }
}

/// Adds the rows of a stretch to those of this rank's quantities, from the files of whoever had them then.
void RankRecording::copy_rows(const Stretch& stretch, std::size_t number, std::vector<double>& to,
                              const std::function<void(std::span<const double>)>& write) {
  struct Source {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file;
    std::filesystem::path path;
    std::vector<double> row;
    std::vector<std::pair<std::size_t, std::size_t>> places;  // there and here
  };
  std::vector<Source> sources;
  const std::size_t each = columns_per_quantity(options_);
  const int last = stretch.ranks.empty() ? -1 : *std::ranges::max_element(stretch.ranks);
  for (int r = 0; r <= last; ++r) {
    const std::vector<int> theirs = quantities_of(stretch, r);
    Source source{{nullptr, std::fclose}, rows_file(number, r), {}, {}};
    for (std::size_t i = 0, k = 0; i < own_.size(); ++i) {
      while (k < theirs.size() && theirs[k] < own_[i]) ++k;
      if (k == theirs.size() || theirs[k] != own_[i]) continue;
      for (std::size_t j = 0; j < each; ++j) {
        source.places.emplace_back(1 + each * k + j, 1 + each * i + j);
      }
    }
    if (source.places.empty()) continue;
    source.row.resize(width(theirs));
    source.file.reset(open_own(source.path));
    sources.push_back(std::move(source));
  }
  for (std::int64_t n = 0; n < stretch.rows; ++n) {
    for (Source& source : sources) {
      if (std::fread(source.row.data(), sizeof(double), source.row.size(), source.file.get()) !=
          source.row.size()) {
        fail_at("read", source.path, errno == 0 ? EIO : errno);
      }
      to[0] = source.row[0];
      for (const auto& [there, here] : source.places) to[here] = source.row[there];
    }
    write(to);
  }
}

/// The places of all rows of this rank's quantities.
std::filesystem::path RankRecording::rows_of_own_quantities() {
  if (stretches_.size() == 1) return rows_->path_meanwhile();
  const std::string name = fmt::format("trajectory.rank-{}.rows", rank_);
  merged_ = std::make_unique<PendingFile>(results_ / name, unfinished_ / name, false);
  std::vector<double> row(width(own_));
  for (std::size_t i = 0; i < stretches_.size(); ++i) {
    copy_rows(stretches_[i], i, row, [this](std::span<const double> numbers) {
      merged_->append(
          std::string_view(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()));
    });
  }
  merged_->close();
  return merged_->path_meanwhile();
}

void RankRecording::make_own_file(const std::string& title) {
  writer_.reset();
  if (own_.empty()) return;
  rows_->close();
  const std::filesystem::path rows = rows_of_own_quantities();
  if (ranks_ == 1) {
    table_.rows = rows;
    return;
  }
  RecordingOptions own = options_;
  own.quantities.clear();
  for (const int i : own_) own.quantities.push_back(options_.quantities[at(i)]);
  const std::string name = file_of_rank(rank_);
  hdf5_ = unfinished_.empty()
              ? std::make_unique<PendingFile>(results_ / name)
              : std::make_unique<PendingFile>(results_ / name, unfinished_ / name, false);
  write_hdf5(hdf5_->path_meanwhile(),
             {{{"trajectory", trajectory_columns(own)}, rows, {}, is_matrix(table_.layout)}},
             title);
  hdf5_->close();
}

}  // namespace portwave
