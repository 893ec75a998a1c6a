import { isUserId, parseTopic } from '../../protocol/topic.js';
import { UsageError } from './errors.js';
import { call, type Target } from './http.js';
import { writeLine, type CliIo } from './io.js';

export interface PubOptions {
  readonly target: Target;
  /** De-duplicates for two minutes. */
  readonly id?: string;
}

export interface PushOptions {
  readonly target: Target;
  /** False: only to the sessions that are there now. */
  readonly queue: boolean;
  readonly ttlSec?: number;
}

/** Publishes one message and prints the server's answer. `json` undefined or `-`: read from standard input. */
export async function pub(
  io: CliIo,
  topic: string,
  json: string | undefined,
  options: PubOptions,
): Promise<void> {
  const parsed = parseTopic(topic);
  if (!parsed.ok) throw new UsageError(`not a topic: ${topic}: ${parsed.message}`);
  const answer = await call(options.target, {
    method: 'POST',
    path: `v1/topics/${encodeURIComponent(parsed.value)}/messages`,
    ...(options.id === undefined ? {} : { headers: { 'idempotency-key': options.id } }),
    body: await readDocument(io, json),
  });
  await writeLine(io.stdout, answer.trim());
}

/** Pushes one direct message and prints the server's answer. */
export async function push(
  io: CliIo,
  user: string,
  json: string | undefined,
  options: PushOptions,
): Promise<void> {
  if (!isUserId(user)) throw new UsageError(`not a user id: ${user}: 1 to 128 of [A-Za-z0-9_.:=@-]`);
  const answer = await call(options.target, {
    method: 'POST',
    path: `v1/users/${encodeURIComponent(user)}/messages`,
    query: {
      queue: options.queue ? undefined : 'false',
      ttlSec: options.ttlSec?.toString(),
    },
    body: await readDocument(io, json),
  });
  await writeLine(io.stdout, answer.trim());
}

/** One JSON document, from the argument or from standard input, as it was written: it is sent untouched. */
async function readDocument(io: CliIo, argument: string | undefined): Promise<string> {
  const fromInput = argument === undefined || argument === '-';
  const text = fromInput ? await readAll(io) : argument;
  if (text.trim() === '') throw new UsageError('a JSON document is missing');
  try {
    JSON.parse(text);
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(`not one JSON document: ${detail}`, { cause });
  }
  return text;
}

async function readAll(io: CliIo): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of io.stdin as AsyncIterable<Buffer | string>) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}
