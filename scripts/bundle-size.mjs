// Prints what the client SDK costs a page, and fails when that is too much or when anything but the project is in it.
import { gzipSync } from 'node:zlib';
import { bundleClient, modulesKeptFor } from './bundle-client.mjs';

/** Of the file that everybody loads, after gzip. */
const entryBytesMax = 12 * 1024;
/** Mini-programs and old web views lack these; the entry must not need them to load. */
const absentThere = ['TextDecoder', 'TextEncoder', '"node:', '`node:'];

const files = await bundleClient();
const faults = [];
for (const { fileName, code, modules } of files) {
  const bytes = gzipSync(code, { level: 9 }).length;
  console.log(`${fileName}  ${code.length} B minified, ${bytes} B gzip, ${modules.length} modules`);
  const foreign = modules.filter((id) => !/^(client|protocol)\//.test(id) && !id.startsWith('\0'));
  if (foreign.length > 0) faults.push(`${fileName} holds foreign code: ${foreign.join(', ')}`);
  if (fileName !== 'topicast.min.js') continue;
  if (bytes > entryBytesMax) faults.push(`${fileName} is above ${entryBytesMax} B`);
  for (const name of absentThere) if (code.includes(name)) faults.push(`${fileName} needs ${name}`);
  if (modules.some((id) => id.includes('msgpack'))) faults.push(`${fileName} holds MessagePack`);
}
if (!files.some(({ fileName }) => fileName === 'topicast.min.js')) faults.push('no topicast.min.js was made');
// Who wants the error class or a storage only must not get the whole client with it.
const kept = await modulesKeptFor(['TopicastError', 'memoryStorage']);
const wanted = ['client/errors.ts', 'client/storage.ts'];
if (kept.sort().join() !== wanted.join()) faults.push(`not tree-shakeable: ${wanted} needs ${kept}`);
for (const fault of faults) console.error(fault);
process.exitCode = faults.length > 0 ? 1 : 0;
