import type { HistoryPage, StoredMessage } from '../broker/bus.js';

export type PageItem =
  | { readonly kind: 'message'; readonly message: StoredMessage }
  /** Up to `to` something may have been dropped for good. */
  | { readonly kind: 'gap'; readonly to: number };

/**
 * What a page of history holds after `after` and up to `to`, in order, with a gap wherever something of it may have been dropped. The
 * messages of one topic are dropped oldest first, so only its front can be missing; among several topics each has a front of its
 * own, so of an incomplete page every place between two messages is suspect.
 */
export function pageItems(page: HistoryPage, after: number, to: number, isOneTopic: boolean): PageItem[] {
  const items: PageItem[] = [];
  let last = after;
  let suspect = !page.complete;
  const suspectUpTo = (offset: number): void => {
    if (suspect && offset > last) items.push({ kind: 'gap', to: offset });
  };
  for (const message of page.messages) {
    if (message.offset <= after || message.offset > to) continue;
    suspectUpTo(message.offset - 1);
    items.push({ kind: 'message', message });
    last = message.offset;
    suspect &&= !isOneTopic;
  }
  suspectUpTo(Math.min(page.upTo, to));
  return items;
}
