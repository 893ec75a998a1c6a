// The boundaries of the source tree. `npm run check:imports` fails on a breach, type-only imports included.
const projectFolders = ['protocol', 'broker', 'node', 'client', 'bench', 'test', 'scripts'];

/** A rule that lets files of `folder` import from these folders of the project only (packages are not meant). */
function onlyFrom(folder, allowedFolders, comment) {
  const forbidden = projectFolders.filter((name) => !allowedFolders.includes(name));
  return {
    name: `${folder}-imports`,
    comment,
    severity: 'error',
    from: { path: `^${folder}/` },
    to: { path: `^(${forbidden.join('|')})/` },
  };
}

/** A rule that keeps a package to one folder (and the tests), but for single files that have a reason of their own. */
function packageOnlyIn(name, folder, comment, exceptFiles = []) {
  const others = exceptFiles.map((file) => `|^${file.replaceAll('.', '\\.')}$`).join('');
  return {
    name: `${name}-only-in-${folder}`,
    comment,
    severity: 'error',
    from: { pathNot: `^(${folder}|test)/${others}` },
    to: { path: `(^|node_modules/)${name}(/|$)` },
  };
}

export default {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    onlyFrom('protocol', ['protocol'], 'The protocol stands alone, so that any client can be built on it.'),
    onlyFrom('client', ['client', 'protocol'], 'The SDK is shipped to browsers without the server.'),
    onlyFrom('bench', ['bench', 'protocol'], 'The bench is a user of the wire, not of the server code.'),
    onlyFrom('broker', ['broker', 'protocol'], 'Engines speak through handlers and never import their user.'),
    {
      name: 'nothing-imports-tests',
      severity: 'error',
      from: { pathNot: '^test/' },
      to: { path: '^test/' },
    },
    packageOnlyIn('uWebSockets\\.js', 'node', 'Sockets belong to the edge process.', [
      // The floor that the node is measured against is a µWebSockets process with nothing else in it.
      'bench/floor/bare-uws.ts',
    ]),
    packageOnlyIn('nats', 'broker', 'Drivers stay behind the broker interfaces.'),
    packageOnlyIn('ioredis', 'broker', 'Drivers stay behind the broker interfaces.'),
    {
      name: 'not-resolvable',
      comment: 'An import that leads nowhere would slip past every other rule.',
      severity: 'error',
      from: {},
      // The console loads the client's bundle, which the build makes and the node serves beside it.
      to: { couldNotResolve: true, pathNot: '^\\./topicast\\.min\\.js$' },
    },
    {
      name: 'no-dev-packages-in-product',
      comment: 'What is shipped must run after an install without development packages.',
      severity: 'error',
      from: { path: '^(protocol|broker|node|client|bench)/' },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: '^node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
    },
  },
};
