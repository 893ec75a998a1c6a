import { nowUs, payloadText } from '../fleet/marker.js';
import { HttpLine } from './http-line.js';

export interface PushLoadSettings {
  /** `http://host:port` of the node that is asked. */
  readonly url: string;
  /** Requests that are under way at once, each on a connection of its own. */
  readonly connections: number;
  /** They are pushed to in turn. */
  readonly users: readonly string[];
  /** Of each payload. */
  readonly bytes: number;
  readonly seconds: number;
}

export interface PushLoadResult {
  /** Pushes that were handed to a session. */
  readonly sent: number;
  readonly seconds: number;
  /** Of this process, seconds. */
  readonly cpuSec: number;
  /** What was off, in words. */
  readonly faults: readonly string[];
}

/** Pushes to one user each, queued until acknowledged, as fast as the answers come. @throws Error when a connection ends */
export async function loadPushes(settings: PushLoadSettings): Promise<PushLoadResult> {
  const { bytes, connections, seconds, url, users } = settings;
  const lines = await Promise.all(Array.from({ length: connections }, () => HttpLine.open(url)));
  const refused: string[] = [];
  let [next, sent] = [0, 0];
  const startedAt = performance.now();
  const cpuAtStart = process.cpuUsage();
  const until = startedAt + seconds * 1000;
  await Promise.all(
    lines.map(async (line) => {
      while (performance.now() < until) {
        const number = next++;
        const user = users[number % users.length] ?? '';
        const body = payloadText({ dueUs: nowUs(), number }, bytes);
        const answer = await line.post(`/v1/users/${user}/messages`, body);
        if (wasSent(answer.status, answer.body)) sent++;
        else refused.push(`${answer.status} ${answer.body.slice(0, 200)}`);
      }
    }),
  );
  const tookSec = (performance.now() - startedAt) / 1000;
  const { system, user } = process.cpuUsage(cpuAtStart);
  for (const line of lines) line.close();
  return {
    sent,
    seconds: tookSec,
    cpuSec: (system + user) / 1e6,
    faults: refused.length === 0 ? [] : [`${refused.length} pushes reached no session: ${refused[0] ?? ''}`],
  };
}

/** Whether the answer to a push says that it went to a session. */
export function wasSent(status: number, body: string): boolean {
  return status === 200 && body.includes('"status":"sent"');
}
