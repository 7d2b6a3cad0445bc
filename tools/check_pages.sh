#!/bin/bash
# Loads pages from disk in headless Chromium, as their readers do:
#   check_pages.sh [--screenshots DIR] PAGE.html...
# Fails unless the console stays silent, every image is drawn, and the page does
# not scroll sideways at 390 and at 1280 pixels. The narrow page is in a frame,
# since the browser's window is at least 500 wide. With --screenshots, DIR gets
# a picture of each.
set -u
# Reads the facts from outside, because the page has no script.
read -r -d '' probe <<'END'
<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0}iframe{border:0}</style>
<iframe id="page" src="PAGE" width="WIDTH" height="HEIGHT"></iframe>
<script>
document.getElementById("page").addEventListener("load", (event) => {
  const page = event.target.contentDocument;
  const images = [...page.images];
  const broken = images.filter((i) => !(i.complete && i.naturalWidth > 0));
  const root = page.documentElement;
  document.title = `images=${images.length} broken=${broken.length} ` +
      `overflow=${Math.max(root.scrollWidth, page.body.scrollWidth) - root.clientWidth} ` +
      `height=${root.scrollHeight}`;
});
</script>
END

screenshots=
if [ "${1-}" = --screenshots ]; then
  screenshots=$2
  mkdir -p "$screenshots"
  shift 2
fi
if [ $# -eq 0 ]; then
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
if ! command -v chromium >/dev/null; then
  echo "check_pages.sh: SKIPPED, chromium is not installed (tools/setup.sh --developer)"
  exit 0
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# browse WIDTH HEIGHT FLAGS... FILE
browse() {
  local width=$1 height=$2
  shift 2
  HOME=$scratch chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --allow-file-access-from-files --enable-logging=stderr --log-level=0 \
    --user-data-dir="$scratch/profile" --hide-scrollbars \
    --virtual-time-budget=5000 --window-size="$width,$height" "$@" 2>"$scratch/log"
}

failed=0
for page; do
  file=$(readlink -f "$page")
  for width in 390 1280; do
    window=$((width < 500 ? 500 : width))
    height=900
    wrap() {
      sed -e "s|PAGE|file://$file|; s|WIDTH|$width|; s|HEIGHT|$height|" \
        <<<"$probe" >"$scratch/probe.html"
    }
    wrap
    facts=$(browse $window $height --dump-dom "file://$scratch/probe.html" |
      sed -n 's|.*<title>\(.*\)</title>.*|\1|p')
    console=$(grep -i ':CONSOLE' "$scratch/log")
    if [[ $facts != *"broken=0 overflow=0 "* ]] || [ -n "$console" ]; then
      failed=1
      echo "$page at $width pixels: ${facts:-not loaded} $console"
    else
      echo "$page at $width pixels: $facts"
    fi
    if [ -n "$screenshots" ]; then
      height=${facts##*height=}
      wrap
      name=$(basename "$(dirname "$file")")-$(basename "$file" .html)-$width.png
      browse $window "$height" --screenshot="$screenshots/$name" \
        "file://$scratch/probe.html" >/dev/null
    fi
  done
done
exit $failed
