import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { FleetReport, FleetSettings } from './fleet.js';

export interface Fleet {
  readonly pid: number;
  readonly probe: boolean;
  state(): Promise<Extract<FleetReport, { kind: 'state' }>>;
  stop(): void;
}

const readyMsMax = 60_000;

/** Starts a process of client sockets and waits until all of them are subscribed. @throws Error when one cannot be, or none is within a minute */
export async function startFleet(settings: FleetSettings): Promise<Fleet> {
  const child = fork(fileURLToPath(new URL('fleet.js', import.meta.url)), [JSON.stringify(settings)]);
  let waiting: ((report: FleetReport) => void) | undefined;
  let failed: ((error: Error) => void) | undefined;
  let failure: Error | undefined;
  const fail = (reason: string): void => {
    failure ??= new Error(`a process of client sockets failed: ${reason}`);
    failed?.(failure);
  };
  child.on('message', (report: FleetReport) => {
    if (report.kind === 'failed') fail(report.reason);
    else waiting?.(report);
  });
  child.once('error', (error) => fail(error.message));
  child.once('exit', (code) => fail(`ended with exit code ${code}`));

  const next = <K extends FleetReport['kind']>(kind: K): Promise<Extract<FleetReport, { kind: K }>> =>
    new Promise((resolve, reject) => {
      if (failure !== undefined) return reject(failure);
      const timer = setTimeout(() => fail(`no answer for ${readyMsMax / 1000} s`), readyMsMax);
      failed = (error) => {
        clearTimeout(timer);
        reject(error);
      };
      waiting = (report) => {
        if (report.kind !== kind) return;
        clearTimeout(timer);
        resolve(report as Extract<FleetReport, { kind: K }>);
      };
    });
  try {
    await next('ready');
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return {
    pid: child.pid ?? 0,
    probe: settings.probe,
    state: () => {
      const answer = next('state');
      child.send('state');
      return answer;
    },
    stop: () => void child.kill('SIGKILL'),
  };
}
