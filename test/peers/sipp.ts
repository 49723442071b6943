import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeG711 } from '../../media/codecs/g711.ts';
import { tone } from '../../media/dsp/tones.ts';
import { freePorts } from '../free-ports.ts';
import { CALLED_SCENARIOS } from './called-scenarios.ts';
import { CALLING_SCENARIOS } from './calling-scenarios.ts';
import { runPeer, untilListening } from './programs.ts';
import { scenarioFile } from './sipp-script.ts';

export type CalledScenario = keyof typeof CALLED_SCENARIOS;
export type CallingScenario = keyof typeof CALLING_SCENARIOS;

export interface SippOptions {
  scenario: CalledScenario;
  transport?: 'udp' | 'tcp';
  /** Frequency of `tone.ul`. Default 600. */
  toneFrequencyHz?: number;
  /** Number of calls before sipp exits. Default 1. */
  calls?: number;
}

export interface Sipp {
  sipUri: string;
  address: { host: string; port: number; transport: 'udp' | 'tcp' };
  /** Resolves after all calls; rejects with the output of sipp if one deviates from the scenario. */
  succeeded: () => Promise<void>;
  stop: () => Promise<void>;
}

/** Starts sipp as the called party and waits until it listens. */
export async function startSipp(options: SippOptions): Promise<Sipp> {
  const { scenario, transport = 'udp', toneFrequencyHz = 600, calls = 1 } = options;
  const folder = await mkdtemp(join(tmpdir(), 'sipp-'));
  await writeFile(join(folder, 'tone.ul'), muLawTone(toneFrequencyHz));
  const steps = CALLED_SCENARIOS[scenario];
  const { peer, port } = await runScenario(folder, { scenario, steps, transport, args: ['-m', String(calls)] });
  await untilListening(port, transport, peer);
  return {
    sipUri: `sip:${HOST}:${port}`,
    address: { host: HOST, port, transport },
    succeeded: async () => {
      const code = await peer.exited;
      if (code !== 0) throw new Error(`sipp ended with ${code}: ${peer.output()}`);
    },
    stop: async () => {
      await peer.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export interface SippCallOptions {
  scenario: CallingScenario;
  target: { host: string; port: number };
  number: string;
  transport?: 'udp' | 'tcp';
  /** Source address. Default 127.0.0.1. */
  host?: string;
}

/** Places one call with sipp; rejects with its output if the call deviates from the scenario. */
export async function callWithSipp(options: SippCallOptions): Promise<void> {
  const { scenario, target, number, transport = 'udp', host = HOST } = options;
  const folder = await mkdtemp(join(tmpdir(), 'sipp-'));
  const args = [`${target.host}:${target.port}`, '-s', number, '-m', '1'];
  const { peer } = await runScenario(folder, { scenario, steps: CALLING_SCENARIOS[scenario], transport, host, args });
  const code = await peer.exited;
  const errors = await readFile(join(folder, 'errors.log'), 'utf8').catch(() => '');
  await peer.stop();
  await rm(folder, { recursive: true, force: true });
  if (code !== 0) throw new Error(`sipp ended with ${code}: ${errors || peer.output()}`);
}

const HOST = '127.0.0.1';

interface RunOptions {
  scenario: string;
  steps: readonly string[];
  transport: 'udp' | 'tcp';
  host?: string;
  args: readonly string[];
}

async function runScenario(folder: string, { scenario, steps, transport, host = HOST, args }: RunOptions) {
  const file = join(folder, `${scenario}.xml`);
  await writeFile(file, scenarioFile(scenario, steps));
  const port = await freePorts(2);
  const peer = runPeer('sipp', {
    cwd: folder,
    args: [
      ...args,
      ...['-sf', file, '-i', host, '-mi', host, '-p', String(port), '-t', transport === 'tcp' ? 't1' : 'u1'],
      ...['-nostdin', '-recv_timeout', '15000', '-timeout', '30', '-timeout_error'],
      ...['-trace_err', '-error_file', 'errors.log'],
    ],
  });
  return { peer, port };
}

function muLawTone(frequencyHz: number): Uint8Array {
  const samples = tone({ frequenciesHz: [frequencyHz], durationMs: 10_000 });
  const octets = new Uint8Array(samples.length);
  encodeG711('PCMU', samples, octets);
  return octets;
}
