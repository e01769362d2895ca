#include "parallel/build_id.hpp"

#include <cstdint>
#include <cstring>
#include <link.h>

namespace portwave {
namespace {

struct Search {
  std::uintptr_t address;
  std::span<const std::byte> found;
};

std::size_t padded(std::size_t size) { return (size + 3) / 4 * 4; }

/// The description of the note NT_GNU_BUILD_ID, if it is among these.
std::span<const std::byte> build_id_among(std::span<const std::byte> notes) {
  ElfW(Nhdr) note;
  while (notes.size() > sizeof(note)) {
    std::memcpy(&note, notes.data(), sizeof(note));
    const std::size_t name = sizeof(note), description = name + padded(note.n_namesz);
    const std::size_t end = description + padded(note.n_descsz);
    if (end > notes.size()) break;
    const bool is_gnu = note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID) return notes.subspan(description, note.n_descsz);
    notes = notes.subspan(end);
  }
  return {};
}

int look(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  Search& search = *static_cast<Search*>(data);
  bool is_here = false;
  std::span<const std::byte> found;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    is_here = is_here || (part.p_type == PT_LOAD && search.address >= begin &&
                          search.address < begin + part.p_memsz);
    if (part.p_type != PT_NOTE || !found.empty()) continue;
    found = build_id_among({reinterpret_cast<const std::byte*>(begin), part.p_memsz});
  }
  if (is_here) search.found = found;
  return is_here ? 1 : 0;
}

}  // namespace

std::span<const std::byte> build_id() {
  Search search{reinterpret_cast<std::uintptr_t>(&build_id), {}};
  dl_iterate_phdr(look, &search);
  return search.found;
}

}  // namespace portwave
