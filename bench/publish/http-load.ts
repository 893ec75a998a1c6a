import { HttpLine } from './http-line.js';

export interface HttpLoadSettings {
  /** `http://host:port` of a node that nobody else publishes to. */
  readonly url: string;
  /** Requests that are under way at once, each on a connection of its own. */
  readonly connections: number;
  /** Messages of a request: 1 posts to the topic, more post a batch. */
  readonly batch: number;
  /** Of one namespace; requests go round them. */
  readonly topics: readonly string[];
  /** Of each payload. */
  readonly bytes: number;
  readonly seconds: number;
}

export interface HttpLoadResult {
  readonly published: number;
  readonly seconds: number;
  /** Of this process, seconds. */
  readonly cpuSec: number;
  /** ms from request to answer, ascending. */
  readonly timesMs: readonly number[];
  /** What was off, in words: refusals, and offsets that are not those of a stream that holds each message once. */
  readonly faults: readonly string[];
}

/** Publishes over HTTP as fast as the answers come, and checks from the offsets that each message was stored once. @throws Error when a connection ends */
export async function loadOverHttp(settings: HttpLoadSettings): Promise<HttpLoadResult> {
  const { batch, bytes, connections, seconds, topics, url } = settings;
  const lines = await Promise.all(Array.from({ length: connections }, () => HttpLine.open(url)));
  const data = JSON.stringify('x'.repeat(Math.max(0, bytes - 2)));
  const bodies = topics.map((topic) => batchBody(topic, data, batch));
  const offsets: number[] = [];
  const timesMs: number[] = [];
  const refused: string[] = [];
  let next = 0;
  const startedAt = performance.now();
  const cpuAtStart = process.cpuUsage();
  const until = startedAt + seconds * 1000;
  await Promise.all(
    lines.map(async (line) => {
      while (performance.now() < until) {
        const turn = next++ % topics.length;
        const askedAt = performance.now();
        const { body, status } = await (batch === 1
          ? line.post(`/v1/topics/${topics[turn] ?? ''}/messages`, data)
          : line.post('/v1/publish', bodies[turn] ?? ''));
        timesMs.push(performance.now() - askedAt);
        if (status !== 200) refused.push(`${status} ${body.slice(0, 200)}`);
        else readOffsets(body, offsets);
      }
    }),
  );
  const tookSec = (performance.now() - startedAt) / 1000;
  const { system, user } = process.cpuUsage(cpuAtStart);
  for (const line of lines) line.close();
  return {
    published: offsets.length,
    seconds: tookSec,
    cpuSec: (system + user) / 1e6,
    timesMs: timesMs.sort((a, b) => a - b),
    faults: [
      ...(refused.length === 0 ? [] : [`${refused.length} requests were refused: ${refused[0] ?? ''}`]),
      ...faultsOfOffsets(offsets),
      ...(offsets.length + refused.length * batch === timesMs.length * batch
        ? []
        : [`${timesMs.length * batch} messages were sent, and ${offsets.length} stored`]),
    ],
  };
}

/** What is wrong with the offsets that a single publisher was answered, in any order: they must follow each other without a hole. */
export function faultsOfOffsets(offsets: readonly number[]): string[] {
  const sorted = Float64Array.from(offsets).sort();
  let twice = 0;
  let holes = 0;
  for (let i = 1; i < sorted.length; i++) {
    const step = (sorted[i] ?? 0) - (sorted[i - 1] ?? 0);
    if (step === 0) twice++;
    else holes += step - 1;
  }
  return [
    ...(twice === 0 ? [] : [`${twice} offsets were answered twice`]),
    ...(holes === 0 ? [] : [`${holes} offsets between the first and the last were not answered`]),
  ];
}

function batchBody(topic: string, data: string, count: number): string {
  const message = `{"topic":"${topic}","data":${data}}`;
  return `{"messages":[${Array.from({ length: count }, () => message).join(',')}]}`;
}

/** Without parsing: an answer to a thousand messages would take more of this side than of the node's. */
function readOffsets(body: string, into: number[]): void {
  for (let at = body.indexOf('"offset":'); at >= 0; at = body.indexOf('"offset":', at + 9)) {
    let offset = 0;
    for (let i = at + 9; ; i++) {
      const digit = body.charCodeAt(i) - 48;
      if (digit < 0 || digit > 9) break;
      offset = offset * 10 + digit;
    }
    into.push(offset);
  }
}
