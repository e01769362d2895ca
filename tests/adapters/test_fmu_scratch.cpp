// Folders for what FMUs unpack: those of processes that were killed are removed, others are not.

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "adapters/files/scratch_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_fmu_scratch {
namespace {

/// Another folder for temporary files, while it lives.
class Temporary {
 public:
  Temporary() : before_(std::filesystem::temp_directory_path().string()) {
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
  }
  ~Temporary() { ::setenv("TMPDIR", before_.c_str(), 1); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return folder_.path() / name; }
  const std::filesystem::path& path() const { return folder_.path(); }
  std::size_t folders() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& own : std::filesystem::directory_iterator(path())) ++count;
    return count;
  }

 private:
  std::string before_;
  testing::TemporaryFolder folder_;
};

/// A process that holds a scratch folder until it is killed.
class Holder {
 public:
  Holder() {
    int ends[2] = {};
    if (::pipe(ends) != 0) std::abort();
    process_ = ::fork();
    if (process_ == 0) {
      const files::ScratchFolder scratch;
      testing::write_text(scratch.path() / "table.txt", "1 2 3");
      static_cast<void>(::write(ends[1], "x", 1));
      while (true) ::pause();
    }
    char byte = 0;
    if (::read(ends[0], &byte, 1) != 1) std::abort();
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
};

TEST(FmuScratch, OfAProcessThatIsGoneIsRemoved) {
  const Temporary temporary;
  Holder holder, other;
  EXPECT_EQ(temporary.folders(), 2u);
  files::remove_abandoned_scratch(temporary.path());
  EXPECT_EQ(temporary.folders(), 2u);  // both live
  holder.kill();
  EXPECT_EQ(temporary.folders(), 2u);  // nobody has removed it
  files::remove_abandoned_scratch(temporary.path());
  EXPECT_EQ(temporary.folders(), 1u);
  other.kill();
  files::remove_abandoned_scratch(temporary.path());
  EXPECT_EQ(temporary.folders(), 0u);
}

TEST(FmuScratch, GoesWithItsObject) {
  const Temporary temporary;
  {
    const files::ScratchFolder scratch;
    EXPECT_EQ(scratch.path().parent_path(), temporary.path());
    files::remove_abandoned_scratch(temporary.path());  // its own process lives
    EXPECT_TRUE(std::filesystem::exists(scratch.path()));
  }
  EXPECT_EQ(temporary.folders(), 0u);
}

TEST(FmuScratch, WhatIsNotProvablyAbandonedStays) {
  const testing::TemporaryFolder elsewhere;
  const Temporary temporary;
  testing::write_text(elsewhere.path() / ".portwave-lock", "");
  std::filesystem::create_directory(temporary / "portwave-fmu-aaaaaa");  // no lock
  std::filesystem::create_directory(temporary / "portwave-fmu-mine");    // another name
  testing::write_text(temporary / "portwave-fmu-mine/.portwave-lock", "");
  std::filesystem::create_directory_symlink(elsewhere.path(), temporary / "portwave-fmu-bbbbbb");
  std::filesystem::create_directory(temporary / "portwave-fmu-cccccc");  // its lock is a link
  std::filesystem::create_symlink(elsewhere.path() / ".portwave-lock",
                                  temporary / "portwave-fmu-cccccc/.portwave-lock");
  testing::write_text(temporary / "portwave-fmu-dddddd", "");  // a file
  files::remove_abandoned_scratch(temporary.path());
  EXPECT_EQ(temporary.folders(), 5u);
  EXPECT_TRUE(std::filesystem::exists(elsewhere.path() / ".portwave-lock"));
  // Control: with a lock that nobody holds it goes.
  testing::write_text(temporary / "portwave-fmu-aaaaaa/.portwave-lock", "");
  files::remove_abandoned_scratch(temporary.path());
  EXPECT_EQ(temporary.folders(), 4u);
}

}  // namespace
}  // namespace portwave::test_fmu_scratch
