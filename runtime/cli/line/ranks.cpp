#include "line/ranks.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>

namespace portwave::cli {
namespace {

/// The number of processes that a launcher has started: mpirun of Open MPI, Hydra of MPICH, or Slurm.
int launched_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* const size = std::getenv(name); size != nullptr) return std::atoi(size);
  }
  // srun starts programs of any kind: only with an MPI of its own do they belong together.
  const char* const tasks = std::getenv("SLURM_NTASKS");
  const bool is_mpi = std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr;
  return tasks != nullptr && is_mpi ? std::atoi(tasks) : 1;
}

#ifdef PORTWAVE_MPI
std::filesystem::path folder_of_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

void* open_library() {
  constexpr const char* kName = "libportwave_mpi.so";
  const std::filesystem::path folder = folder_of_program();
  for (const std::filesystem::path& path :
       {folder / kName, folder / "../lib" / kName, std::filesystem::path(kName)}) {
    if (void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  }
  throw RankError(fmt::format("MPI cannot be used: {}", dlerror()));
}
#endif

}  // namespace

std::shared_ptr<Ranks>& ranks() {
  static std::shared_ptr<Ranks> ranks;
  return ranks;
}

std::shared_ptr<Ranks> join_ranks() {
  const int launched = launched_ranks();
  if (launched <= 1) return nullptr;
#ifdef PORTWAVE_MPI
  void* const library = open_library();
  using Make = void* (*)(char*, std::size_t);
  const auto make = reinterpret_cast<Make>(dlsym(library, "portwave_mpi_ranks"));
  if (make == nullptr) throw RankError("libportwave_mpi.so is of another version");
  char text[256] = "MPI failed";
  const std::unique_ptr<std::shared_ptr<Ranks>> made(
      static_cast<std::shared_ptr<Ranks>*>(make(text, sizeof(text))));
  if (made == nullptr) throw RankError(text);
  if ((*made)->size() != launched) {
    throw RankError(
        fmt::format("{} processes were started together, and MPI knows of {}: is this "
                    "the mpirun of the MPI that portwave was built with?",
                    launched, (*made)->size()));
  }
  return *made;
#else
  throw RankError(fmt::format(
      "{} processes were started together, and this portwave was built without MPI", launched));
#endif
}

int told_by_first(int number) {
  if (ranks() != nullptr) ranks()->broadcast(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

std::string told_by_first(const std::string& text) {
  std::string told = text;
  if (ranks() == nullptr) return told;
  told.resize(static_cast<std::size_t>(told_by_first(static_cast<int>(text.size()))));
  ranks()->broadcast(std::as_writable_bytes(std::span(told)));
  return told;
}

}  // namespace portwave::cli
