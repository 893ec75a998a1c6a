/** Online users are spread over this many keys, so that none is hot and all masters share the load. */
export const onlineShards = 16;

/** The Redis keys of one tenant. What is in braces decides the slot: both keys of a user lie in one, a user's in any. */
export interface RedisKeys {
  session(userId: string): string;
  queue(userId: string): string;
  online(shard: number): string;
}

/** @throws RangeError for a prefix with braces, which would gather all users in one slot */
export function createRedisKeys(prefix: string): RedisKeys {
  if (/[{}]/.test(prefix)) throw new RangeError('a Redis prefix must not contain { or }');
  return {
    session: (userId) => `${prefix}:session:{${userId}}`,
    queue: (userId) => `${prefix}:notify:queue:{${userId}}`,
    online: (shard) => `${prefix}:online:users:${shard}`,
  };
}

/** Slots of a Redis Cluster. */
const slots = 16_384;

/** The slot of a user's keys in a cluster: CRC16 (XMODEM) of what their names hold in braces. */
export function slotOf(userId: string): number {
  return crc16(userId) % slots;
}

/** Where a user is listed: counted like slots, so that other programs find it too. */
export function onlineShardOf(userId: string): number {
  return crc16(userId) % onlineShards;
}

function crc16(text: string): number {
  let crc = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 127) return crc16OfBytes(Buffer.from(text));
    crc = ((crc << 8) & 0xffff) ^ crcTable[(crc >> 8) ^ code]!;
  }
  return crc;
}

function crc16OfBytes(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = ((crc << 8) & 0xffff) ^ crcTable[(crc >> 8) ^ byte]!;
  return crc;
}

const crcTable = Uint16Array.from({ length: 256 }, (_, index) => {
  let crc = index << 8;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  return crc;
});
