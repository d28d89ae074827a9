# Removes from the trees that are named what is of no use once they run: sources, types, maps, code for other databases and systems.
set -eu
for tree; do
  (
    cd "$tree"
    for package in . node_modules/.pnpm/@spillway+*/node_modules/@spillway/*; do
      # Links lead to packages that are found by themselves.
      [ -L "$package" ] || rm -rf "$package"/src "$package"/test "$package"/client "$package"/queue "$package"/common "$package"/rolldown.config.js "$package"/recipes "$package"/examples "$package"/dist/package "$package"/engine "$package"/.turbo "$package"/tsconfig*.json "$package"/README.md "$package"/turbo.json
    done
    find . -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.tsbuildinfo' \) -delete
    # What packages carry and nobody loads: tests, documentation, examples, benchmarks, builds for bundlers.
    for package in node_modules/.pnpm/*/node_modules/* node_modules/.pnpm/*/node_modules/@*/*; do
      for unused in test tests docs examples benchmark benchmarks; do
        [ -L "$package" ] || rm -rf "${package:?}/$unused"
      done
    done
    rm -rf node_modules/.pnpm/@opentelemetry+*/node_modules/@opentelemetry/*/build/esm node_modules/.pnpm/@opentelemetry+*/node_modules/@opentelemetry/*/build/esnext
    find . -type f -name 'query_compiler_*' ! -name '*_small_bg.postgresql*' -delete
    find . -type f -name '*.musl.node' -delete
    find . -type d -path '*/prebuilds/*' -prune ! -name 'linux-*' -exec rm -r {} +
    rm -rf node_modules/.pnpm/argon2@*/node_modules/argon2/argon2 node_modules/.pnpm/node-addon-api@* node_modules/.pnpm/@types+*
    # What pnpm notes for itself, with the time and paths of the build.
    rm -f node_modules/.modules.yaml node_modules/.pnpm/lock.yaml
    # Links to removed files.
    find . -xtype l -delete
  )
done
