#include "kernels/judge/source/library_file.h"

#include <elf.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace convlab {
namespace {

constexpr absl::string_view kFunction = "convlab_kernel";

// Copies element `index` of an array of T that begins at `offset`; false if it
// is not within the file.
template <typename T>
bool Load(absl::string_view file, uint64_t offset, uint64_t index, T* value) {
  if (offset > file.size() || index >= (file.size() - offset) / sizeof(T)) {
    return false;
  }
  std::memcpy(value, file.data() + offset + index * sizeof(T), sizeof(T));
  return true;
}

// The text at `offset` in a table of strings; empty if it is not there.
absl::string_view Name(absl::string_view file, const Elf64_Shdr& table,
                       uint64_t offset) {
  if (table.sh_offset > file.size()) return "";
  absl::string_view text = file.substr(table.sh_offset);
  text = text.substr(0, table.sh_size);
  if (offset >= text.size()) return "";
  text = text.substr(offset);
  return text.substr(0, text.find('\0'));
}

bool DefinesFunction(absl::string_view file, const Elf64_Ehdr& header,
                     const Elf64_Shdr& symbols) {
  Elf64_Shdr names;
  if (!Load(file, header.e_shoff, symbols.sh_link, &names)) return false;
  Elf64_Sym symbol;
  const uint64_t count = symbols.sh_size / sizeof(symbol);
  for (uint64_t i = 0; i < count; ++i) {
    if (!Load(file, symbols.sh_offset, i, &symbol)) return false;
    if (symbol.st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        ELF64_ST_BIND(symbol.st_info) != STB_LOCAL &&
        Name(file, names, symbol.st_name) == kFunction) {
      return true;
    }
  }
  return false;
}

// The size of the sections of this name.
int64_t SectionBytes(absl::string_view file, const Elf64_Ehdr& header,
                     absl::string_view section_name) {
  Elf64_Shdr names;
  if (!Load(file, header.e_shoff, header.e_shstrndx, &names)) return 0;
  int64_t bytes = 0;
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (Load(file, header.e_shoff, i, &section) &&
        section.sh_size <= file.size() &&
        Name(file, names, section.sh_name) == section_name) {
      bytes += static_cast<int64_t>(section.sh_size);
    }
  }
  return bytes;
}

}  // namespace

int64_t ConstantBytes(absl::string_view content) {
  constexpr int kCudaMachine = 190;
  const absl::string_view magic(ELFMAG, SELFMAG);
  int64_t bytes = 0;
  // GPU code is an ELF file within the library.
  for (size_t at = content.find(magic); at != absl::string_view::npos;
       at = content.find(magic, at + 1)) {
    const absl::string_view file = content.substr(at);
    Elf64_Ehdr header;
    if (Load(file, 0, 0, &header) && header.e_machine == kCudaMachine) {
      bytes += SectionBytes(file, header, ".nv.constant3");
    }
  }
  return bytes;
}

absl::Status CheckKernelLibrary(absl::string_view content) {
  Elf64_Ehdr header;
  if (!Load(content, 0, 0, &header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN) {
    return absl::InvalidArgumentError("no shared library of 64 bits");
  }
#if defined(__x86_64__)
  constexpr int kMachine = EM_X86_64;
#else
  constexpr int kMachine = EM_AARCH64;
#endif
  if (header.e_machine != kMachine) {
    return absl::InvalidArgumentError(
        absl::StrCat("a library for machine ", header.e_machine,
                     " of ELF; expected ", kMachine));
  }
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (Load(content, header.e_shoff, i, &section) &&
        section.sh_type == SHT_DYNSYM &&
        DefinesFunction(content, header, section)) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      "the library does not define convlab_kernel(); expected one that the "
      "judge compiled, or the interface of kernels/judge/source/abi.h");
}

}  // namespace convlab
