#!/bin/sh
# Prints the facts that //common/record:build_info stamps into the programs.
# STABLE_ keys cause a rebuild of that one file when they change.
revision=$(git rev-parse --short=12 HEAD 2>/dev/null) || revision=unknown
if [ "$revision" != unknown ] && [ -n "$(git status --porcelain -- . ':!reports/measured' ':!README.md' 2>/dev/null)" ]; then
  revision="$revision-modified"
fi
echo "STABLE_GIT_REVISION $revision"
