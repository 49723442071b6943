import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Codec } from '../../machines/events.ts';
import { readWav } from '../../media/wav.ts';
import { selfSignedCertificate } from '../callbacks/certificate.ts';
import { freePorts } from '../free-ports.ts';
import { runPeer, untilListening } from './programs.ts';
import { toneWav } from './tone-wav.ts';

export interface BaresipOptions {
  /** User part of its address; other calls are rejected. Default `peer`. */
  user?: string;
  transport?: 'udp' | 'tcp' | 'tls';
  /** Additional user parts. Default: none. */
  alsoUsers?: readonly string[];
  /** Tone that it plays. Default 600. */
  toneFrequencyHz?: number;
  /** In order of preference. Default PCMU, PCMA. */
  codecs?: readonly Codec[];
  /** SRTP if offered (`srtp`), or only SRTP (`srtp-mand`). Default: none. */
  mediaEncryption?: 'srtp' | 'srtp-mand';
  /** Credentials for challenged calls. Default: none. */
  account?: { username: string; password: string };
  /** `manual` rings and never answers. Default `auto`. */
  answer?: 'auto' | 'manual';
}

export interface Baresip extends AsyncDisposable {
  sipUri: string;
  address: { host: string; port: number; transport: 'udp' | 'tcp' };
  caFile: string;
  /** Sends a menu command, such as `hold` or `resume`, which runs asynchronously. */
  command: (name: string) => Promise<void>;
  press: (keys: string) => Promise<void>;
  dial: (uri: string) => Promise<void>;
  output: () => string;
  /**
   * Audio of its first call at the codec rate: 8 kHz, 16 kHz for G.722, 48 kHz for Opus. Complete only after the call.
   */
  received: () => Promise<Int16Array>;
  stop: () => Promise<void>;
}

/** Sample rate and channels in baresip's account syntax. */
const FORMATS: Readonly<Record<Codec, string>> = {
  PCMU: '8000/1',
  PCMA: '8000/1',
  G722: '16000/1',
  OPUS: '48000/2',
};

/** Starts baresip as the called party with a tone and a recording, and waits until it listens. */
export async function startBaresip(options: BaresipOptions = {}): Promise<Baresip> {
  const {
    user = 'peer',
    alsoUsers = [],
    transport = 'udp',
    toneFrequencyHz = 600,
    codecs = ['PCMU', 'PCMA'],
    answer = 'auto',
    mediaEncryption,
    account,
  } = options;
  const folder = await mkdtemp(join(tmpdir(), 'baresip-'));
  const [port, rtpPort] = [await freePorts(2), await freePorts(2)];
  const commandPort = await freePorts(2);
  const evenRtpPort = rtpPort + (rtpPort % 2);
  await writeFile(join(folder, 'tone.wav'), toneWav(toneFrequencyHz));
  const { cert, key } = selfSignedCertificate({ ipv4: ['127.0.0.1'] });
  const caFile = join(folder, 'cert.pem');
  await writeFile(caFile, cert);
  await writeFile(join(folder, 'cert-and-key.pem'), `${cert}\n${key}`);
  await writeFile(join(folder, 'config'), configOf({ folder, port, rtpPort: evenRtpPort, commandPort }));
  const codecList = codecs.map((codec) => `${codec}/${FORMATS[codec]}`).join(',');
  const encryption = mediaEncryption === undefined ? '' : `;mediaenc=${mediaEncryption}`;
  const proof = account === undefined ? '' : `;auth_user=${account.username};auth_pass=${account.password}`;
  // Its TLS port is the next one.
  const sipPort = transport === 'tls' ? port + 1 : port;
  const uriParameters = transport === 'tls' ? ';transport=tls' : '';
  const parameters = `;regint=0;answermode=${answer};audio_codecs=${codecList}${encryption}${proof}`;
  const accounts = [user, ...alsoUsers].map(
    (each) => `<sip:${each}@127.0.0.1:${sipPort}${uriParameters}>${parameters}\n`,
  );
  await writeFile(join(folder, 'accounts'), accounts.join(''));
  await writeFile(join(folder, 'contacts'), '');
  const peer = runPeer('baresip', { cwd: folder, args: ['-f', folder] });
  await untilListening(sipPort, transport === 'udp' ? 'udp' : 'tcp', peer);
  await untilListening(commandPort, 'tcp', peer);
  const stop = async () => {
    await peer.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return {
    sipUri: `sip:127.0.0.1:${sipPort}`,
    address: { host: '127.0.0.1', port: sipPort, transport: transport === 'udp' ? 'udp' : 'tcp' },
    caFile,
    command: (name) => sendCommand(commandPort, { command: name }),
    dial: (uri) => sendCommand(commandPort, { command: 'dial', params: uri }),
    press: (keys) => sendCommand(commandPort, { command: 'sndcode', params: keys }),
    output: peer.output,
    received: () => receivedIn(folder),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Sends one JSON object as a netstring and waits for the acknowledgement. */
async function sendCommand(port: number, message: { command: string; params?: string }): Promise<void> {
  const text = JSON.stringify(message);
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`${text.length}:${text},`);
  let answer = '';
  // Its events may arrive first.
  while (!answer.includes('"response":true')) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    answer += chunk.toString('latin1');
  }
  socket.destroy();
  if (!answer.includes('"ok":true')) throw new Error(`baresip: ${answer}`);
}

function configOf(options: { folder: string; port: number; rtpPort: number; commandPort: number }): string {
  const { folder, port, rtpPort, commandPort } = options;
  return [
    `sip_listen 127.0.0.1:${port}`,
    `sip_certificate ${folder}/cert-and-key.pem`,
    'net_interface 127.0.0.1',
    `audio_source aufile,${folder}/tone.wav`,
    'audio_player none,none',
    'audio_alert none,none',
    'ausrc_srate 8000',
    'auplay_srate 8000',
    'ausrc_channels 1',
    'auplay_channels 1',
    `rtp_ports ${rtpPort}-${rtpPort + 20}`,
    `snd_path ${folder}`,
    'module_path /usr/lib/baresip/modules',
    ...['g711', 'g722', 'opus', 'aufile', 'sndfile', 'srtp'].map((name) => `module ${name}.so`),
    `ctrl_tcp_listen 127.0.0.1:${commandPort}`,
    ...['account', 'menu', 'ctrl_tcp'].map((name) => `module_app ${name}.so`),
    '',
  ].join('\n');
}

async function receivedIn(folder: string): Promise<Int16Array> {
  for (const deadlineMs = performance.now() + 10_000; performance.now() < deadlineMs; await delay(10)) {
    const file = (await readdir(folder)).find((name) => /^dump-.*-dec\.wav$/.test(name));
    if (file === undefined) continue;
    // libsndfile writes the length on close.
    const content = await readWav(join(folder, file)).catch(() => null);
    const samples = content?.samples[0];
    if (samples !== undefined && samples.length > 0) return samples;
  }
  throw new Error('baresip kept no received audio');
}
