#!/usr/bin/env bash
# Checks the communication over MPI on 1 to 4 ranks of this machine, and that a job ends as a whole, within seconds
# and with a message, if one of its ranks panics, fails, is killed or is stopped. Then trains and translates on several
# ranks, with faults and through two network namespaces. Takes about two minutes after the build. Without MPI it is skipped; with
# ATTEND_MPI=require that is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/mpi.sh
if [ -z "$has_mpi" ]; then
  echo "skipped: there is no mpirun, or no mpicc"
  [ "${ATTEND_MPI:-}" != require ] || exit 1
  exit 0
fi
# Built as the tests of scripts/check.sh are, so that nothing is built twice.
cargo build --release --quiet --workspace --features attend-train/full,attend-train/mpi --bins --example ranks \
  --example panics

# More ranks than cores, and as root in a container.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe MPIEXEC_TIMEOUT=60
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export RUST_BACKTRACE=0

work=$(mktemp -d)
ranks=$work/ranks # a path that no other process has
cp "${CARGO_TARGET_DIR:-target}/release/examples/ranks" "$ranks"
left_over() { pgrep -f "$ranks" || true; }
cleanup() {
  for pid in $(left_over); do kill -KILL "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
fail() {
  echo "check-mpi: $*" >&2
  cat "$work/output" >&2
  exit 1
}

# Runs `ranks` with the arguments from the sixth on, on $2 ranks. The job must end within $3 seconds with status $4
# ("any" is any failure), print what matches $5, and leave no process.
expect() {
  local name=$1 count=$2 seconds=$3 want=$4 pattern=$5 status=0 start
  shift 5
  start=$(date +%s%N)
  mpirun -n "$count" "$ranks" "$@" </dev/null >"$work/output" 2>&1 || status=$?
  local took=$((($(date +%s%N) - start) / 1000000))
  if [ "$want" = any ]; then
    [ "$status" != 0 ] || fail "$name: the job succeeded"
  elif [ "$status" != "$want" ]; then
    fail "$name: status $status instead of $want"
  fi
  [ "$took" -le $((seconds * 1000)) ] || fail "$name: took $took ms, more than $seconds s"
  grep -Eq -- "$pattern" "$work/output" || fail "$name: the output lacks: $pattern"
  for _ in $(seq 50); do
    [ -n "$(left_over)" ] || break
    sleep 0.1
  done
  [ -z "$(left_over)" ] || fail "$name: a process is left over"
  printf '%-45s status %3d after %5d ms\n' "$name" "$status" "$took"
}

for count in 1 2 3 4; do
  expect "$count ranks" "$count" 30 0 "^$count ranks: hash " # the same sums as rank after rank
done
first=$(cat "$work/output")
OMPI_MCA_btl=tcp,self OMPI_MCA_pml=ob1 expect "4 ranks over TCP" 4 30 0 "$first"

export ATTEND_RANK_TIMEOUT=4
lost="has not been heard from for 4 s"
expect "rank 1 of 3 panics" 3 6 any "panic above is of rank 1 of 3" panic 1
expect "rank 0 of 3 panics" 3 6 any "panic above is of rank 0 of 3" panic 0
expect "rank 2 of 3 returns an error" 3 6 any "error: on purpose" fail 2
expect "rank 1 of 3 returns without finishing" 3 6 any "" leave 1
expect "rank 1 of 3 is killed" 3 6 any "" die 1
expect "rank 2 of 4 is stopped" 4 12 any "rank 2 of 4 .* $lost" stop 2
expect "rank 0 of 3 is stopped" 3 12 any "rank 0 of 3 .* $lost" stop 0
expect "rank 1 of 2 computes for 9 s" 2 20 0 "the busy rank was waited for" busy 9
# Started in a way that its own MPI library does not know.
status=0
PMI_SIZE=2 PMI_RANK=0 "$ranks" >"$work/output" 2>&1 || status=$?
if [ "$mpi_package" = ompi ]; then
  [ "$status" = 1 ] || fail "another launcher: status $status instead of 1"
  grep -q "launched as one of 2 ranks (PMI_SIZE=2), but MPI found 1" "$work/output" || fail "another launcher"
fi
unset ATTEND_RANK_TIMEOUT
export MPIEXEC_TIMEOUT=600

mkdir "$work/examples"
cp "${CARGO_TARGET_DIR:-target}/release/"{train,infer} "$work"
cp "${CARGO_TARGET_DIR:-target}/release/examples/panics" "$work/examples"
if command -v python3 >/dev/null; then
  python3 scripts/torture/ranks.py --rounds 2 --programs "$work"
  scripts/torture/network.sh --train "$work/train"
fi
echo "all checks of MPI passed"
