import type { OutgoingMessage, PublishOutcome, TopicBus } from './bus.js';

/** `TopicBus.publishAll` by way of `publish`. */
export function publishEach(
  bus: Pick<TopicBus, 'publish'>,
  messages: readonly OutgoingMessage[],
): Promise<readonly PublishOutcome[]> {
  return Promise.all(
    messages.map((message) =>
      bus
        .publish(message)
        .catch((error: unknown) => (error instanceof Error ? error : new Error(String(error)))),
    ),
  );
}
