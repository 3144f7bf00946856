# Completion of tubed for bash.
# Generated from src/config/table.cc by tools/generate-docs. Do not edit.
# shellcheck shell=bash

_tubed() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  # bash cuts --flag=argument at its "=".
  if [[ $current == '=' ]]; then
    current=
  elif [[ $previous == '=' ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  case $previous in
    --config | --address-file | --preload | --pid-file | --http-tls-certificate | --http-tls-key | --http-tls-client-ca | --auth-tokens | --cluster-secret-file | --cluster-tls-certificate | --cluster-tls-key | --cluster-tls-ca)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
    --dump | --check | --salvage | --backup | -b | --journal-directory)
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -d -- "$current")
      ;;
    -u | --user | --http-role)
      mapfile -t COMPREPLY < <(compgen -u -- "$current")
      ;;
    --journal-sync)
      mapfile -t COMPREPLY < <(compgen -W 'always never' -- "$current")
      ;;
    --drain-exit)
      mapfile -t COMPREPLY < <(compgen -W 'never when-idle when-empty' -- "$current")
      ;;
    --drain-reserves)
      mapfile -t COMPREPLY < <(compgen -W 'refuse serve' -- "$current")
      ;;
    --http-api)
      mapfile -t COMPREPLY < <(compgen -W 'off read full' -- "$current")
      ;;
    --http-auth)
      mapfile -t COMPREPLY < <(compgen -W 'none token mtls peer' -- "$current")
      ;;
    --http-tls-min-version)
      mapfile -t COMPREPLY < <(compgen -W '1.2 1.3' -- "$current")
      ;;
    --auth-watch | --tls-watch)
      mapfile -t COMPREPLY < <(compgen -W 'false true' -- "$current")
      ;;
    --log-level)
      mapfile -t COMPREPLY < <(compgen -W 'error warning info debug' -- "$current")
      ;;
    --log-format)
      mapfile -t COMPREPLY < <(compgen -W 'auto text journald json' -- "$current")
      ;;
    --cluster-clients)
      mapfile -t COMPREPLY < <(compgen -W 'forward refuse' -- "$current")
      ;;
    --cluster-insecure)
      mapfile -t COMPREPLY < <(compgen -W 'no yes' -- "$current")
      ;;
    # Nothing is known of the arguments of these.
    -l | \
      --listen | \
      -p | \
      --port | \
      -f | \
      -s | \
      --journal-segment-size | \
      --journal-max-bytes | \
      --limits-connections | \
      --limits-handshakes | \
      --limits-line-bytes | \
      -z | \
      --limits-job-bytes | \
      --limits-job-memory | \
      --limits-tubes | \
      --limits-policies | \
      --limits-client-watches | \
      --limits-watches | \
      --limits-output-bytes | \
      --limits-output-memory | \
      --limits-input-memory | \
      --limits-work-per-turn | \
      --timeouts-idle | \
      --timeouts-stall | \
      --timeouts-handshake | \
      --timeouts-shutdown | \
      --drain-timeout | \
      --http-listen | \
      --http-hosts | \
      --http-title | \
      --http-color | \
      --http-keep-alive | \
      --http-max-tubes | \
      --http-tube-linger | \
      --tcp-keepalive | \
      --tcp-backlog | \
      --cluster-name | \
      --cluster-listen | \
      --cluster-address | \
      --cluster-admin | \
      --cluster-leader-wait | \
      --cluster-election-timeout | \
      --cluster-hold-grace | \
      --cluster-log-size | \
      --cluster-fetch-rate) ;;
    *)
      mapfile -t COMPREPLY < <(compgen -W '
        --config
        --check-config
        --print-config
        --dump
        --check
        --salvage
        --backup
        --drain
        --cluster-bootstrap
        --cluster-leave
        --cluster-recover
        --i-accept-the-loss
        --test-mode
        --no-stdin
        --address-file
        --preload
        -h --help
        -v --version
        -l --listen
        -p --port
        -V
        -f
        -F
        -c
        -n
        -u --user
        --pid-file
        -b --journal-directory
        --journal-sync
        -s --journal-segment-size
        --journal-max-bytes
        --limits-connections
        --limits-handshakes
        --limits-line-bytes
        -z --limits-job-bytes
        --limits-job-memory
        --limits-tubes
        --limits-policies
        --limits-client-watches
        --limits-watches
        --limits-output-bytes
        --limits-output-memory
        --limits-input-memory
        --limits-work-per-turn
        --timeouts-idle
        --timeouts-stall
        --timeouts-handshake
        --timeouts-shutdown
        --drain-exit
        --drain-reserves
        --drain-timeout
        --http-listen
        --http-api
        --http-auth
        --http-role
        --http-hosts
        --http-title
        --http-color
        --http-keep-alive
        --http-max-tubes
        --http-tube-linger
        --http-tls-certificate
        --http-tls-key
        --http-tls-client-ca
        --http-tls-min-version
        --auth-tokens
        --auth-watch
        --tls-watch
        --tcp-keepalive
        --tcp-backlog
        --log-level
        --log-format
        --cluster-name
        --cluster-listen
        --cluster-address
        --cluster-secret-file
        --cluster-tls-certificate
        --cluster-tls-key
        --cluster-tls-ca
        --cluster-admin
        --cluster-clients
        --cluster-leader-wait
        --cluster-election-timeout
        --cluster-hold-grace
        --cluster-log-size
        --cluster-fetch-rate
        --cluster-insecure' -- "$current")
      ;;
  esac
}

complete -F _tubed tubed
