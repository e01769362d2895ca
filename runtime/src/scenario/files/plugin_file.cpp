#include <bit>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "scenario/files/plugins.hpp"
#include "scenario/reader/limits.hpp"
#include "scenario/reader/text.hpp"

namespace portwave::scenario_file {
namespace {

constexpr std::size_t kMostPluginBytes = std::size_t{1} << 30;
constexpr std::string_view kBuildSymbolOfAnyVersion = "portwave_plugin_build_v";

/// Structures of the ELF format for the pointers of this program.
template <std::size_t PointerBytes>
struct Elf;
template <>
struct Elf<8> {
  static constexpr unsigned char kClass = ELFCLASS64;
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
  using Segment = Elf64_Phdr;
  using Symbol = Elf64_Sym;
};
template <>
struct Elf<4> {
  static constexpr unsigned char kClass = ELFCLASS32;
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
  using Segment = Elf32_Phdr;
  using Symbol = Elf32_Sym;
};
using OwnElf = Elf<sizeof(void*)>;

/// 0: not known, and not compared.
constexpr int own_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__i386__)
  return EM_386;
#else
  return 0;
#endif
}

/// Thrown by the reader below.
struct PluginProblem {
  std::string text;
};

class LibraryReader {
 public:
  explicit LibraryReader(std::string_view bytes) : bytes_(bytes), header_(read_header()) {}

  PluginBuild build() const {
    std::string other;
    bool has_symbols = false;
    for (std::uint64_t i = 0; i < header_.e_shnum; ++i) {
      const auto section = at<OwnElf::Section>(header_.e_shoff + i * sizeof(OwnElf::Section));
      if (section.sh_type != SHT_DYNSYM) continue;
      has_symbols = true;
      const auto names =
          at<OwnElf::Section>(header_.e_shoff + section.sh_link * sizeof(OwnElf::Section));
      for (std::uint64_t at_byte = 0; at_byte + sizeof(OwnElf::Symbol) <= section.sh_size;
           at_byte += sizeof(OwnElf::Symbol)) {
        const auto symbol = at<OwnElf::Symbol>(section.sh_offset + at_byte);
        if (symbol.st_shndx == SHN_UNDEF) continue;
        const std::string_view name = text_at(names.sh_offset + symbol.st_name);
        if (name == kPluginBuildSymbol) return at<PluginBuild>(place_of(symbol.st_value));
        if (name.starts_with(kBuildSymbolOfAnyVersion)) other = name;
      }
    }
    if (!other.empty()) {
      throw PluginProblem{fmt::format(
          "was built with another generation of portwave: it has {}, where {} is looked for",
          printable(other), kPluginBuildSymbol)};
    }
    if (!has_symbols) throw PluginProblem{"shows no symbols at all, so it is no plugin"};
    throw PluginProblem{
        "is a shared library, but no plugin.\n"
        "One of its sources must have PORTWAVE_PLUGIN(types) { types.add(...); }"};
  }

 private:
  OwnElf::Header read_header() const {
    if (bytes_.starts_with("!<arch>\n")) {
      throw PluginProblem{
          "is a static library, but a plugin is a shared one.\n"
          "in CMake: portwave_add_plugin(name source.cpp)"};
    }
    if (!bytes_.starts_with(std::string_view(ELFMAG, SELFMAG)) || bytes_.size() < EI_NIDENT) {
      throw PluginProblem{"is not a shared library"};
    }
    constexpr int kData = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    const auto word = static_cast<unsigned char>(bytes_[EI_CLASS]);
    if (word != OwnElf::kClass || bytes_[EI_DATA] != kData) throw PluginProblem{kOtherMachine};
    const auto header = at<OwnElf::Header>(0);
    if (own_machine() != 0 && header.e_machine != own_machine()) {
      throw PluginProblem{kOtherMachine};
    }
    if (header.e_type == ET_REL) {
      throw PluginProblem{"is an object file, which must be linked into a shared library"};
    }
    if (header.e_type != ET_DYN) throw PluginProblem{"is a program, not a shared library"};
    return header;
  }

  /// Offset in the file of an address in memory.
  std::uint64_t place_of(std::uint64_t address) const {
    for (std::uint64_t i = 0; i < header_.e_phnum; ++i) {
      const auto segment = at<OwnElf::Segment>(header_.e_phoff + i * sizeof(OwnElf::Segment));
      if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
      const std::uint64_t offset = address - segment.p_vaddr;
      if (offset < segment.p_filesz) return segment.p_offset + offset;
    }
    throw PluginProblem{kDamaged};
  }

  template <class T>
  T at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) throw PluginProblem{kDamaged};
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  std::string_view text_at(std::uint64_t offset) const {
    if (offset >= bytes_.size()) throw PluginProblem{kDamaged};
    const std::string_view rest = bytes_.substr(offset);
    return rest.substr(0, rest.find('\0'));
  }

  static constexpr const char* kDamaged = "is damaged or cut short";
  static constexpr const char* kOtherMachine = "is a library for another processor";

  std::string_view bytes_;
  OwnElf::Header header_;
};

std::string_view version_of(const PluginBuild& build) {
  const std::string_view all(build.portwave, sizeof(build.portwave));
  return all.substr(0, all.find('\0'));
}

std::string library_of(const PluginBuild& build) {
  const char* const names[] = {"another standard library", "libstdc++", "libc++"};
  const bool is_known = build.standard_library >= 0 && build.standard_library < 3;
  return fmt::format("{} (ABI {}{})", names[is_known ? build.standard_library : 0],
                     build.string_abi, build.checked_iterators != 0 ? ", checked iterators" : "");
}

std::string eigen_of(std::int32_t version) {
  return fmt::format("Eigen {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

PluginFile inspect_plugin_bytes(std::string_view bytes) {
  PluginFile result;
  try {
    result.build = LibraryReader(bytes).build();
  } catch (const PluginProblem& problem) {
    result.problem = problem.text;
  }
  return result;
}

PluginFile inspect_plugin(const std::filesystem::path& file) {
  const FileText content = read_text_file(file, Pipes::refused, kMostPluginBytes);
  if (!content.ok()) return {{}, content.problem};
  return inspect_plugin_bytes(content.text);
}

std::vector<std::string> differences(const PluginBuild& plugin, const PluginBuild& program) {
  std::vector<std::string> all;
  const auto differ = [&all](std::string_view of_plugin, std::string_view of_program) {
    all.push_back(fmt::format("was built with {}, this program with {}", of_plugin, of_program));
  };
  if (version_of(plugin) != version_of(program)) {
    differ(fmt::format("portwave {}", printable(version_of(plugin))),
           fmt::format("portwave {}", version_of(program)));
  }
  if (library_of(plugin) != library_of(program)) differ(library_of(plugin), library_of(program));
  if (plugin.eigen != program.eigen) differ(eigen_of(plugin.eigen), eigen_of(program.eigen));
  if (plugin.eigen_alignment != program.eigen_alignment) {
    differ(fmt::format("Eigen objects aligned to {} bytes", plugin.eigen_alignment),
           fmt::format("{} (options such as -march=native change that)", program.eigen_alignment));
  }
  for (const auto& [bit, name] : {std::pair(1, "address"), {2, "thread"}, {4, "memory"}}) {
    if ((plugin.sanitizers & bit) == 0 || (program.sanitizers & bit) != 0) continue;
    all.push_back(fmt::format("was built with the {} sanitizer, and this program was not", name));
  }
  if (all.empty() && plugin.layout != program.layout) {
    all.push_back(
        fmt::format("was built with headers of portwave {} that differ from those of this program",
                    version_of(program)));
  }
  return all;
}

}  // namespace portwave::scenario_file
