#!/usr/bin/env bash
# Fuzzes everything that reads what a user or a network gives: `scripts/fuzz.sh [SECONDS] [TARGET…]`.
#
# Runs libFuzzer on each target in turn, 2 seconds each unless told otherwise, and prints how many inputs it
# tried, how many places in the code they reached, and the most memory that was held. A panic, an input that
# takes more than 2 seconds, or more than 512 MB of memory is a failure: the script names the file of the input
# and exits with 1. Inputs that reach new code are kept in target/fuzz/corpus, and the next run starts from them.
#
# Needs a C++ compiler, but no nightly Rust: the flags for coverage are stable ones.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-2}
shift || true
build=${CARGO_TARGET_DIR:-target}/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
program=$build/$host/release/fuzz

# With --target, build scripts and procedural macros are built without these flags.
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
 -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions" \
  cargo build --quiet --release -p attend-fuzz --features libfuzzer --bin fuzz \
  --target "$host" --target-dir "$build"

targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  mapfile -t targets < <(ls crates/fuzz/seeds)
fi

failures=0
printf '%-18s %12s %10s %10s %9s\n' target executions per-second coverage peak-MB
for target in "${targets[@]}"; do
  seeds=crates/fuzz/seeds/$target
  corpus=$build/corpus/$target
  found=$build/failures/$target
  log=$build/$target.log
  mkdir -p "$corpus" "$found"
  # The words of the seeds: comparisons of strings are not traced, so they would be hard to guess.
  grep -ohaE '[A-Za-z_<][A-Za-z0-9_.<>/-]{2,30}' "$seeds"/* | sort -u | sed 's/.*/"&"/' >"$build/$target.dict" || true
  # One thread, so that executions are reproducible. No backtraces, whose symbols take more memory than parsing.
  if ATTEND_FUZZ=$target TOKENIZERS_PARALLELISM=false RUST_BACKTRACE=0 "$program" -max_total_time="$seconds" -timeout=2 \
    -rss_limit_mb=512 -max_len=4096 -dict="$build/$target.dict" -print_final_stats=1 \
    -artifact_prefix="$found/" "$corpus" "$seeds" >"$log" 2>&1; then
    failed=''
  else
    failed="FAILED: $(grep -oE 'Test unit written to .*' "$log" | sed 's/.*written to //' || echo "see $log")"
    failures=1
  fi
  stat() { sed -n "s/^stat::$1: *//p" "$log" | tail -1; }
  coverage=$(grep -oE 'cov: [0-9]+' "$log" | tail -1 | sed 's/cov: //' || true)
  printf '%-18s %12s %10s %10s %9s  %s\n' "$target" "$(stat number_of_executed_units)" \
    "$(stat average_exec_per_sec)" "${coverage:-?}" "$(stat peak_rss_mb)" "$failed"
done
exit "$failures"
