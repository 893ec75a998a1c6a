import { connect } from 'node:net';

const timeoutMs = 2000;

/** One command on a connection of its own, for what a kit has to ask. Answers simple strings, numbers and bulk strings as text. */
export function redisCall(port: number, ...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    let text = '';
    const end = (finish: () => void): void => {
      socket.destroy();
      finish();
    };
    socket.setTimeout(timeoutMs, () => end(() => reject(new Error(`no answer to ${args.join(' ')}`))));
    socket.once('error', (error) => end(() => reject(error)));
    socket.once('close', () => reject(new Error('the connection was closed')));
    // latin1: lengths in the protocol count bytes.
    socket.setEncoding('latin1').on('data', (part: string) => {
      text += part;
      const answer = readAnswer(text);
      if (answer === undefined) return;
      end(() => (answer.startsWith('-') ? reject(new Error(answer.slice(1))) : resolve(answer.slice(1))));
    });
    socket.write(
      `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`,
    );
  });
}

/** The whole answer after its type, or undefined while some of it is missing. */
function readAnswer(text: string): string | undefined {
  const lineEnd = text.indexOf('\r\n');
  if (lineEnd < 0) return undefined;
  if (!text.startsWith('$')) return text.slice(0, lineEnd);
  const start = lineEnd + 2;
  const length = Math.max(0, Number(text.slice(1, lineEnd)));
  return text.length < start + length ? undefined : `$${text.slice(start, start + length)}`;
}
