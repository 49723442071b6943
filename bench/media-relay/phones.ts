import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { toneFrames } from '../../media/dsp/tones.ts';

/** The phones of all calls, in a C process on the other core; see `generator.c`. */

export interface PhonesResult {
  sent: number;
  received: number;
  /** The system rejected a phone's packet: the measurement is invalid. */
  refused: number;
  /** Dropped by the rough network, or without a target. */
  skipped: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
  /** How late a phone sent. */
  generatorLateMs: number;
}

const LATE_MS = 500;

/** Compiles the phones into a folder. @throws Error without a C compiler */
export function buildPhones(folder: string): { program: string; speech: string } {
  const program = join(folder, 'phones');
  const source = join(import.meta.dirname, 'generator.c');
  const { error, status } = spawnSync('cc', ['-O2', '-o', program, source], { stdio: 'inherit' });
  if (error !== undefined || status !== 0) throw new Error('this benchmark needs a C compiler (cc)');
  const speech = join(folder, 'speech.ul');
  // Two seconds of tone, then one of near silence, so that levels and noise floors move.
  const tone = toneFrames('PCMU', { frequenciesHz: [300, 700, 1900], durationMs: 2000 });
  const pause = Array.from({ length: 50 }, (_, frame) =>
    Uint8Array.from({ length: 160 }, (_, i) => ((frame * 31 + i * 17) % 7 < 3 ? 0xfe : 0x7e)),
  );
  writeFileSync(speech, Buffer.concat([...tone, ...pause]));
  return { program, speech };
}

export class Phones {
  readonly ports: [number, number][];
  readonly #process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #isRough: boolean;

  private constructor(
    child: ChildProcess,
    lines: AsyncIterator<string>,
    { ports, isRough }: { ports: [number, number][]; isRough: boolean },
  ) {
    this.#process = child;
    this.#lines = lines;
    this.ports = ports;
    this.#isRough = isRough;
  }

  /**
   * `isRough`: the network loses and reorders packets and sends some in bursts; `retarget` works. `isSteered`: phones
   * are silent until `retarget` sets a target and talk until `close`; `measure` replaces `talk`.
   */
  static async open(
    calls: number,
    built: { program: string; speech: string },
    { pin, isRough = false, isSteered = false }: { pin: string[]; isRough?: boolean; isSteered?: boolean },
  ): Promise<Phones> {
    const mode = isRough ? ['rough'] : isSteered ? ['steered'] : [];
    const [command, ...rest] = [...pin, built.program, String(calls), built.speech, ...mode];
    const child = spawn(command!, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const ports: [number, number][] = [];
    while (ports.length < calls) ports.push((await take(lines)).split(' ').map(Number) as [number, number]);
    return new Phones(child, lines, { ports, isRough });
  }

  /** Changes where a call's phones send to; 0 silences a phone. */
  retarget(call: number, [agent, customer]: [number, number]): void {
    this.#process.stdin!.write(`${2 * call} ${agent}\n${2 * call + 1} ${customer}\n`);
  }

  /** Counts packets during the next `durationMs`. A packet half a second late counts as lost. */
  async measure(durationMs: number): Promise<PhonesResult> {
    const stdin = this.#process.stdin!;
    stdin.write('-1 1\n');
    await pause(durationMs);
    stdin.write('-1 0\n');
    await pause(LATE_MS);
    stdin.write('-2 0\n');
    return JSON.parse(await take(this.#lines)) as PhonesResult;
  }

  get pid(): number {
    return this.#process.pid!;
  }

  async close(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.stdin!.end();
    await ended;
  }

  /** Lets the phones talk. `onEdge` is called when the measured time begins and ends. */
  async talk(
    targets: [number, number][],
    { warmUpMs, measureMs }: { warmUpMs: number; measureMs: number },
    onEdge: () => void,
  ): Promise<PhonesResult> {
    const ended = once(this.#process, 'exit');
    this.#process.stdin!.write(`${warmUpMs} ${measureMs}\n${targets.map((pair) => pair.join(' ')).join('\n')}\n`);
    if (!this.#isRough) this.#process.stdin!.end();
    for (const expected of ['start', 'stop']) {
      if ((await take(this.#lines)) !== expected) throw new Error('the phones failed');
      onEdge();
    }
    const result = JSON.parse(await take(this.#lines)) as PhonesResult;
    await ended;
    return result;
  }
}

export async function take(lines: AsyncIterator<string>): Promise<string> {
  const { value, done } = await lines.next();
  if (done === true) throw new Error('a program ended early');
  return value as string;
}
