#!/usr/bin/env bash
# A real process and a real disk: SIGKILL, ENOSPC and EIO at every write, fsync, rename, unlink, mkdir and
# symlink that resuming a small training does, one after another. After each, a whole checkpoint must be
# there, and resuming must end in the same bits. Needs strace, which may need leave to trace.
#   scripts/torture/faults.sh [EVERY]      tries every EVERYth call; default: each. That takes minutes
set -euo pipefail
cd "$(dirname "$0")/../.."
stride=${1:-1}
command -v strace >/dev/null || { echo "strace is missing" >&2; exit 1; }
. scripts/torture/tiny.sh

# What is resumed: a run at step 20, which then saves at 25, 30 and 31.
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
      { # the shell itself says "Killed", which nobody needs to read
        strace -f -qq -o trace -e "trace=$call" -e "inject=$call:$fault:when=$n" \
          "$train" resume run --threads 1 --set train.keep=2 >/dev/null 2>talk || status=$?
      } 2>/dev/null
      "$train" doctor run >doctor 2>&1 || grep -q 'goes on from step' doctor || fail "$call $n $fault: $(cat doctor)"
      if ! "$train" resume run --threads 1 >/dev/null 2>again; then
        fail "$call $n $fault: $(cat talk again)"
      fi
      [ "$(hash run)" = "$want" ] || fail "$call $n $fault: other bits"
      # Past the last call of the process, nothing strikes any more.
      grep -q INJECTED trace || [ "$status" = 137 ] || break
      tried=$((tried + 1))
    done
    total=$((total + tried))
    echo "$call, $fault: $tried"
  done
done
echo "$total faults, and the same bits after each"
