// Folders of results that somebody has made up: what is read lies in them.

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#ifdef PORTWAVE_TESTS_HDF5
#include <hdf5.h>
#endif

#include "output/recording/table_reader.hpp"
#include "report/run_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_results_of_others {
namespace {

using testing::TemporaryFolder;
using testing::write_text;
using Path = std::filesystem::path;

constexpr const char* kSecret = "time_s,secret\n0,1\n1,2\n";

/// Why a table is not read; empty: it is.
std::string refusal(const Path& folder, const std::string& table = "trajectory") {
  try {
    const auto reader = open_table(folder, table);
    std::vector<double> row;
    while (reader != nullptr && reader->next(row)) {
    }
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(ResultsOfOthers, LinksThatLeadOutOfTheFolderAreNotRead) {
  const TemporaryFolder folder;
  const Path results = folder / "results";
  std::filesystem::create_directory(results);
  write_text(folder / "secret.csv", kSecret);
  std::filesystem::create_symlink(folder / "secret.csv", results / "trajectory.csv");
  EXPECT_NE(refusal(results).find("leads out of the folder"), std::string::npos)
      << refusal(results);
  // Within it links are fine, and so is one to the folder itself.
  std::filesystem::remove(results / "trajectory.csv");
  write_text(results / "own.csv", kSecret);
  std::filesystem::create_symlink("own.csv", results / "trajectory.csv");
  EXPECT_EQ(refusal(results), "");
  std::filesystem::create_directory_symlink(results, folder / "by_another_name");
  EXPECT_EQ(refusal(folder / "by_another_name"), "");

  write_text(folder / "summary.json", R"({"steps": 1, "certificate": {}})");
  std::filesystem::create_symlink(folder / "summary.json", results / "summary.json");
  EXPECT_THROW(report::RunFolder::read(results), std::runtime_error);
  std::filesystem::remove(results / "summary.json");
  std::filesystem::copy_file(folder / "summary.json", results / "summary.json");
  EXPECT_NO_THROW(report::RunFolder::read(results));
}

#ifdef PORTWAVE_TESTS_HDF5

/// A file with a group "trajectory" and times, and what `add` puts into it.
void make_file(const Path& path, const std::function<void(hid_t group)>& add) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "trajectory", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  add(group);
  H5Gclose(group);
  H5Fclose(file);
}

constexpr hsize_t kRows = 2;

void put_numbers(hid_t group, const char* name, hid_t properties = H5P_DEFAULT) {
  const double numbers[kRows] = {0.0, 1.0};
  const hid_t space = H5Screate_simple(1, &kRows, nullptr);
  const hid_t set =
      H5Dcreate2(group, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  // Of one whose numbers are elsewhere these would be written there.
  if (properties == H5P_DEFAULT) {
    H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
  }
  H5Dclose(set);
  H5Sclose(space);
}

void put_virtual(hid_t group, const char* name, const std::string& file) {
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  const hid_t space = H5Screate_simple(1, &kRows, nullptr);
  H5Pset_virtual(properties, space, file.c_str(), "/trajectory/secret", space);
  put_numbers(group, name, properties);
  H5Sclose(space);
  H5Pclose(properties);
}

TEST(ResultsOfOthers, Hdf5FilesLeadNowhereElse) {
  const TemporaryFolder folder;
  const Path results = folder / "results", secret = folder / "secret.h5",
             raw = folder / "secret.bin";
  std::filesystem::create_directory(results);
  write_text(raw, std::string(16, 'x'));
  make_file(secret, [](hid_t group) {
    put_numbers(group, "time_s");
    put_numbers(group, "secret");
  });
  const std::pair<const char*, std::function<void(hid_t)>> files[] = {
      {"a link to another file",
       [&](hid_t group) {
         put_numbers(group, "time_s");
         H5Lcreate_external(secret.c_str(), "/trajectory/secret", group, "x", H5P_DEFAULT,
                            H5P_DEFAULT);
       }},
      {"a link in the same file, which may lead on",
       [&](hid_t group) {
         put_numbers(group, "time_s");
         H5Lcreate_external(secret.c_str(), "/trajectory", group, "on", H5P_DEFAULT, H5P_DEFAULT);
         H5Lcreate_soft("on/secret", group, "x", H5P_DEFAULT, H5P_DEFAULT);
       }},
      {"numbers in a file of another kind",
       [&](hid_t group) {
         put_numbers(group, "time_s");
         const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
         H5Pset_external(properties, raw.c_str(), 0, kRows * sizeof(double));
         put_numbers(group, "x", properties);
         H5Pclose(properties);
       }},
      {"times in a file of another kind",
       [&](hid_t group) {
         const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
         H5Pset_external(properties, raw.c_str(), 0, kRows * sizeof(double));
         put_numbers(group, "time_s", properties);
         H5Pclose(properties);
       }},
      {"columns of another folder",
       [&](hid_t group) {
         put_numbers(group, "time_s");
         put_virtual(group, "x", secret.string());
       }},
      {"columns of another folder, by a way up",
       [&](hid_t group) {
         put_numbers(group, "time_s");
         put_virtual(group, "x", "../secret.h5");
       }},
      {"columns of a link",
       [&](hid_t group) {
         put_numbers(group, "time_s");
         put_virtual(group, "x", "link.h5");
       }},
      {"columns of a file that has them from another one",
       [&](hid_t group) {
         put_numbers(group, "time_s");
         put_virtual(group, "x", "between.h5");
       }},
      {"times of another folder",
       [&](hid_t group) { put_virtual(group, "time_s", secret.string()); }},
  };
  std::filesystem::create_symlink(secret, results / "link.h5");
  make_file(results / "between.h5", [&](hid_t group) {
    put_numbers(group, "time_s");
    put_virtual(group, "secret", secret.string());
  });
  for (const auto& [name, add] : files) {
    make_file(results / "results.h5", add);
    EXPECT_NE(refusal(results), "") << name;
  }
  // Of files beside it, as of ranks, columns are read.
  std::filesystem::copy_file(secret, results / "beside.h5");
  make_file(results / "results.h5", [&](hid_t group) {
    put_numbers(group, "time_s");
    put_virtual(group, "x", "beside.h5");
  });
  EXPECT_EQ(refusal(results), "");
}

#endif

}  // namespace
}  // namespace portwave::test_results_of_others
