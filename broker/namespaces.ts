/**
 * How the topics of one namespace (the first token of a topic) behave. `historyMax` messages are kept per topic,
 * none longer than `historySec`.
 */
export interface NamespaceSettings {
  /** `live`: at most once, whoever is connected. `durable`: stored, ordered, resumable. */
  readonly delivery: 'live' | 'durable';
  readonly historyMax: number;
  readonly historySec: number;
  /** Live only: send a topic's latest value at most once in this many milliseconds; 0 sends each. */
  readonly conflateMs: number;
  /** Whether `GET /v1/topics/{topic}/subscribers` may list who is there. */
  readonly presence: boolean;
}

/** Namespace settings by name, with the one for names that are not listed. */
export interface Namespaces {
  of(namespace: string): NamespaceSettings;
  /** The names that are listed and durable. */
  readonly durable: readonly string[];
}

export const defaultNamespace: NamespaceSettings = {
  delivery: 'live',
  historyMax: 100,
  historySec: 3600,
  conflateMs: 0,
  presence: false,
};

/** What is set out of the box: coupons and items are kept for a week, 1,000 messages a topic. */
export const shippedNamespaces: Readonly<Record<string, NamespaceSettings>> = {
  coupon: { ...defaultNamespace, delivery: 'durable', historyMax: 1000, historySec: 7 * 86_400 },
  item: { ...defaultNamespace, delivery: 'durable', historyMax: 1000, historySec: 7 * 86_400 },
};

export function createNamespaces(
  settings: Readonly<Record<string, NamespaceSettings>> = shippedNamespaces,
): Namespaces {
  const byName = new Map(Object.entries(settings));
  return {
    of: (namespace) => byName.get(namespace) ?? defaultNamespace,
    durable: [...byName].filter(([, s]) => s.delivery === 'durable').map(([name]) => name),
  };
}
