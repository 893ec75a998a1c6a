import { readString, skipSpace, stringEnd, valueEnd } from './json-scan.js';
import { fitsMsgpackInteger, MsgpackWriter } from './msgpack-write.js';

/** A number that is not written as an integer, or fits none. */
class Float {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** What JSON holds. Integers are `bigint` only where a `number` could not hold them. */
type Tree = null | boolean | string | number | bigint | Float | readonly Tree[] | ReadonlyMap<string, Tree>;

const integerSyntax = /^(?!-0$)-?[0-9]{1,20}$/;
const closeBracket = 0x5d;
const closeBrace = 0x7d;
const comma = 0x2c;

const writer = new MsgpackWriter();

/** MessagePack of valid JSON text, read without `JSON.parse`, so that no integer passes through a double. */
export function jsonToMsgpack(text: string): Uint8Array {
  writer.start();
  write(new Reader(text).next());
  return writer.finish();
}

function write(tree: Tree): void {
  if (tree === null) writer.nil();
  else if (typeof tree === 'string') writer.string(tree);
  else if (typeof tree === 'boolean') writer.boolean(tree);
  else if (typeof tree === 'bigint') writer.bigint(tree);
  else if (typeof tree === 'number') writer.number(tree);
  else if (tree instanceof Float) writer.double(tree.value);
  else if (tree instanceof Map) {
    writer.map(tree.size);
    for (const [key, value] of tree as ReadonlyMap<string, Tree>) {
      writer.string(key);
      write(value);
    }
  } else {
    const elements = tree as readonly Tree[];
    writer.array(elements.length);
    for (const element of elements) write(element);
  }
}

/** Builds the tree of valid text. One pass; recurses as deep as the text nests. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  next(): Tree {
    this.#at = skipSpace(this.#text, this.#at);
    switch (this.#text[this.#at]) {
      case '[':
        return this.#array();
      case '{':
        return this.#object();
      case '"':
        return this.#string();
      default:
        return this.#plain();
    }
  }

  #array(): Tree {
    const elements: Tree[] = [];
    this.#step();
    while (this.#code() !== closeBracket) {
      elements.push(this.next());
      this.#skipComma();
    }
    this.#at++;
    return elements;
  }

  #object(): Tree {
    const members = new Map<string, Tree>();
    this.#step();
    while (this.#code() !== closeBrace) {
      const key = this.#string();
      this.#at = skipSpace(this.#text, this.#at) + 1;
      members.set(key, this.next());
      this.#skipComma();
    }
    this.#at++;
    return members;
  }

  #string(): string {
    const start = this.#at;
    this.#at = stringEnd(this.#text, start);
    return readString(this.#text, start, this.#at);
  }

  #plain(): Tree {
    const start = this.#at;
    this.#at = valueEnd(this.#text, start);
    const text = this.#text.slice(start, this.#at);
    if (text === 'null') return null;
    if (text === 'true' || text === 'false') return text === 'true';
    const number = Number(text);
    if (!integerSyntax.test(text)) return new Float(number);
    if (Number.isSafeInteger(number)) return number;
    const integer = BigInt(text);
    return fitsMsgpackInteger(integer) ? integer : new Float(number);
  }

  #code(): number {
    const code = this.#text.charCodeAt(this.#at);
    if (Number.isNaN(code)) throw new TypeError('a JSON payload holds text that is not JSON');
    return code;
  }

  #step(): void {
    this.#at = skipSpace(this.#text, this.#at + 1);
  }

  #skipComma(): void {
    this.#at = skipSpace(this.#text, this.#at);
    if (this.#code() === comma) this.#step();
  }
}
