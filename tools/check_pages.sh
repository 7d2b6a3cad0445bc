#!/bin/bash
# Loads pages from disk in headless Chromium, as their readers do:
#   check_pages.sh [--screenshots DIR] [--axe AXE.JS] PAGE.html...
# Fails unless the console stays silent, every image is drawn, and the page does
# not scroll sideways at 390 and at 1280 pixels. The narrow page is in a frame,
# since the browser's window is at least 500 wide. With --screenshots, DIR gets
# a picture of each, and of a dark screen. With --axe, the file of that name
# from npm's package axe-core checks each page for what keeps people from
# reading it, and a serious finding fails.
set -u
# Reads the facts from outside, because the page has no script.
read -r -d '' probe <<'END'
<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0}iframe{border:0}</style>
<iframe id="page" src="PAGE" width="WIDTH" height="HEIGHT"></iframe>
<script>
document.getElementById("page").addEventListener("load", (event) => {
  const frame = event.target;
  const page = frame.contentDocument;
  const images = [...page.images];
  const broken = images.filter((i) => !(i.complete && i.naturalWidth > 0));
  const root = page.documentElement;
  document.title = `images=${images.length} broken=${broken.length} ` +
      `overflow=${Math.max(root.scrollWidth, page.body.scrollWidth) - root.clientWidth} ` +
      `height=${root.scrollHeight}`;
  if (!"AXE") return;
  const script = page.createElement("script");
  script.src = "AXE";
  script.onload = async () => {
    const found = await frame.contentWindow.axe.run(page);
    const serious = found.violations.filter(
        (one) => ["serious", "critical"].includes(one.impact));
    document.title += ` serious=${serious.length} ` + found.violations.map(
        (one) => `[${one.impact}: ${one.id} ${one.nodes[0].target}]`).join(" ");
  };
  page.head.append(script);
});
</script>
END

screenshots='' axe=''
while [[ ${1-} == --* ]] && [ $# -gt 1 ]; do
  case $1 in
    --screenshots) screenshots=$2 && mkdir -p "$screenshots" ;;
    --axe) axe=file://$(readlink -e "$2") || exit 2 ;;
    *) break ;;
  esac
  shift 2
done
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

more=()
if [ -n "$screenshots$axe" ]; then more=(dark); fi
failed=0
for page; do
  file=$(readlink -f "$page")
  for look in 390 1280 "${more[@]}"; do
    width=${look/dark/1280}
    scheme=()
    if [ "$look" = dark ]; then
      scheme=(--force-dark-mode --blink-settings=preferredColorScheme=0)
    fi
    window=$((width < 500 ? 500 : width))
    height=900
    wrap() {
      sed -e "s|PAGE|file://$file|; s|WIDTH|$width|; s|HEIGHT|$height|; s|AXE|$axe|" \
        <<<"$probe" >"$scratch/probe.html"
    }
    wrap
    facts=$(browse $window $height "${scheme[@]}" --dump-dom "file://$scratch/probe.html" |
      sed -n 's|.*<title>\(.*\)</title>.*|\1|p')
    console=$(grep -i ':CONSOLE' "$scratch/log")
    if [[ $facts != *"broken=0 overflow=0 "* ]] || [ -n "$console" ] ||
      [[ -n $axe && $facts != *" serious=0 "* ]]; then
      failed=1
      echo "$page, $look: ${facts:-not loaded} $console"
    else
      echo "$page, $look: $facts"
    fi
    if [ -n "$screenshots" ]; then
      height=${facts##*height=}
      height=${height%% *}
      wrap
      name=$(basename "$(dirname "$file")")-$(basename "$file" .html)-$look.png
      browse $window "$height" "${scheme[@]}" --screenshot="$screenshots/$name" \
        "file://$scratch/probe.html" >/dev/null
    fi
  done
done
exit $failed
