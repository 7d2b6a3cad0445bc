"""Embeds text files into programs, which then need no file at run time."""

def embed_files(name, srcs, out, folder, header, function):
    """Writes a C++ source that defines a function with the files' content.

    Args:
      name: the target.
      srcs: the files.
      out: the source to write.
      folder: a file in a folder of this name is named by its path in it.
        Others belong to the judge's own headers: convlab/NAME.
      header: declares the function.
      function: returns const std::vector<EmbeddedFile>&.
    """
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [out],
        cmd = """
{{
  echo '#include "{header}"'
  echo 'namespace convlab {{'
  echo 'const std::vector<EmbeddedFile>& {function}() {{'
  echo 'static const auto* const files = new std::vector<EmbeddedFile>{{'
  for file in $(SRCS); do
    case $$file in
      */{folder}/*) name=$${{file#*/{folder}/}} ;;
      *) name=convlab/$${{file##*/}} ;;
    esac
    printf '{{"%s", R"convlab(' "$$name"
    cat "$$file"
    echo ')convlab"}},'
  done
  echo '}}; return *files; }} }}  // namespace convlab'
}} > $@
""".format(header = header, function = function, folder = folder),
    )
