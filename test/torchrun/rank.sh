#!/usr/bin/env bash
# One rank of run.sh: rank 0 notes which program listens at MASTER_PORT and at
# our rendezvous. In the first attempt of a run with KILL all train for long, and
# rank $KILL is killed; the exit codes are noted.
restart=$TORCHELASTIC_RESTART_COUNT
ours=$((MASTER_PORT + 1 + restart))
if [ "$RANK" = 0 ]; then
  (
    for _ in $(seq 400); do
      if ss -ltnpH "sport = :$ours" | grep -q megart; then
        echo "attempt $restart: MASTER_PORT $MASTER_PORT $(ss -ltnpH "sport = :$MASTER_PORT" |
          grep -o 'users:(("[^"]*"' | cut -d'"' -f2), rendezvous $ours megart" \
          >"$OUT/$NAME.ports.$restart"
        break
      fi
      sleep 0.02
    done
  ) &
fi
if [ -z "${KILL:-}" ] || [ "$restart" != 0 ]; then
  exec "$@" --steps 20
fi
"$@" --steps 1000000 &
if [ "$RANK" = "$KILL" ]; then
  sleep 5.3
  kill -9 $!
fi
wait $!
code=$?
echo "rank $RANK: exit code $code" >>"$OUT/$NAME.codes.$restart"
exit $code
