import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Debian's `rtpengine-daemon` in user space with one thread, controlled by its `ng` protocol (bencode over UDP). */

const NG_PORT = 9_222;

export function isRtpengineInstalled(): boolean {
  return spawnSync('rtpengine', ['--version'], { stdio: 'ignore' }).error === undefined;
}

export class Rtpengine {
  readonly process: ChildProcess;
  readonly #control: Socket;
  #cookie = 0;

  private constructor(child: ChildProcess, control: Socket) {
    this.process = child;
    this.#control = control;
  }

  static async open(folder: string, pin: string[]): Promise<Rtpengine> {
    const [command, ...rest] = [
      ...pin,
      'rtpengine',
      '--foreground',
      '--log-stderr',
      '--log-level=2',
      // No kernel module.
      '--table=-1',
      '--num-threads=1',
      '--interface=127.0.0.1',
      `--listen-ng=127.0.0.1:${NG_PORT}`,
      '--port-min=10000',
      '--port-max=30000',
      `--pidfile=${join(folder, 'rtpengine.pid')}`,
    ];
    const child = spawn(command!, rest, { stdio: 'ignore' });
    const control = createSocket('udp4');
    control.connect(NG_PORT, '127.0.0.1');
    await once(control, 'connect');
    // The port is closed while rtpengine starts.
    control.on('error', () => {});
    const rtpengine = new Rtpengine(child, control);
    while ((await rtpengine.#ask({ command: 'ping' })) === null) await sleep(50);
    return rtpengine;
  }

  /** Returns the ports that a call's phones send to. */
  async addCall(index: number, [agent, customer]: [number, number]): Promise<[number, number]> {
    const call = { 'call-id': `call-${index}`, 'from-tag': 'agent' };
    const forCustomer = await this.#ask({ command: 'offer', ...call, sdp: sdp(agent) });
    const forAgent = await this.#ask({ command: 'answer', ...call, 'to-tag': 'customer', sdp: sdp(customer) });
    return [portOf(forAgent), portOf(forCustomer)];
  }

  async close(): Promise<void> {
    this.#control.close();
    const ended = once(this.process, 'exit');
    this.process.kill();
    await ended;
  }

  /** Null if no answer comes in time. */
  async #ask(request: Record<string, string>): Promise<string | null> {
    const cookie = String(++this.#cookie);
    const fields = Object.entries(request).map(([key, value]) => bencoded(key) + bencoded(value));
    this.#control.send(`${cookie} d${fields.join('')}e`);
    const late = AbortSignal.timeout(500);
    for (;;) {
      try {
        const [answer] = (await once(this.#control, 'message', { signal: late })) as [Buffer];
        if (answer.toString().startsWith(`${cookie} `)) return answer.toString();
      } catch {
        if (late.aborted) return null;
      }
    }
  }
}

function bencoded(text: string): string {
  return `${Buffer.byteLength(text)}:${text}`;
}

function sdp(port: number): string {
  return [
    'v=0',
    'o=- 1 1 IN IP4 127.0.0.1',
    's=-',
    'c=IN IP4 127.0.0.1',
    't=0 0',
    `m=audio ${port} RTP/AVP 0 101`,
    'a=rtpmap:0 PCMU/8000',
    'a=rtpmap:101 telephone-event/8000',
    'a=sendrecv',
    '',
  ].join('\r\n');
}

function portOf(answer: string | null): number {
  const port = /m=audio (\d+)/.exec(answer ?? '')?.[1];
  if (port === undefined) throw new Error(`rtpengine refused a call: ${answer}`);
  return Number(port);
}
