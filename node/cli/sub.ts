import type { ServerFrame, TopicRequest } from '../../protocol/frames.js';
import type { Payload } from '../../protocol/payload.js';
import { parsePosition } from '../../protocol/position.js';
import { parseFilter } from '../../protocol/topic.js';
import { parseTopicRequest } from '../../protocol/topic-request.js';
import { UsageError } from './errors.js';
import type { Target } from './http.js';
import type { CliIo } from './io.js';
import { Subscriber } from './subscriber.js';

export interface SubOptions {
  readonly target: Target;
  readonly user?: string;
  /** Stored messages to begin with, of every topic without a position. */
  readonly last?: number;
}

/** Prints what comes on the topics, a JSON text a line, until a signal, a reader that leaves, or a final refusal. */
export async function sub(io: CliIo, topics: readonly string[], options: SubOptions): Promise<void> {
  const requests = readRequests(topics, options.last);
  const stopping = new AbortController();
  const stop = (): void => stopping.abort();
  const forget = io.onStopSignal(stop);
  io.stdout.on('error', stop);

  const subscriber = new Subscriber(
    { target: options.target, requests, ...(options.user === undefined ? {} : { user: options.user }) },
    {
      message: (frame) => print(messageLine(frame)),
      direct: ({ id, data }) =>
        print(directLine(id, data), () => {
          if (id !== undefined) subscriber.ack(id);
        }),
      status: (text) => void io.stderr.write(`${text}\n`),
    },
  );
  /** `printed` is called only when the line has left: what nobody could read is not acknowledged. */
  function print(line: string, printed?: () => void): void {
    const more = io.stdout.write(`${line}\n`, (error) => {
      if (!error) printed?.();
    });
    if (more) return;
    subscriber.pause();
    io.stdout.once('drain', () => subscriber.resume());
  }

  try {
    await subscriber.run(stopping.signal);
  } finally {
    forget();
    io.stdout.off('error', stop);
  }
}

/** Reads the TOPIC arguments; a topic named twice is asked for once, as named last. */
export function readRequests(topics: readonly string[], last?: number): TopicRequest[] {
  const requests = new Map<string, TopicRequest>();
  for (const text of topics) {
    const request = readRequest(text);
    const snapshot = last !== undefined && request.offset === undefined;
    requests.set(request.topic, snapshot ? { ...request, last } : request);
  }
  return [...requests.values()];
}

function readRequest(text: string): TopicRequest {
  const request = parseTopicRequest(text);
  if (!request.ok) throw new UsageError(`not a topic: ${text}: ${request.message}`);
  // A position that cannot be read stays part of the topic.
  const { topic } = request.value;
  const checked = topic.includes('@')
    ? parsePosition(topic.slice(topic.indexOf('@') + 1))
    : parseFilter(topic);
  if (!checked.ok) throw new UsageError(`not a topic: ${text}: ${checked.message}`);
  return request.value;
}

export function messageLine(frame: Extract<ServerFrame, { type: 'msg' }>): string {
  const offset = frame.offset === undefined ? '' : `,"offset":${frame.offset}`;
  return `{"topic":${JSON.stringify(frame.topic)}${offset},"data":${jsonText(frame.data)}}`;
}

/** A message without an id was sent to whoever is connected and is not kept: its id is null. */
export function directLine(id: number | undefined, data: Payload): string {
  return `{"direct":${id ?? 'null'},"data":${jsonText(data)}}`;
}

/**
 * The publisher's own text. Only line breaks go, which JSON has nowhere but between its tokens: a line of output is a
 * message.
 */
function jsonText(data: Payload): string {
  if (data.format !== 'json') throw new Error('a JSON connection brought a payload of another format');
  return data.text.replace(/[\r\n]+/g, '');
}
