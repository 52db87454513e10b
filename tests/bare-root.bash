# Functions of tests/bare-*.sh: roots of a bare Debian 12 in $work, which they set up, enter and take away. They need root and
# Debian's mirror; without them the test ends with 77 and the reason.
skip() { echo "skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "the root folder of another system needs root"
command -v debootstrap >/dev/null || skip "no debootstrap: apt-get install debootstrap"
work=$(mktemp -d)
clean_up() {
  local folder
  for folder in "$work"/*/proc "$work"/*/sys "$work"/*/dev/shm "$work"/*/dev/pts; do
    if mountpoint -q "$folder"; then umount "$folder"; fi
  done
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT

# make_root NAME: a bare Debian in $work/NAME, with the file systems that a container has.
make_root() {
  debootstrap --variant=minbase bookworm "$work/$1" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$work/log" 2>&1 || {
    tail -n 5 "$work/log"
    skip "debootstrap does not work here"
  }
  mkdir -p "$work/$1/dev/shm" "$work/$1/dev/pts"
  mount --bind /proc "$work/$1/proc" && mount --bind -o ro /sys "$work/$1/sys" &&
    mount -t tmpfs tmpfs "$work/$1/dev/shm" && mount -t devpts devpts "$work/$1/dev/pts" || skip "/proc, /sys or /dev cannot be mounted"
  local file
  for file in /etc/resolv.conf /etc/hosts; do cp -L "$file" "$work/$1/etc/"; done
}

# inside NAME COMMAND...: runs a command in a root, with an environment of its own.
inside() {
  local name=$1
  shift
  chroot "$work/$name" env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$@"
}

# containerfile_run FILE STAGE: the commands of RUN in a stage (from 1) of a Containerfile, as one shell command.
containerfile_run() {
  awk -v stage="$2" '
    /^FROM/ { count++ }
    count == stage && (/^RUN / || more) {
      if (/^RUN / && begun++) printf " && "
      sub(/^RUN /, "")
      more = sub(/\\$/, "")
      printf "%s", $0
    }' "$1"
}
