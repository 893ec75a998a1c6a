import { utf8Length } from './utf8.js';

const initialBytes = 4 * 1024;
/** A buffer grown beyond this by one large value is not kept for the next. */
const keptBytesMax = 1024 * 1024;

const encoder = new TextEncoder();
const int64Min = -(2n ** 63n);
const int64Max = 2n ** 63n - 1n;
const uint64Max = 2n ** 64n - 1n;

/** Whether MessagePack has an integer that wide. */
export function fitsMsgpackInteger(value: bigint): boolean {
  return value >= int64Min && value <= uint64Max;
}

/** Writes MessagePack into one growing buffer, each value in its shortest form. `start`, values, `finish`, again. */
export class MsgpackWriter {
  #bytes = new Uint8Array(initialBytes);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  /** Forgets what was written, also by a caller that threw halfway. */
  start(): this {
    if (this.#bytes.length > keptBytesMax) this.#resize(initialBytes);
    this.#at = 0;
    return this;
  }

  /** A copy of what was written. */
  finish(): Uint8Array {
    return this.#bytes.slice(0, this.#at);
  }

  nil(): void {
    this.#lead(0xc0);
  }

  boolean(value: boolean): void {
    this.#lead(value ? 0xc3 : 0xc2);
  }

  /** An integer when it is a safe one (but for -0), a float 64 otherwise. */
  number(value: number): void {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) this.double(value);
    else if (value >= 0) this.#unsigned(value);
    else this.#negative(value);
  }

  double(value: number): void {
    this.#lead(0xcb, 8);
    this.#view.setFloat64(this.#at, value);
    this.#at += 8;
  }

  /** Any integer that `fitsMsgpackInteger`. */
  bigint(value: bigint): void {
    if (value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)) {
      this.number(Number(value));
      return;
    }
    this.#lead(value > int64Max ? 0xcf : 0xd3, 8);
    // Two's complement: the low 64 bits are the same for both kinds.
    this.#view.setBigUint64(this.#at, BigInt.asUintN(64, value));
    this.#at += 8;
  }

  string(value: string): void {
    const length = utf8Length(value);
    if (length < 32) this.#lead(0xa0 | length, length);
    else if (length < 0x100) this.#lead8(0xd9, length);
    else if (length < 0x1_0000) this.#lead16(0xda, length);
    else this.#lead32(0xdb, length);
    this.#reserve(length);
    if (length === value.length) {
      for (let i = 0; i < length; i++) this.#bytes[this.#at + i] = value.charCodeAt(i);
    } else {
      encoder.encodeInto(value, this.#bytes.subarray(this.#at));
    }
    this.#at += length;
  }

  array(count: number): void {
    if (count < 16) this.#lead(0x90 | count);
    else if (count < 0x1_0000) this.#lead16(0xdc, count);
    else this.#lead32(0xdd, count);
  }

  /** `count` entries: twice as many values follow. */
  map(count: number): void {
    if (count < 16) this.#lead(0x80 | count);
    else if (count < 0x1_0000) this.#lead16(0xde, count);
    else this.#lead32(0xdf, count);
  }

  /** Bytes that are MessagePack already. */
  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #unsigned(value: number): void {
    if (value < 0x80) this.#lead(value);
    else if (value < 0x100) this.#lead8(0xcc, value);
    else if (value < 0x1_0000) this.#lead16(0xcd, value);
    else if (value < 0x1_0000_0000) this.#lead32(0xce, value);
    else this.#lead64(0xcf, value);
  }

  #negative(value: number): void {
    if (value >= -0x20) this.#lead(value & 0xff);
    else if (value >= -0x80) this.#lead8(0xd0, value);
    else if (value >= -0x8000) this.#lead16(0xd1, value);
    else if (value >= -0x8000_0000) this.#lead32(0xd2, value);
    else this.#lead64(0xd3, value);
  }

  /** One byte, with room for `more` after it. */
  #lead(byte: number, more = 0): void {
    this.#reserve(1 + more);
    this.#bytes[this.#at++] = byte;
  }

  #lead8(byte: number, value: number): void {
    this.#lead(byte, 1);
    this.#bytes[this.#at++] = value;
  }

  #lead16(byte: number, value: number): void {
    this.#lead(byte, 2);
    this.#view.setUint16(this.#at, value);
    this.#at += 2;
  }

  #lead32(byte: number, value: number): void {
    this.#lead(byte, 4);
    this.#view.setUint32(this.#at, value);
    this.#at += 4;
  }

  #lead64(byte: number, value: number): void {
    this.#lead(byte, 8);
    this.#view.setInt32(this.#at, Math.floor(value / 0x1_0000_0000));
    this.#view.setUint32(this.#at + 4, value >>> 0);
    this.#at += 8;
  }

  #reserve(more: number): void {
    const needed = this.#at + more;
    if (needed <= this.#bytes.length) return;
    const old = this.#bytes;
    this.#resize(Math.max(needed, 2 * old.length));
    this.#bytes.set(old);
  }

  #resize(length: number): void {
    this.#bytes = new Uint8Array(length);
    this.#view = new DataView(this.#bytes.buffer);
  }
}
