#!/bin/bash
# Loads pages from disk in headless Chromium, as their readers do:
#   check_pages.sh [--screenshots DIR] [--axe AXE.JS] PAGE.html...
# Fails unless the console stays silent, every image is drawn, no page scrolls
# sideways at 390 and at 1280 pixels, whatever its reader chooses, and axe-core
# (npm install --global axe-core, or --axe) finds nothing serious that keeps
# people from reading it, light and dark. The pages are in frames, since the
# browser's window is at least 500 wide. With --screenshots, DIR gets a picture
# of each, and of a dark screen.
set -u
# Reads the facts from outside, because a report has hardly a script.
read -r -d '' probe <<'END'
<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0}iframe{border:0;display:block}</style>
<body><script>
const kWidths = [WIDTHS], kHeight = HEIGHT, kAxe = "AXE", kDark = DARK;
// Makes every choice once, and sorts every table; returns by how much the page
// is at most wider than its frame.
function exercise(page) {
  const root = page.documentElement;
  let most = 0;
  const look = () => {
    most = Math.max(most, root.scrollWidth - root.clientWidth, page.body.scrollWidth - root.clientWidth);
  };
  look();
  for (const select of page.querySelectorAll("select")) {
    for (let i = select.options.length - 1; i >= 0; --i) {
      select.selectedIndex = i;
      select.dispatchEvent(new Event("change"));
      look();
    }
  }
  for (const button of page.querySelectorAll("th button")) button.click();
  look();
  return most;
}
async function accessibility(frame) {
  const script = frame.contentDocument.createElement("script");
  script.src = kAxe;
  const loaded = new Promise((resolve) => { script.onload = resolve; });
  frame.contentDocument.head.append(script);
  await loaded;
  const found = await frame.contentWindow.axe.run(frame.contentDocument,
      kDark ? { runOnly: ["color-contrast"] } : {});
  const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  return ` serious=${serious.length} ` +
      found.violations.map((one) => `[${one.impact}: ${one.id} ${one.nodes[0].target}]`).join(" ");
}
for (const name of [PAGES]) {
  for (const width of kWidths) {
    const frame = document.createElement("iframe");
    Object.assign(frame, { src: name, width, height: kHeight, title: name });
    document.body.append(frame);
  }
}
window.addEventListener("load", async () => {
  const lines = [];
  for (const frame of SCREENSHOT ? [] : document.querySelectorAll("iframe")) {
    const page = frame.contentDocument;
    const images = [...page.images];
    const broken = images.filter((i) => !(i.complete && i.naturalWidth > 0));
    const height = page.documentElement.scrollHeight;
    let facts = `images=${images.length} broken=${broken.length} overflow=${kDark ? 0 : exercise(page)} height=${height}`;
    if (kAxe) facts += await accessibility(frame);
    lines.push(`FACTS ${frame.title} ${frame.width}: ${facts} `);
  }
  const pre = document.createElement("pre");
  pre.textContent = `\n${lines.join("\n")}\n`;
  document.body.append(pre);
});
</script></body>
END

screenshots='' axe=''
for place in /usr/local/lib /usr/lib; do
  [ ! -f $place/node_modules/axe-core/axe.min.js ] || axe=$place/node_modules/axe-core/axe.min.js
done
while [[ ${1-} == --* ]] && [ $# -gt 1 ]; do
  case $1 in
    --screenshots) screenshots=$2 && mkdir -p "$screenshots" ;;
    --axe) axe=$(readlink -e "$2") || exit 2 ;;
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
looks=(light)
if [ -n "$axe" ]; then
  looks=(light dark)
else
  echo "check_pages.sh: accessibility SKIPPED, axe-core is not installed (npm install --global axe-core)"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# browse LOOK WIDTH HEIGHT FLAGS... FILE
browse() {
  local look=$1 width=$2 height=$3 scheme=()
  shift 3
  if [ "$look" = dark ]; then
    scheme=(--force-dark-mode --blink-settings=preferredColorScheme=0)
  fi
  HOME=$scratch chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --allow-file-access-from-files --enable-logging=stderr --log-level=0 \
    --user-data-dir="$scratch/profile" --hide-scrollbars "${scheme[@]}" \
    --virtual-time-budget=60000 --window-size="$width,$height" "$@" 2>"$scratch/log"
}
# wrap WIDTHS HEIGHT IS_SCREENSHOT IS_DARK PAGE...
wrap() {
  local widths=$1 height=$2 shot=$3 dark=$4 page pages=''
  shift 4
  for page; do pages+="\"file://$(readlink -f "$page")\","; done
  sed -e "s|WIDTHS|$widths|; s|HEIGHT|$height|; s|SCREENSHOT|$shot|; s|DARK|$dark|; s|AXE|${axe:+file://$axe}|; s|PAGES|$pages|" \
    <<<"$probe" >"$scratch/probe.html"
}

failed=0
# A dark screen changes colours alone.
for look in "${looks[@]}"; do
  widths=390,1280 dark=false expected=$((2 * $#))
  [ "$look" = light ] || widths=1280 dark=true expected=$#
  wrap $widths 900 false $dark "$@"
  browse "$look" 1400 900 --dump-dom "file://$scratch/probe.html" |
    sed -n 's/^FACTS //p' >"$scratch/facts-$look"
  console=$(grep -i ':CONSOLE' "$scratch/log")
  wrong=$(grep -v 'broken=0 overflow=0 ' "$scratch/facts-$look")
  [ -z "$axe" ] || wrong+=$(grep -v ' serious=0 ' "$scratch/facts-$look")
  sed "s/^/$look: /; s|file://||" "$scratch/facts-$look"
  if [ "$(wc -l <"$scratch/facts-$look")" -ne $expected ] || [ -n "$wrong$console" ]; then
    failed=1
    echo "FAILED, $look: ${wrong:-not all pages were loaded} $console"
  fi
done
if [ -n "$screenshots" ]; then
  for page; do
    name=$screenshots/$(basename "$(dirname "$(readlink -f "$page")")")-$(basename "$page" .html)
    for look in 390 1280 dark; do
      width=${look/dark/1280}
      height=$(sed -n "s|^file://$(readlink -f "$page") $width: .* height=\([0-9]*\).*|\1|p" "$scratch/facts-light")
      wrap "$width" "$height" true false "$page"
      browse $look $((width < 500 ? 500 : width)) "$height" \
        --screenshot="$name-$look.png" "file://$scratch/probe.html" >/dev/null
    done
  done
fi
exit $failed
