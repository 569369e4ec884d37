#!/usr/bin/env bash
# Injects SIGKILL, ENOSPC and EIO into a real process with strace: at every write, fsync, rename, unlink,
# rmdir, mkdir and symlink call that `train resume` makes on a small run, one fault per process. After each
# fault there must be a complete checkpoint, and resuming must end with the same bits. Needs strace and
# permission to trace.
#   scripts/torture/faults.sh [EVERY]      injects at every EVERYth call; default: each, takes minutes
set -euo pipefail
cd "$(dirname "$0")/../.."
stride=${1:-1}
command -v strace >/dev/null || { echo "strace is not installed" >&2; exit 1; }
. scripts/torture/tiny.sh

# The run that is resumed has stopped at step 20. Resumed, it saves at steps 25, 30 and 31.
quick=(--set train.validate_every=15 --set train.save_every=5 --set train.steps=31)
"$train" run config.toml --set out=whole "${quick[@]}" >/dev/null 2>&1
"$train" run config.toml --set out=begun "${quick[@]}" --set train.keep=9 >/dev/null 2>&1
rm -rf begun/checkpoint-25 begun/checkpoint-30 begun/checkpoint-31
want=$(hash whole)

total=0
for call in write fsync rename unlink rmdir mkdir symlink; do
  for fault in signal=KILL error=ENOSPC error=EIO; do
    tried=0
    for ((n = 1; ; n += stride)); do
      rm -rf run
      cp -a begun run
      status=0
      { # hides the shell's own "Killed" message
        strace -f -qq -o trace -e "trace=$call" -e "inject=$call:$fault:when=$n" \
          "$train" resume run --threads 1 --set train.keep=2 >/dev/null 2>talk || status=$?
      } 2>/dev/null
      "$train" doctor run >doctor 2>&1 || grep -q 'continues from step' doctor || fail "$call $n $fault: $(cat doctor)"
      if ! "$train" resume run --threads 1 >/dev/null 2>again; then
        fail "$call $n $fault: $(cat talk again)"
      fi
      [ "$(hash run)" = "$want" ] || fail "$call $n $fault: the final bits differ"
      # No fault was injected: the process makes fewer than n such calls.
      grep -q INJECTED trace || [ "$status" = 137 ] || break
      tried=$((tried + 1))
    done
    total=$((total + tried))
    echo "$call, $fault: $tried"
  done
done
echo "$total faults injected; the same bits after each"
