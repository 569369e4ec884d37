#!/usr/bin/env bash
# Trains on two machines that are two network namespaces of this one, and cuts the link between them.
#
#   scripts/torture/network.sh [--rounds N] [--train PROGRAM] [--rate RATE]
#   scripts/torture/network.sh [--rate RATE] -- PROGRAM [ARGUMENTS]     # runs it on both machines, and nothing else
#
# The namespaces have an address and a host name each, and are joined by a veth pair of limited bandwidth (default:
# 1gbit). Open MPI starts its daemon in the second one as it would over SSH. The program is one built with MPI.
#
# First, one epoch is trained on two ranks, one in each namespace. The log must have the steps of a run of one process,
# with the same tokens and, except for rounding, the same losses, and the gradients must have crossed the link.
#
# Then every round (default: 1) cuts the link of such a training twice, each time in one of three ways: at either end,
# or so that packets are lost silently, as by a switch.
#   1. With the defaults of mpirun, the heartbeat must end both ranks within a minute. mpirun and its daemon wait for
#      each other for as long as TCP tries to reach the other side, which are minutes. They must end, with a failure,
#      once the link is back.
#   2. With keepalives on the connection of mpirun to its daemon, faster than the timeout of the ranks, everything must
#      end within a minute, with a failure, while the link is cut.
# After the second, the run is resumed in one process, and its log is compared as before.
#
# Needs root, ip, tc, network namespaces and Open MPI. Without them it is skipped; with ATTEND_MPI=require that is a
# failure. Takes about a minute, and as long again for every round.
set -euo pipefail

train="" rounds=1 rate=1gbit
usage() {
  echo "usage: $0 [--rounds N] [--train PROGRAM] [--rate NUMBERgbit|NUMBERmbit] [-- PROGRAM [ARGUMENTS]]" >&2
  exit 2
}
command=()
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --)
      command=("$(realpath "$2")" "${@:3}")
      break
      ;;
    --train) train=$(realpath "$2") ;;
    --rounds) rounds=$2 ;;
    --rate) rate=$2 ;;
    *) usage ;;
  esac
  shift 2
done
[[ $rounds =~ ^[0-9]+$ && $rate =~ ^[1-9][0-9]*[gm]bit$ ]] || usage
cd "$(dirname "$0")/../.."
train=${train:-$(realpath "${CARGO_TARGET_DIR:-target}")/release/train}

skip() {
  echo "skipped: $*"
  [ "${ATTEND_MPI:-}" != require ] || exit 1
  exit 0
}
for program in ip tc unshare mpirun python3; do
  command -v "$program" >/dev/null || skip "no $program"
done
[ "$(id -u)" = 0 ] || skip "not root"
case $(mpirun --version 2>&1) in
  *"Open MPI"*) ;;
  *) skip "mpirun is not of Open MPI" ;;
esac
[ ${#command[@]} -gt 0 ] || [ -x "$train" ] || {
  echo "network: there is no program $train" >&2
  exit 1
}

work=$(mktemp -d)
spaces=("attend-$$-1" "attend-$$-2") addresses=(10.77.0.1 10.77.0.2)
job="" output="" # the last program started in the background, and where its output goes

inside() { for space in "${spaces[@]}"; do ip netns pids "$space" 2>/dev/null || true; done; }
cleanup() {
  if [ -n "$job" ]; then
    kill -KILL "$job" 2>/dev/null || true
    wait "$job" 2>/dev/null || true
  fi
  # Only this script has started processes in its namespaces.
  for _ in $(seq 50); do
    left=$(inside)
    [ -n "$left" ] || break
    for pid in $left; do kill -KILL "$pid" 2>/dev/null || true; done
    sleep 0.1
  done
  # A namespace takes its interface with it, and that the other end of the pair.
  for space in "${spaces[@]}"; do ip netns del "$space" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
fail() {
  echo "network: $*" >&2
  local pid
  [ ! -e "$output" ] || tail -n 25 "$output" >&2
  for pid in $(inside); do echo "left over: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c 1-60)" >&2; done
  exit 1
}

# Waits at most $1 seconds until the rest of the arguments is a command that succeeds.
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.05
  done
}
ended() { ! kill -0 "$job" 2>/dev/null; }
empty() { [ -z "$(inside)" ]; }
ranks() { # those that still run
  local pid
  for pid in $(inside); do
    [ "$(readlink "/proc/$pid/exe" || true)" != "$train" ] || echo "$pid"
  done
}
no_rank() { [ -z "$(ranks)" ]; }
logged() { # the last step in the log of a run
  local steps
  steps=$(grep -o '^{"event":"step","step":[0-9]*' "$1/metrics.jsonl" 2>/dev/null | grep -o '[0-9]*$') || true
  echo "${steps##*$'\n'}"
}
reached() { [ "$(logged "$1" || true)" != "" ] && [ "$(logged "$1")" -ge "$2" ]; }
reached_or_ended() { reached "$@" || ended; }
seconds_since() { awk -v "from=$1" -v "to=$EPOCHREALTIME" 'BEGIN { printf "%.0f s", to - from }'; }

# Settings and comparison are those of ranks.py.
python() { PYTHONPATH=scripts/torture python3 -B "$@"; }
begin() { python -c 'import ranks, sys; print(*ranks.begin(sys.argv[1]), sep="\n")' "$1"; }
compare() { # NAME RUN: with the reference; prints how fast the run was
  python - "$@" "$work/reference" <<'PYTHON' || fail "$1: see above"
import pathlib, ranks, sys
name, run, reference = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
found, wanted = ranks.steps(run), ranks.steps(reference)
ranks.compare(name, found, wanted)
worst = max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(found, wanted))
speed = sorted(event["tokens_per_second"] for event in found)[len(found) // 2]
tokens = sum(event["tokens"] for event in found) / len(found)
print(f"{name}: {len(found)} steps, losses within {worst:.0e}, {1000 * tokens / speed:.0f} ms a step (median)")
PYTHON
}

make_machines() {
  local i
  for i in 0 1; do ip netns add "${spaces[i]}" || return 1; done
  ip link add link0 netns "${spaces[0]}" type veth peer name link0 netns "${spaces[1]}" || return 1
  for i in 0 1; do
    ip -n "${spaces[i]}" address add "${addresses[i]}/24" dev link0
    ip -n "${spaces[i]}" link set lo up
    ip -n "${spaces[i]}" link set link0 up
    ip netns exec "${spaces[i]}" tc qdisc add dev link0 root tbf rate "$rate" burst 64kb latency 50ms || return 1
    ip netns exec "${spaces[i]}" unshare --uts true || return 1
  done
}
crossed() { # bytes that have arrived at the first and at the second machine
  local space
  for space in "${spaces[@]}"; do ip netns exec "$space" cat /sys/class/net/link0/statistics/rx_bytes; done
}
cut_link() {
  local i
  case $1 in
    "at the first machine") ip -n "${spaces[0]}" link set link0 down ;;
    "at the second machine") ip -n "${spaces[1]}" link set link0 down ;;
    silently) # all goes to an Ethernet address that nobody has
      for i in 0 1; do
        ip -n "${spaces[i]}" neighbour replace "${addresses[1 - i]}" lladdr 02:00:00:00:00:99 dev link0 nud permanent
      done
      ;;
  esac
}
mend_link() {
  local i
  for i in 0 1; do
    ip -n "${spaces[i]}" link set link0 up
    ip -n "${spaces[i]}" neighbour del "${addresses[1 - i]}" dev link0 2>/dev/null || true
  done
}

# Runs what mpirun has to run on the machine with this address. As over SSH, the words are joined for a shell, and
# nothing of the environment comes along.
enter() {
  cat <<AGENT
#!/usr/bin/env bash
address=\$1
shift
case \$address in
  ${addresses[0]}) space=${spaces[0]} ;;
  ${addresses[1]}) space=${spaces[1]} ;;
  *) echo "unknown address: \$address" >&2 && exit 1 ;;
esac
cd /
exec env -i PATH="$PATH" LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}" HOME="$HOME" ip netns exec "\$space" \\
  unshare --uts bash -c 'hostname "\$1" && exec bash -c "\$2"' - "\$space" "\$*"
AGENT
}
# Starts the program in the background, alone or on both machines.
start_alone() {
  "$train" "$@" --threads 1 </dev/null >"$output" 2>&1 &
  job=$!
}
options=()
start() { # a program and its arguments
  local hosts=${addresses[0]}:1,${addresses[1]}:1
  # Only on this network, and not through memory that both share in truth.
  local network=(--mca pml ob1 --mca btl "tcp,self" --mca btl_tcp_if_include link0 --mca oob_tcp_if_include link0)
  "$work/enter" "${addresses[0]}" exec env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    "$(printf '%q ' mpirun --mca plm_rsh_agent "$work/enter" --mca orte_tmpdir_base "$work/tmp" --wdir "$PWD" \
      -n 2 --host "$hosts" --bind-to none "${network[@]}" ${options[@]+"${options[@]}"} -x ATTEND_RANK_TIMEOUT=10 \
      "$@")" </dev/null >"$output" 2>&1 &
  job=$!
}
# Waits at most $1 seconds for the last program started. Its status is then in `status`.
finish() {
  await "$1" ended || fail "$2: has not ended after $1 s"
  status=0
  wait "$job" 2>/dev/null || status=$?
  job=""
}

make_machines 2>"$work/refused" || skip "no two namespaces with a link of limited bandwidth: $(head -n 1 "$work/refused")"
mkdir "$work/tmp"
enter >"$work/enter"
chmod +x "$work/enter"

if [ ${#command[@]} -gt 0 ]; then
  output=$work/output.txt
  start "${command[@]}"
  finish 600 "${command[0]}"
  cat "$output"
  exit "$status"
fi

mapfile -t arguments < <(begin "$work/reference")
output=$work/reference.txt
start_alone "${arguments[@]}"
finish 600 "the run of one process"
[ "$status" = 0 ] || fail "the run of one process: status $status"
compare "one process" "$work/reference"
last=$(logged "$work/reference")
parameters=$(grep -o '[0-9]* parameters' "$work/reference.txt" | head -n 1 | grep -o '[0-9]*')

mapfile -t before < <(crossed)
mapfile -t arguments < <(begin "$work/both")
output=$work/both.txt
start "$train" "${arguments[@]}" --threads 1
finish 600 "both machines"
[ "$status" = 0 ] || fail "both machines: status $status"
await 10 empty || fail "both machines: a process is left over"
compare "both machines, $rate" "$work/both"
mapfile -t after < <(crossed)
for i in 0 1; do
  bytes=$(((after[i] - before[i]) / last))
  echo "machine $((i + 1)) received $bytes bytes a step; the gradient has $((4 * parameters))"
  # Of two ranks, each sends half of its gradient, and the sum of the other half.
  [ "$bytes" -ge $((2 * parameters)) ] || fail "the gradients have gone another way"
done

ways=("at the first machine" "at the second machine" silently)
# Starts the program with the arguments after the third, cuts the link when run $2 reaches step $3, and waits for the
# end of both ranks.
start_and_cut() {
  local name=$1 run=$2 step=$3
  shift 3
  way=${ways[RANDOM % 3]}
  start "$train" "$@" --threads 1
  await 300 reached_or_ended "$run" "$step" || fail "$name: did not reach step $step"
  [ -n "$(ranks)" ] || fail "$name: ended before the link was cut"
  since=$EPOCHREALTIME
  cut_link "$way"
  await 60 no_rank || fail "$name: a rank still runs a minute after the link was cut $way"
  gone=$(seconds_since "$since")
}
message() { grep -Ei "$1" "$output" | tail -n 1 | sed 's/^/    /'; }

for round in $(seq "$rounds"); do
  run=$work/round-$round output=$work/round-$round.txt
  at=$((2 + RANDOM % (last / 3)))
  mapfile -t arguments < <(begin "$run")
  options=()
  start_and_cut "round $round" "$run" "$at" "${arguments[@]}"
  sleep 2
  waiting=$(inside | wc -w)
  mend_link
  finish 60 "round $round: mpirun after the link was back"
  [ "$status" != 0 ] || fail "round $round: mpirun succeeded"
  await 60 empty || fail "round $round: a process is left over"
  echo "round $round: cut $way at step $at: no rank after $gone; status $status after the link was back, for which" \
    "$waiting processes of MPI waited"
  message "has not been heard from|heartbeat" || fail "round $round: no message of a rank"

  at=$((at + 10 + RANDOM % (last / 3)))
  options=(--mca oob_tcp_keepalive_time 3 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 3)
  start_and_cut "round $round with keepalives" "$run" "$at" resume "$run"
  finish 60 "round $round: mpirun with keepalives"
  [ "$status" != 0 ] || fail "round $round: mpirun with keepalives succeeded"
  await 60 empty || fail "round $round: a process is left over in spite of keepalives"
  echo "round $round: with keepalives, cut $way at step $at: no rank after $gone, nothing after" \
    "$(seconds_since "$since"), status $status"
  message "lost communication|has not been heard from|heartbeat" || fail "round $round: no message"

  mend_link
  start_alone resume "$run"
  finish 600 "round $round, resumed in one process"
  [ "$status" = 0 ] || fail "round $round, resumed in one process: status $status"
  compare "round $round, resumed in one process" "$run"
  rm -rf "$run"
done
