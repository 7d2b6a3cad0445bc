// The smallest shared library with one function, as a linker might write it.
#ifndef KERNELS_JUDGE_SOURCE_TEST_LIBRARY_H_
#define KERNELS_JUDGE_SOURCE_TEST_LIBRARY_H_

#include <elf.h>

#include <cstring>
#include <string>

namespace convlab {

inline std::string TestLibrary(const std::string& function) {
  struct File {
    Elf64_Ehdr header;
    Elf64_Shdr sections[3];  // none, symbols, their names
    Elf64_Sym symbols[2];
    char names[64];
  };
  File file = {};
  std::memcpy(file.header.e_ident, ELFMAG, SELFMAG);
  file.header.e_ident[EI_CLASS] = ELFCLASS64;
  file.header.e_type = ET_DYN;
#if defined(__x86_64__)
  file.header.e_machine = EM_X86_64;
#else
  file.header.e_machine = EM_AARCH64;
#endif
  file.header.e_shoff = offsetof(File, sections);
  file.header.e_shnum = 3;
  file.sections[1].sh_type = SHT_DYNSYM;
  file.sections[1].sh_offset = offsetof(File, symbols);
  file.sections[1].sh_size = sizeof(file.symbols);
  file.sections[1].sh_link = 2;
  file.sections[2].sh_type = SHT_STRTAB;
  file.sections[2].sh_offset = offsetof(File, names);
  file.sections[2].sh_size = sizeof(file.names);
  file.symbols[1].st_name = 1;
  file.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  file.symbols[1].st_shndx = 1;
  function.copy(file.names + 1, sizeof(file.names) - 2);
  return std::string(reinterpret_cast<const char*>(&file), sizeof(file));
}

}  // namespace convlab

#endif  // KERNELS_JUDGE_SOURCE_TEST_LIBRARY_H_
