# Functions for .rpm packages, sourced after common.bash. rpm gets a database of its own, and does not
# create one for the caller.

# repack_rpm PACKAGE RELEASE DIRECTORY: builds the files of a package again, without a compiler, as a
# newer release, with the spec of the tree. The new package is in DIRECTORY.
repack_rpm() {
  local package=$1 release=$2 target=$3 work
  work=$target/repack-$release
  mkdir -p "$work/files" "$work/SOURCES"
  (cd "$work/files" && rpm2cpio "$package" | cpio --quiet -idm)
  sed -e "s/^Release: .*/Release: $release%{?dist}/" -e "/^%prep/,/^%pre\$/{/^%pre\$/!d}" \
    -e "s|^%license LICENSE|%license %{_datadir}/licenses/%{name}-%{version}/*|" "$top/rpm/tubed.spec" |
    awk '/^%pre$/ { print "%install\ncp -a %{files_from}/. %{buildroot}\n" } { print }' >"$work/tubed.spec"
  cp "$top/packaging/sysusers/tubed.conf" "$work/SOURCES/tubed.sysusers"
  rpmbuild --nodeps --dbpath "$work/database" --load="$top/rpm/macros.fedora" --load="$here/macros.quick" \
    --define "_topdir $work" --define "_build_id_links none" --define "files_from $work/files" \
    --define "debug_package %{nil}" -bb "$work/tubed.spec" >"$work/log" 2>&1 ||
    fail "rpmbuild $work/tubed.spec: $(tail -n 20 "$work/log")"
  mv "$work"/RPMS/*/tubed-[0-9]*.rpm "$target"
  rm -r "$work"
}

# make_stub PACKAGE ROOT DIRECTORY: builds the package of stub.spec in DIRECTORY. It provides what the
# libraries of ROOT provide, of those that PACKAGE requires.
make_stub() {
  local package=$1 root=$2 target=$3 work=$3/stub library
  mkdir -p "$work/SOURCES"
  rpm --dbpath "$work/database" --nosignature -qp --requires "$package" | sed -n 's/^\(.*\.so[.0-9]*\)(.*/\1/p' |
    sort -u | while IFS= read -r library; do
      find "$root/usr/lib" -name "$library" -print -quit
    done | /usr/lib/rpm/elfdeps --provides | sort -u | sed 's/^/Provides: /' >"$work/SOURCES/provides.inc"
  cp "$here/update-helper" "$work/SOURCES"
  rpmbuild --nodeps --dbpath "$work/database" --load="$top/rpm/macros.fedora" --define "_topdir $work" \
    -bb "$here/stub.spec" >"$work/log" 2>&1 || fail "rpmbuild stub.spec: $(tail -n 20 "$work/log")"
  mv "$work"/RPMS/noarch/stub-base-*.rpm "$target"
  rm -r "$work"
}
