import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { casesOf } from '../support/effort.js';

const schedules = 400;
const seed = 20_240_607;
const nodeFolder = resolve(dirname(fileURLToPath(import.meta.url)), '../../node');

interface Mutation {
  readonly name: string;
  readonly file: 'attachment' | 'feed';
  /** Each place, of which the file has exactly one, and what stands there instead. */
  readonly changes: readonly (readonly [from: string, to: string])[];
}

/** Replaying only what the feed has accepted, and waiting for a feed that is behind, both keep a message from coming twice. */
const cap = ['const upTo = Math.min(page.upTo, feed.last);', 'const upTo = page.upTo;'] as const;
const wait = ['await feed.reached(Math.max(...this.#cursors()));', ''] as const;

const mutations: readonly Mutation[] = [
  {
    name: 'replays what the feed has not accepted yet',
    file: 'attachment',
    changes: [cap, wait],
  },
  {
    name: 'goes live on a feed that is behind the session',
    file: 'attachment',
    changes: [wait],
  },
  {
    name: 'goes live with messages held for those who were there before',
    file: 'attachment',
    changes: [['        feed.flush();\n', '']],
  },
  {
    name: 'stays on the channel after the socket dropped something',
    file: 'attachment',
    changes: [["if (this.#state === 'live') this.#host.outlet.leave(this.channel);", '']],
  },
  {
    name: 'does not look at what came before a message',
    file: 'feed',
    changes: [['if (message.prev > this.#last) {', 'if (message.prev < 0) {']],
  },
];

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'topicast-mutation-'));
  vi.resetModules();
});

afterEach(async () => {
  vi.doUnmock('../../node/attachment.js');
  vi.doUnmock('../../node/feed.js');
  await rm(folder, { recursive: true });
});

/** A copy of a source file with some places changed, that imports what the original does. */
async function mutate({ changes, file }: Mutation): Promise<string> {
  let source = await readFile(join(nodeFolder, `${file}.ts`), 'utf8');
  for (const [from, to] of changes) {
    expect(source.split(from).length - 1, `${file}.ts has to contain "${from}" once`).toBe(1);
    source = source.replace(from, to);
  }
  const mutated = source.replace(
    /from '(\.{1,2}\/[^']+)\.js'/g,
    (_, path: string) => `from '${resolve(nodeFolder, path)}.ts'`,
  );
  const path = join(folder, `${file}.ts`);
  await writeFile(path, mutated);
  return path;
}

it.each(mutations)('the model notices a node that $name', async (mutation) => {
  const path = await mutate(mutation);
  vi.doMock(`../../node/${mutation.file}.js`, () => import(path));
  const { runSchedules } = await import('../support/model/run.js');
  // The first that is found says it.
  const found = await runSchedules(seed, schedules, 1);
  if (process.env['TOPICAST_TEST_VERBOSE'] !== undefined) process.stdout.write(`${found.summary}\n`);
  expect(found.failed).toBeGreaterThan(0);
});

it('the model finds nothing in the same schedules without a mutation', async () => {
  const { runSchedules } = await import('../support/model/run.js');
  const found = await runSchedules(seed, casesOf(schedules));
  expect(found.failures, found.summary).toEqual([]);
});
