import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { encodeG711 } from '../../media/codecs/g711.ts';
import { tone } from '../../media/dsp/tones.ts';
import { freeSipPort, runPeer, untilListening } from './programs.ts';

/** A file of `scenarios/`, named after what it provokes. */
type SippScenario =
  | 'answers-and-plays-tone'
  | 'answers-without-sdp'
  | 'busy'
  | 'declines'
  | 'early-media'
  | 'hangs-up-after-answer'
  | 'holds-and-resumes'
  | 'never-answers'
  | 'reinvites-without-offer';

export interface SippOptions {
  scenario: SippScenario;
  transport?: 'udp' | 'tcp';
  /** What `tone.ul` sounds like. Default 600. */
  toneFrequencyHz?: number;
  /** Calls after which sipp ends. Default 1. */
  calls?: number;
}

export interface Sipp {
  sipUri: string;
  address: { host: string; port: number; transport: 'udp' | 'tcp' };
  /** Resolves when all calls are done; rejects with sipp's own words when one went against the scenario. */
  succeeded: () => Promise<void>;
  stop: () => Promise<void>;
}

/** Starts sipp as the called party and waits until it listens. */
export async function startSipp(options: SippOptions): Promise<Sipp> {
  const { scenario, transport = 'udp', toneFrequencyHz = 600, calls = 1 } = options;
  const folder = await mkdtemp(join(tmpdir(), 'sipp-'));
  await writeFile(join(folder, 'tone.ul'), muLawTone(toneFrequencyHz));
  const port = await freeSipPort();
  const host = '127.0.0.1';
  const file = new URL(`./scenarios/${scenario}.xml`, import.meta.url).pathname;
  const peer = runPeer('sipp', {
    cwd: folder,
    args: [
      ...['-sf', file, '-i', host, '-mi', host, '-p', String(port), '-t', transport === 'tcp' ? 't1' : 'u1'],
      ...['-m', String(calls), '-nostdin', '-recv_timeout', '15000', '-timeout', '30', '-timeout_error'],
      ...['-trace_err', '-error_file', 'errors.log'],
    ],
  });
  await untilListening(port, transport, peer);
  return {
    sipUri: `sip:${host}:${port}`,
    address: { host, port, transport },
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

function muLawTone(frequencyHz: number): Uint8Array {
  const samples = tone({ frequenciesHz: [frequencyHz], durationMs: 10_000 });
  const octets = new Uint8Array(samples.length);
  encodeG711('PCMU', samples, octets);
  return octets;
}
