import { createAloneCluster } from '../../broker/cluster-alone.js';
import { clusterConformance } from './cluster-suite.js';

clusterConformance('alone', async (nodeId) => {
  const cluster = createAloneCluster(nodeId);
  return { cluster, dispose: () => cluster.stop() };
});
