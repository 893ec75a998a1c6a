// Bundles the client SDK for pages without a build of their own: topicast.min.js, and topicast-msgpack.min.js, which the
// first one loads when MessagePack is asked for.
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The files of the bundle, not written anywhere: name, code, and the modules in it, as paths. */
export async function bundleClient() {
  const result = await build({
    root,
    configFile: false,
    logLevel: 'error',
    build: {
      write: false,
      minify: true,
      target: 'es2022',
      modulePreload: false,
      lib: { entry: { topicast: `${root}client/mod.ts` }, formats: ['es'] },
      rolldownOptions: {
        // Shared code goes into the entry, so that JSON needs one file.
        preserveEntrySignatures: 'allow-extension',
        treeshake: { moduleSideEffects: false },
        output: {
          minify: true,
          entryFileNames: '[name].min.js',
          chunkFileNames: 'topicast-[name].min.js',
        },
      },
    },
  });
  const { output } = Array.isArray(result) ? result[0] : result;
  return output.map(({ fileName, code, moduleIds }) => ({
    fileName,
    code,
    modules: moduleIds.map((id) => id.replace(root, '')),
  }));
}

/** The modules that a page's own bundler keeps when the page imports only these names of the SDK. */
export async function modulesKeptFor(names) {
  // There is no such file: the plugin says what is in it.
  const entry = `${root}page.js`;
  const result = await build({
    root,
    configFile: false,
    logLevel: 'error',
    plugins: [
      {
        name: 'page',
        enforce: 'pre',
        resolveId: (id) => (id === entry ? id : undefined),
        load: (id) =>
          id === entry ? `export { ${names.join(', ')} } from '${root}client/mod.ts';` : undefined,
      },
    ],
    build: { write: false, lib: { entry, formats: ['es'], fileName: 'page' } },
  });
  const { output } = Array.isArray(result) ? result[0] : result;
  const kept = output.flatMap(({ modules }) =>
    Object.entries(modules).filter(([, { renderedLength }]) => renderedLength > 0),
  );
  return kept.map(([id]) => id.replace(root, ''));
}
