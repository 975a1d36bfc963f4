# Sourced: builds everything for release, linked statically where that is how it is released, and sets
# $built to where it lies and $pinned to what keeps a run on one core.
built=target/release
target=''
if [ "$(uname -sm)" = "Linux x86_64" ]; then
    target=x86_64-unknown-linux-gnu
    built=target/$target/release
    RUSTFLAGS="${RUSTFLAGS-} -C target-feature=+crt-static"
    export RUSTFLAGS
fi
cargo build --quiet --locked --release ${target:+--target "$target"} --bin longhaul --bin longhaul-statusline --bin longhaul-hook --bin longhaul-watch \
    --example empty --example bench --example measure-transcript
built=$PWD/$built
pinned=''
if command -v taskset >/dev/null; then pinned="taskset -c $(($(getconf _NPROCESSORS_ONLN) - 1))"; fi
