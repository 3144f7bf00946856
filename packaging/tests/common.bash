# Sourced by the scripts in this folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The tree that is packaged; packaging/tests/run makes one copy for all its steps.
top=${TUBED_TREE:-$(cd "$here/../.." && pwd)}
jobs=${TUBED_JOBS:-$(nproc)}
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1

fail() {
  printf '%s: FAILED: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# skip REASON: the test cannot run on this machine. packaging/tests/run counts it.
skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

# use_compiler_cache: CMake compiles through ccache if it is installed. The cache's directory is
# set, because debhelper gives a build its own home directory.
use_compiler_cache() {
  if command -v ccache >/dev/null; then
    CCACHE_DIR=$(ccache --get-config cache_dir)
    export CCACHE_DIR CCACHE_BASEDIR=$1 CCACHE_NOHASHDIR=1 CMAKE_CXX_COMPILER_LAUNCHER=ccache
    export CMAKE_C_COMPILER_LAUNCHER=ccache
  fi
}

# Whether this machine has the libraft of cluster mode; without it the packages are built without.
has_raft() {
  pkg-config --exists 'raft >= 0.22.1' 'raft < 0.23'
}

need_root() {
  if ((EUID != 0)); then skip "$1 needs root"; fi
}

need_command() {
  local command
  for command in "$@"; do
    command -v "$command" >/dev/null || fail "$command is missing: tools/install-deps packages"
  done
}

# copy_tree DIRECTORY: copies the files that a commit of the working tree would have.
copy_tree() {
  mkdir -p "$1"
  if git -C "$top" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    (cd "$top" && git ls-files -z --cached --others --exclude-standard) |
      (cd "$top" && while IFS= read -r -d '' file; do
        if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
      done) | sort -zu | tar -C "$top" --null -T - -c | tar -x --no-same-owner -C "$1"
  else
    tar -C "$top" --exclude=./build -c . | tar -x --no-same-owner -C "$1"
  fi
}

# same_listing RECORDED FOUND: fails if the files of a package differ from the recorded list.
same_listing() {
  if ! diff -u --label "$(basename "$1") as recorded" --label "as built" "$1" "$2"; then
    fail "not the files that are recorded; if they are meant: cp $2 packaging/tests/$(basename "$1")"
  fi
}

# bare_root ROOT: makes a Debian 12 that has only what debootstrap calls minbase. It has no lists of packages, like a
# fresh machine, and no systemd. The mounts end with this process, which is in a namespace of its own.
bare_root() {
  local root=$1
  mmdebstrap --quiet --variant=minbase bookworm "$root" >&2
  rm -rf "$root"/var/lib/apt/lists/*
  # How this machine reaches its mirror.
  cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
  apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/90-of-the-machine"
  # The answer to each question of apt-get.
  echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/90-yes"
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
}

# remove_bare_root ROOT
remove_bare_root() {
  umount --recursive --lazy "$1/proc" "$1/dev" 2>/dev/null || true
  rm -rf --one-file-system "$1"
}

# inside ROOT COMMAND: replaces this shell.
inside() {
  exec chroot "$1" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    LANG=C.UTF-8 DEB_BUILD_OPTIONS="parallel=$jobs" bash -c "$2"
}

# make_key DIRECTORY NAME: makes the key of NAME@example.org, whose GNUPGHOME is DIRECTORY/NAME.gpg.
make_key() {
  mkdir -m 700 "$1/$2.gpg"
  GNUPGHOME=$1/$2.gpg gpg --quiet --batch --passphrase '' --quick-generate-key "$2 <$2@example.org>" ed25519 sign never
}

# end_agents DIRECTORY: ends the agents of gpg that use the keys that make_key made there.
end_agents() {
  local keys
  for keys in "$1"/*.gpg; do
    if [[ -d $keys ]]; then GNUPGHOME=$keys gpgconf --kill all || true; fi
  done
}
