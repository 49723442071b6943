import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readWav } from '../../media/wav.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';
import { runPeer, untilListening } from './programs.ts';
import { toneWav } from './tone-wav.ts';

export interface LinphoneOptions {
  toneFrequencyHz: number;
  mediaEncryption?: 'srtp';
}

export interface Linphone extends AsyncDisposable {
  address: { host: string; port: number; transport: 'udp' };
  /** Types a menu command, such as `transfer sip:...` or `terminate`. */
  type: (line: string) => void;
  output: () => string;
  /** Recorded audio, after it ended. */
  received: () => Promise<Int16Array>;
  stop: () => Promise<void>;
}

/** Starts linphonec, which answers every call, plays a tone and records. */
export async function startLinphone({ toneFrequencyHz, mediaEncryption }: LinphoneOptions): Promise<Linphone> {
  const folder = await mkdtemp(join(tmpdir(), 'linphone-'));
  const [port, rtpPort] = [await freePorts(2), await freePorts(4)];
  for (const name of ['.local/share/linphone', '.config/linphone'])
    await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, 'tone.wav'), toneWav(toneFrequencyHz));
  await writeFile(join(folder, 'rc'), settingsOf({ port, rtpPort, mediaEncryption }));
  const peer = runPeer('linphonec', { cwd: folder, args: ['-c', join(folder, 'rc'), '-a'], env: { HOME: folder } });
  const type = (line: string) => void peer.child.stdin.write(`${line}\n`);
  type('ipv6 disable');
  type('soundcard use files');
  type(`play ${join(folder, 'tone.wav')}`);
  type(`record ${join(folder, 'received.wav')}`);
  await untilListening(port, 'udp', peer);
  const end = async () => {
    type('quit');
    await peer.exited;
  };
  const stop = async () => {
    await peer.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return {
    address: { host: '127.0.0.1', port, transport: 'udp' },
    type,
    output: peer.output,
    async received() {
      await end();
      return (await eventually(() => readWav(join(folder, 'received.wav')))).samples[0]!;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function settingsOf(options: { port: number; rtpPort: number; mediaEncryption: 'srtp' | undefined }): string {
  const { port, rtpPort, mediaEncryption } = options;
  return [
    '[sip]',
    `sip_port=${port}`,
    // -1: disabled.
    'sip_tcp_port=-1',
    'sip_tls_port=-1',
    'use_ipv6=0',
    'guess_hostname=0',
    `contact=sip:linphone@127.0.0.1:${port}`,
    'bind_address=127.0.0.1',
    `media_encryption=${mediaEncryption ?? 'none'}`,
    '[rtp]',
    `audio_rtp_port=${rtpPort}`,
    '',
  ].join('\n');
}
