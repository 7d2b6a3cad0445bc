#!/bin/sh
# Packs the library: package.sh VERSION ARCHIVE FILE..., as convlab-VERSION/ with
# include/, lib/ and share/. The same files make the same archive.
set -eu
version=$1 archive=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/convlab-$version
mkdir -p "$root/include/convlab" "$root/lib/pkgconfig" \
  "$root/lib/cmake/convlab" "$root/share/convlab/example" \
  "$root/share/convlab/licences"
for file; do
  case $file in
    */include/convlab/*) cp -L "$file" "$root/include/convlab/" ;;
    *.so) cp -L "$file" "$root/lib/libconvlab.so.$version" ;;
    *.a) cp -L "$file" "$root/lib/" ;;
    *.pc) sed "s/@VERSION@/$version/" "$file" >"$root/lib/pkgconfig/${file##*/}" ;;
    *.cmake) sed "s/@VERSION@/$version/" "$file" >"$root/lib/cmake/convlab/${file##*/}" ;;
    */example/*) cp -L "$file" "$root/share/convlab/example/" ;;
    */licences/*) cp -L "$file" "$root/share/convlab/licences/" ;;
    *) cp -L "$file" "$root/share/convlab/" ;;
  esac
done
chmod -R u+w,a+rX "$root"
strip --strip-unneeded "$root/lib/libconvlab.so.$version"
ln -s "libconvlab.so.$version" "$root/lib/libconvlab.so.1"
ln -s libconvlab.so.1 "$root/lib/libconvlab.so"
tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner \
  --directory "$work" "convlab-$version" | gzip -9 -n >"$archive"
