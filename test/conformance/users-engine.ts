import type { DirectQueue } from '../../broker/direct-queue.js';
import type { SessionStore } from '../../broker/sessions.js';

/** An engine of both user stores under test. */
export interface UsersEngine {
  /** Makes a pair over one empty table of users. The suite starts the sessions. */
  make(options: { readonly queueMax: number }): Promise<UsersFixture>;
  /**
   * The clock that the stores go by, if a test can set it. Without one, messages with the shortest time to live are waited for in
   * real time, and the expiry of sessions (ten minutes) is not a case of the suite.
   */
  readonly clock?: { advance(ms: number): void };
}

export interface UsersFixture {
  readonly sessions: SessionStore;
  readonly queue: DirectQueue;
  dispose(): Promise<void>;
}
