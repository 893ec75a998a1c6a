/** Subjects and asset names of one tenant. The prefix is a single token, so tenants never see each other. */
export interface Subjects {
  readonly live: (filter: string) => string;
  /** Durable messages go in here, where the stream captures them … */
  readonly in: (filter: string) => string;
  /** … and come out here, stored, with their sequence. Only the stream may publish there. */
  readonly out: (filter: string) => string;
  /** The topic in a subject of one of the three kinds. */
  readonly topicOf: (subject: string) => string;
  readonly stream: (namespace: string) => string;
  readonly epochsBucket: string;
  readonly prefix: string;
}

export function createSubjects(prefix: string): Subjects {
  return {
    prefix,
    live: (filter) => `${prefix}.live.${filter}`,
    in: (filter) => `${prefix}.in.${filter}`,
    out: (filter) => `${prefix}.out.${filter}`,
    topicOf: (subject) => subject.slice(subject.indexOf('.', prefix.length + 1) + 1),
    stream: (namespace) => `${prefix}_${namespace}`,
    epochsBucket: `${prefix}_epochs`,
  };
}
