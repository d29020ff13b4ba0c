#!/bin/sh
# nacre-hook.sh [--home PATH] HOST EVENT: the hook that hosts run if there is a shell. It calls the home's daemon with
# curl, which starts ten times as fast as nacre-hook, and runs nacre-hook if there is no daemon. If the daemon does not
# answer in time, the host gets no output.

trap '' PIPE
alone=${0%/*}/nacre-hook
home=${NACRE_HOME:-${HOME-}/.nacre}
if [ "${1-}" = --home ] && [ $# -gt 2 ]; then
  home=$2
  shift 2
fi
socket=$home/daemon.sock

[ "${2-}" != PreToolUse ] || [ -S "$socket" ] || exit 0 # only the daemon answers before a tool

# The daemon's socket must exist and belong to this user.
if [ $# -ne 2 ] || [ ! -S "$socket" ] || [ ! -O "$socket" ] || [ -n "${NACRE_OWN_CALL-}" ]; then
  exec "$alone" --home "$home" "$@"
fi

input=$(cat)

# Age of this process in milliseconds, if known. On a busy machine, curl takes about as long to start.
age=0
begun() { shift 19 && age=$(((${up%.*}${up#*.} - $1) * 10)); }
if read -r up rest 2>/dev/null </proc/uptime && read -r stat 2>/dev/null </proc/$$/stat; then
  begun ${stat##*) }
  [ "$age" -ge 0 ] && [ "$age" -lt 1000 ] || age=0
fi
limit=110
[ "$2" != PreToolUse ] || limit=50 # runs before every tool call
within=${NACRE_HOOK_MS:-0}
[ "$within" -gt $limit ] 2>/dev/null || within=$limit
within=$((within - 2 * age))
[ "$within" -gt 40 ] || within=40
fraction=$((1000 + within % 1000))
response=$(
  curl --disable --silent --fail --noproxy '*' --unix-socket "$socket" --max-time "$((within / 1000)).${fraction#1}" \
    --header Expect: --data-binary @- "http://nacre/hook/$1/$2" 2>/dev/null <<END
$input
END
)
case $? in
  0) printf %s "$response" 2>/dev/null ;;
  28) ;; # time limit
  *) printf %s "$input" | "$alone" --home "$home" "$@" ;;
esac
exit 0
