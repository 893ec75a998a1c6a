import type { Encoded } from '../protocol/codec.js';
import type { TemplatedApp } from './uws.js';

/**
 * Publishes to the topics of µWS. It reports a socket that does not take more while it still walks the subscribers of the topic, and
 * a subscriber that leaves at that moment corrupts the walk: the process ends with SIGSEGV. So what has to follow from a drop is done when the
 * publish has returned; that is before anything else can be published, so nothing reaches the socket in between.
 */
export class TopicPublisher {
  readonly #app: Pick<TemplatedApp, 'publish'>;
  #publishing = false;
  #dropped: (() => void)[] = [];

  constructor(app: Pick<TemplatedApp, 'publish'>) {
    this.#app = app;
  }

  publish(topic: string, frame: Encoded, isBinary: boolean): void {
    this.#publishing = true;
    try {
      this.#app.publish(topic, frame, isBinary);
    } finally {
      this.#publishing = false;
    }
    if (this.#dropped.length === 0) return;
    const dropped = this.#dropped;
    this.#dropped = [];
    for (const act of dropped) act();
  }

  /** For the `dropped` handler: acts at once, or as soon as the publish under way has returned. */
  afterDrop(act: () => void): void {
    if (this.#publishing) this.#dropped.push(act);
    else act();
  }
}
