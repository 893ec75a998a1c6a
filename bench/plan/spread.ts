/** Topics of (nearly) the same popularity. */
export interface TopicGroup {
  readonly count: number;
  /** The share of the users who subscribe to each of them. */
  readonly inclusion: number;
  /** The share of all messages that goes to each of them; over all topics the sum is 1. */
  readonly publishShare: number;
}

export interface SpreadOptions {
  readonly topics: number;
  readonly topicsPerUser: number;
  /** Exponents of Zipf's law: topic i is chosen 1 / i^exponent as often as topic 1. */
  readonly zipf: number;
  readonly publishZipf: number;
}

/** So many of the most popular topics are looked at one by one, the others in groups whose first and last rank differ by this factor. */
const singles = 1024;
const groupFactor = 1.02;

/**
 * Who subscribes to what. Each user draws topics by Zipf's law until it has enough different ones. How often topic i is among them is
 * 1 - exp(-p_i t), with the t for which the sum over all topics is the number that a user has: draws that come as a Poisson process, stopped
 * at the time at which so many different ones are expected.
 */
export function topicGroups(options: SpreadOptions): readonly TopicGroup[] {
  const ranges = rangesOf(options.topics);
  const drawn = shares(ranges, options.zipf);
  const published = shares(ranges, options.publishZipf);
  const included = inclusionOf(ranges, drawn, Math.min(options.topicsPerUser, options.topics));
  return ranges.map(({ count }, i) => ({
    count,
    inclusion: included[i] ?? 0,
    publishShare: published[i] ?? 0,
  }));
}

/** Of each message the share of all users that subscribe to its topic, on average. */
export function reachOf(groups: readonly TopicGroup[]): number {
  return total(groups, (group) => group.publishShare * group.inclusion);
}

/** How likely a node with so many sessions has a subscriber. */
export function hosting(group: TopicGroup, sessions: number): number {
  return group.inclusion >= 1 ? 1 : -Math.expm1(sessions * Math.log1p(-group.inclusion));
}

/** The number of topics that have a subscriber on a node of so many sessions. */
export function hostedTopics(groups: readonly TopicGroup[], sessions: number): number {
  return total(groups, (group) => hosting(group, sessions));
}

/** The share of all messages whose topic has a subscriber on a node of so many sessions. */
export function hostedShare(groups: readonly TopicGroup[], sessions: number): number {
  return total(groups, (group) => group.publishShare * hosting(group, sessions));
}

/** The sum of something over all topics. */
export function total(groups: readonly TopicGroup[], each: (group: TopicGroup) => number): number {
  let sum = 0;
  for (const group of groups) sum += group.count * each(group);
  return sum;
}

interface Range {
  /** Rank of the first one, from 1. */
  readonly first: number;
  readonly count: number;
}

function rangesOf(topics: number): readonly Range[] {
  const ranges: Range[] = [];
  for (let first = 1; first <= topics;) {
    const next = first <= singles ? first + 1 : Math.ceil(first * groupFactor);
    const count = Math.min(next, topics + 1) - first;
    ranges.push({ first, count });
    first += count;
  }
  return ranges;
}

/** Of each topic of each range, so that all topics together have 1. */
function shares(ranges: readonly Range[], exponent: number): readonly number[] {
  const weights = ranges.map(({ count, first }) =>
    count === 1 ? first ** -exponent : integral(first - 0.5, first + count - 0.5, exponent) / count,
  );
  const all = ranges.reduce((sum, { count }, i) => sum + count * (weights[i] ?? 0), 0);
  return weights.map((weight) => weight / all);
}

/** Of x^-exponent. Over half a rank below the first to half a rank above the last it is the sum over the ranks, within 1e-6 from 1,024 on. */
function integral(from: number, to: number, exponent: number): number {
  if (Math.abs(exponent - 1) < 1e-9) return Math.log(to / from);
  return (to ** (1 - exponent) - from ** (1 - exponent)) / (1 - exponent);
}

function inclusionOf(ranges: readonly Range[], drawn: readonly number[], wanted: number): readonly number[] {
  const topics = ranges.reduce((sum, { count }) => sum + count, 0);
  if (wanted >= topics) return ranges.map(() => 1);
  const at = (time: number): number[] => drawn.map((share) => -Math.expm1(-share * time));
  const sumAt = (time: number): number =>
    at(time).reduce((sum, each, i) => sum + each * (ranges[i]?.count ?? 0), 0);
  let [low, high] = [0, wanted];
  while (sumAt(high) < wanted) high *= 2;
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (sumAt(middle) < wanted) low = middle;
    else high = middle;
  }
  return at(high);
}
