import { cpuSecondsOf } from '../fleet/usage.js';
import { clientDoubt, stateFaults } from './delivery.js';
import { profileFlags, profileOption, whole } from './options.js';
import { defineScenario } from './scenario.js';
import { poolGroups, poolOptions, secretOf, serversOf } from './sessions.js';
import { untilQuiet } from './waiting.js';

const options = {
  sockets: whole('handshakes that are counted', 10_000, 100, 19_500),
  rate: whole('handshakes a second; more than the node can take shows how many it can', 20_000, 1, 1_000_000),
  atOnce: whole('handshakes under way at once', 200, 1, 5000),
  topics: whole('that each client declares', 2, 0, 50),
  ...poolOptions,
  profile: profileOption,
  rounds: whole('runs; the first warms up and is not counted', 4, 2, 100),
};

/** Handshakes with a token (HS256), registration and `welcome`, admission open. */
export const connect = defineScenario({
  name: 'connect',
  summary: 'How many clients a node lets in a second, and what one costs it and Redis.',
  options,
  async run(context, values) {
    const { atOnce, codec, engine, pool, profile, rate, rounds, sockets, topics } = values;
    const servers = await serversOf(context, engine);
    const node = await context.startNode({
      ...(servers === undefined ? {} : { servers }),
      env: { TOPICAST_JWT_SECRET: secretOf(), TOPICAST_CONNECT_RATE: '1000000' },
      flags: profileFlags(profile),
    });
    const redisPids = (servers?.redis?.nodes ?? []).map((server) => server.process.pid);
    const pids = [node.pid, ...redisPids];
    const fleet = await context.startFleet({
      urls: [node.url],
      sockets,
      groups: poolGroups('connect', pool, topics),
      codec,
      users: { prefix: 'connect', secret: secretOf() },
      check: 'none',
    });
    const [rows, doubts, faults]: [Measured[], string[], string[]] = [[], [], []];
    for (let round = 0; round < rounds; round++) {
      await fleet.begin();
      const before = pids.map(cpuSecondsOf);
      await context.openFleet(fleet, { perSec: rate, atOnce });
      const { cpuShareMax, handshakes, seconds, state } = await fleet.measured();
      const [nodeSec = 0, ...redisSec] = pids.map((pid, i) => cpuSecondsOf(pid) - (before[i] ?? 0));
      faults.push(...stateFaults(state));
      await fleet.close();
      // What ending these sessions costs is not a handshake's of the next round.
      await untilQuiet(pids, context.signal);
      if (round === 0) continue;
      const doubt = clientDoubt(`round ${round}`, cpuShareMax);
      if (doubt !== undefined) doubts.push(doubt);
      const redis = redisSec.reduce((sum, sec) => sum + sec, 0);
      rows.push({
        labels: { engine, codec, topics, round },
        figures: {
          sockets,
          handshakesPerSec: sockets / seconds,
          cpuUsPerHandshake: (nodeSec * 1e6) / sockets,
          ...(redisPids.length === 0 ? {} : { redisCpuUsPerConnect: (redis * 1e6) / sockets }),
          p50Ms: handshakes.ms(0.5),
          p99Ms: handshakes.ms(0.99),
          serverCpuShare: nodeSec / seconds,
          clientCpuShare: cpuShareMax,
        },
      });
    }
    return { rows: doubts.length === 0 ? rows : [], faults, doubts };
  },
});

interface Measured {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly figures: Readonly<Record<string, number>>;
}
