import type { Config } from './config.js';

/** What the supervisor and its workers tell each other over the channel between their processes. */
export type ToWorker =
  /** The first message: what to run. `number` counts from 1. */
  { readonly type: 'start'; readonly config: Config; readonly number: number } | { readonly type: 'stop' };

export type FromWorker =
  | { readonly type: 'listening'; readonly url: string; readonly nodeId: string }
  /** It could not start; its end follows. */
  | { readonly type: 'failed'; readonly message: string };
