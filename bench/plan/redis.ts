import { PlanImpossible, type PlanModel } from './nodes.js';

export interface RedisPlan {
  /** Of the data, once. */
  readonly userBytes: number;
  readonly queuedBytes: number;
  readonly queuedPushes: number;
  readonly masters: number;
  readonly replicas: number;
  /** Of the master with the most keys of those online. */
  readonly busiestMasterBytes: number;
  /** The share of its memory that is free. */
  readonly headroom: number;
  /** Of all servers together, as configured. */
  readonly serverBytes: number;
  readonly commandsPerSec: number;
  /** Share of a core, of each master, while connections come in at the full rate. */
  readonly cpuShare: number;
}

/** Users who are online are listed on so many keys. */
const onlineShards = 16;
const mastersMax = 1000;

/** @throws PlanImpossible when masters beyond 1,000 would be too few */
export function planRedis(model: PlanModel): RedisPlan {
  const { costs, inputs } = model;
  const perUser = costs.redisUserBytes + (inputs.sessionsPerUser - 1) * costs.redisSessionBytes;
  const userBytes = inputs.users * perUser;
  const queuedPushes = inputs.pushesPerDay * inputs.offlineShare * inputs.queueDays;
  const queuedBytes =
    queuedPushes * Math.max(0, costs.redisQueuedBytes + inputs.pushBytes - measuredPushBytes);
  const onlineBytes = inputs.users * costs.redisOnlineBytes;
  const cpuAll = stormCpu(model);
  const busiest = (masters: number): number =>
    (userBytes + queuedBytes - onlineBytes) / masters +
    (onlineBytes * Math.ceil(onlineShards / masters)) / onlineShards;
  const maxBytes = inputs.redisMasterGb * 1e9;
  const usable = maxBytes * (1 - inputs.redisHeadroom);
  let masters = inputs.redisMasters;
  while (busiest(masters) > usable || cpuAll / masters > inputs.redisCpuTarget) {
    if (++masters > mastersMax) {
      throw new PlanImpossible(
        `${mastersMax} Redis masters are too few: give each more memory (redisMasterGb), or use several clusters`,
      );
    }
  }
  return {
    userBytes,
    queuedBytes,
    queuedPushes,
    masters,
    replicas: masters * inputs.redisReplicas,
    busiestMasterBytes: busiest(masters),
    headroom: 1 - busiest(masters) / maxBytes,
    serverBytes: masters * (1 + inputs.redisReplicas) * maxBytes,
    commandsPerSec: commandsPerSec(model),
    cpuShare: cpuAll / masters,
  };
}

/** The payload with which `redisQueuedBytes` is measured. */
const measuredPushBytes = 100;

/** Two for a connect and two for its end, two for a push and its acknowledgement, and a share in the calls of those that are refreshed together. */
function commandsPerSec(model: PlanModel): number {
  const { costs, demand } = model;
  return 4 * demand.connects + refreshesPerSec(model) * costs.redisCallsPerRefresh + 2 * demand.pushes;
}

function refreshesPerSec({ costs, demand }: PlanModel): number {
  return (demand.sessions * costs.redisRefreshesPerMin) / 60;
}

/** Of all masters, when connections come in at the full rate. */
function stormCpu(model: PlanModel): number {
  const { costs, demand } = model;
  return (
    (2 * demand.stormConnects * costs.redisConnectUs +
      refreshesPerSec(model) * costs.redisRefreshUs +
      demand.pushes * costs.redisPushUs) /
    1e6
  );
}
