#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "output/files/pending_file.hpp"
#include "output/files/row_writer.hpp"
#include "output/recording/hdf5_file.hpp"
#include "output/recording/quantity_rows.hpp"
#include "portwave/runtime/ranks/followers.hpp"

namespace portwave {

/// The reason why a run cannot be recorded by its ranks, for people.
inline constexpr const char* kOfHdf5Alone = "is of the format \"hdf5\" alone";
inline constexpr const char* kNotOfTheLastSeconds =
    "is not for the last seconds alone: what they are is kept in memory on one rank";

/// The trajectory of a run, recorded by its ranks: each takes the quantities of its parts, writes them as
/// doubles to a file of its own and, at the end, makes an HDF5 file of them. Rank 0 calls; what takes the
/// others it tells them, and all do the same. In one process it is that process's.
///
/// Ranks and their parts are not the same when a run goes on. Each time that it does rows go to new
/// files, a *stretch* of the run; at the end every rank gathers what its quantities were in all of them.
/// Errors: std::runtime_error, on rank 0 with the failure of any rank.
class RankRecording final : public Follower {
 public:
  explicit RankRecording(RecordingOptions options);
  ~RankRecording() override;
  RankRecording(const RankRecording&) = delete;
  RankRecording& operator=(const RankRecording&) = delete;

  /// On rank 0. `unfinished`: where files stay until the end of a run with checkpoints; empty: files
  /// are hidden, and go with the process. `is_initial`: takes the row of the start.
  void begin(const Stepper& stepper, const std::filesystem::path& results,
             const std::filesystem::path& unfinished, bool is_initial);
  void take(const Stepper& stepper, const StepReport& report);
  /// Reading comes before `begin`.
  void archive(const Stepper& stepper, StateArchive& archive);
  /// Makes the files. In one process there are none, but all columns are in `table().rows`.
  void make_files(const Stepper& stepper, const std::string& title);
  /// Gives them their names; with checkpoints somebody else does.
  void publish(const Stepper& stepper);

  /// The whole table: its columns, and the files that have them.
  const SpilledTable& table() const { return table_; }
  /// Names of the HDF5 files.
  std::vector<std::string> files() const;
  double waited_s() const { return writer_ ? writer_->waited_s() : 0.0; }

  /// Files of this form of any run: results.rank-0.h5 and the like.
  static bool is_name_of_file(const std::string& name);

  // On other ranks.
  void stepped(const Stepper& stepper, const StepReport& report) override;
  void told(const Stepper& stepper, std::span<const std::byte> message) override;

 private:
  /// Between two starts of the program.
  struct Stretch {
    std::int64_t rows = 0;
    std::vector<std::int32_t> ranks;  ///< by quantity
  };
  enum class Call : int { begin, checkpoint, make_files, publish };

  void tell(const Stepper& stepper, Call call, const std::string& title = {});
  void act(const Stepper& stepper, StateArchive& message);
  void open(const Stepper& stepper, bool is_initial);
  void read_begin(StateArchive& message);
  void gather_extremes(const Stepper& stepper);
  void make_own_file(const std::string& title);
  std::filesystem::path rows_of_own_quantities();
  void copy_rows(const Stretch& stretch, std::size_t number, std::vector<double>& to,
                 const std::function<void(std::span<const double>)>& write);
  void archive_rows(StateArchive& archive);
  std::filesystem::path rows_file(std::size_t stretch, int rank) const;
  std::size_t width(const std::vector<int>& quantities) const;
  std::vector<int> quantities_of(const Stretch& stretch, int rank) const;
  std::uint32_t checksum() const;

  RecordingOptions options_;
  int rank_ = 0, ranks_ = 1;
  std::filesystem::path results_, unfinished_;
  std::vector<Stretch> stretches_;          // the last is the one that is being recorded
  std::vector<double> smallest_, largest_;  // of an envelope, of all quantities, at a checkpoint
  std::int64_t grid_rows_ = 1;              // QuantityRows::rows
  std::vector<int> own_;                    // quantities of this rank
  SpilledTable table_;
  std::optional<QuantityRows> quantities_;
  std::unique_ptr<PendingFile> rows_, merged_, hdf5_;
  std::int64_t written_ = 0;           // rows, by the thread of the writer
  std::unique_ptr<RowWriter> writer_;  // the last: its thread writes to `rows_`
};

}  // namespace portwave
