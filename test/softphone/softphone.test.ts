import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { FRAME_SAMPLES, tone } from '../../media/dsp/tones.ts';
import { buildRtpPacket } from '../../media/rtp/packet.ts';
import { readWav } from '../../media/wav.ts';
import { createRequest, header, type SipMessage, type SipRequest, tagOf } from '../../sip/message/index.ts';
import { buildOffer } from '../../sip/sdp.ts';
import { AudioReceiver } from './audio-receiver.ts';
import { openAudioSource } from './audio-source.ts';
import { EventLog } from './event-log.ts';
import { startLoopbackCarrier } from './loopback-carrier.ts';
import { SipEndpoint, type SipPeer } from './sip-endpoint.ts';
import { type SoftphoneOptions, startSoftphone } from './softphone.ts';

const cleanUps: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const act of cleanUps.splice(0).reverse()) await act();
});

/** A SIP client controlled message by message. */
async function hand() {
  type Seen = { type: 'message'; message: SipMessage };
  const log = new EventLog<Seen>();
  const endpoint = await SipEndpoint.open({
    host: '127.0.0.1',
    port: 0,
    onMessage: (message) => log.add({ type: 'message', message }),
  });
  cleanUps.push(() => endpoint.close());
  const write = (method: string, uri: string, changes: { toTag?: string; sequence?: number; branch?: string } = {}) => {
    const { toTag, sequence = 1, branch = 'z9hG4bK-one' } = changes;
    const offer = buildOffer({
      host: '127.0.0.1',
      rtpPort: 40_000,
      codecs: ['PCMU'],
      sessionId: 1,
      sessionVersion: 1,
    });
    return createRequest({
      method,
      uri,
      headers: [
        ['Via', `SIP/2.0/UDP 127.0.0.1:${endpoint.port};branch=${branch}`],
        ['Max-Forwards', '70'],
        ['From', '<sip:+911@127.0.0.1>;tag=hand'],
        ['To', `<sip:+912@127.0.0.1>${toTag === undefined ? '' : `;tag=${toTag}`}`],
        ['Call-ID', 'hand-made'],
        ['CSeq', `${sequence} ${method}`],
        ['Contact', `<sip:127.0.0.1:${endpoint.port}>`],
      ],
      ...(method === 'INVITE' ? { body: offer } : {}),
    });
  };
  const statuses = () =>
    log.all.map(({ message }) => (message.kind === 'response' ? message.statusCode : message.method));
  const untilStatus = async (status: number, times = 1) => {
    const matches = () => statuses().filter((seen) => seen === status).length >= times;
    await log.until('message', matches);
    const last = log.all.findLast(({ message }) => message.kind === 'response' && message.statusCode === status);
    return last!.message;
  };
  const send = (request: SipRequest, to: SipPeer) => endpoint.send(request, to);
  return { write, send, statuses, untilStatus, log };
}

async function phone(options: Partial<SoftphoneOptions> = {}) {
  const started = await startSoftphone({ name: 'phone', user: '+912', ...options });
  cleanUps.push(() => started.stop());
  return started;
}

describe('softphone', () => {
  test('repeats its 200 until the ACK arrives', async () => {
    const callee = await phone({ audio: { kind: 'none' } });
    const caller = await hand();
    caller.send(caller.write('INVITE', callee.sipUri), callee.address);
    const ok = await caller.untilStatus(200, 2);
    caller.send(caller.write('ACK', callee.sipUri, { toTag: tagOf(header(ok, 'To')) ?? '' }), callee.address);
    await callee.until('confirmed');
    const before = caller.statuses().length;
    caller.send(caller.write('OPTIONS', callee.sipUri, { sequence: 2, branch: 'z9hG4bK-two' }), callee.address);
    await caller.untilStatus(200, 3);
    expect(caller.statuses()).toHaveLength(before + 1);
  });

  test('assigns a repeated INVITE to the same call', async () => {
    const callee = await phone({ answer: 'manual' });
    const caller = await hand();
    caller.send(caller.write('INVITE', callee.sipUri), callee.address);
    await caller.untilStatus(180);
    caller.send(caller.write('INVITE', callee.sipUri), callee.address);
    await caller.untilStatus(180, 2);
    expect(callee.counts).toEqual({ invites: 1, inviteRetransmissions: 1 });
  });

  test('answers a CANCEL with 200 and the INVITE with 487', async () => {
    const callee = await phone({ answer: 'manual' });
    const caller = await hand();
    caller.send(caller.write('INVITE', callee.sipUri), callee.address);
    await caller.untilStatus(180);
    caller.send(caller.write('CANCEL', callee.sipUri), callee.address);
    const terminated = await caller.untilStatus(487);
    expect(header(terminated, 'CSeq')).toBe('1 INVITE');
    expect(caller.statuses().slice(0, 3)).toEqual([180, 200, 487]);
    await callee.until('cancelled');
  });

  test('reports a repeated CANCEL once, and answers each', async () => {
    const callee = await phone({ answer: 'manual' });
    const caller = await hand();
    caller.send(caller.write('INVITE', callee.sipUri), callee.address);
    await caller.untilStatus(180);
    for (let times = 0; times < 2; times += 1) caller.send(caller.write('CANCEL', callee.sipUri), callee.address);
    await caller.untilStatus(200, 2);
    expect(callee.log.ofType('cancelled')).toHaveLength(1);
  });

  test('hangs up only after the ACK', async () => {
    const callee = await phone({ audio: { kind: 'none' } });
    const caller = await hand();
    caller.send(caller.write('INVITE', callee.sipUri), callee.address);
    const ok = await caller.untilStatus(200);
    callee.hangup();
    expect(caller.statuses()).not.toContain('BYE');
    caller.send(caller.write('ACK', callee.sipUri, { toTag: tagOf(header(ok, 'To')) ?? '' }), callee.address);
    await caller.log.until('message', ({ message }) => message.kind === 'request' && message.method === 'BYE');
  });

  test('rejects requests of unknown calls', async () => {
    const callee = await phone();
    const caller = await hand();
    caller.send(caller.write('BYE', callee.sipUri, { toTag: 'unknown' }), callee.address);
    await caller.untilStatus(481);
    expect(callee.log.all).toEqual([]);
  });
});

describe('received audio of a softphone', () => {
  const frame = (sequence: number, samples: Int16Array, ssrc = 7) => {
    const payload = Uint8Array.from(samples, () => 0xff);
    return buildRtpPacket({ payloadType: 0, sequence, timestamp: sequence * FRAME_SAMPLES, ssrc }, payload);
  };
  const SILENCE = new Int16Array(FRAME_SAMPLES);

  test('appears in order and once, with silence for lost packets', () => {
    const receiver = new AudioReceiver();
    for (const sequence of [65_534, 0, 65_535, 0, 3]) receiver.take(frame(sequence, SILENCE), null);
    const received = receiver.received();
    expect(received.packets).toBe(5);
    expect(received.pcm).toHaveLength(6 * FRAME_SAMPLES);
    expect(received.continuity).toMatchObject({
      lost: 2,
      duplicates: 1,
      reordered: 1,
      ssrcs: [7],
      payloadTypes: [0],
      foreign: 0,
    });
  });

  test('reports a new sender without a loss', () => {
    const receiver = new AudioReceiver();
    receiver.take(frame(100, SILENCE, 7), null);
    receiver.take(frame(9_000, SILENCE, 8), null);
    expect(receiver.received().continuity).toMatchObject({ ssrcs: [7, 8], lost: 0 });
  });

  test('counts other datagrams and survives them', () => {
    const receiver = new AudioReceiver();
    receiver.take(new Uint8Array(0), null);
    receiver.take(
      Uint8Array.from({ length: 40 }, (_, index) => index * 7),
      null,
    );
    receiver.take(buildRtpPacket({ payloadType: 101, sequence: 1, timestamp: 0, ssrc: 7 }, new Uint8Array(4)), null);
    expect(receiver.received()).toMatchObject({ packets: 0, seconds: 0, digits: '', continuity: { foreign: 3 } });
  });

  test('can be saved as a WAV file and played by another phone', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tandem-received-'));
    cleanUps.push(() => rm(folder, { recursive: true }));
    const path = join(folder, 'received.wav');
    const receiver = new AudioReceiver();
    for (let sequence = 0; sequence < 10; sequence++) receiver.take(frame(sequence, SILENCE), null);
    await receiver.received().saveWav(path);
    expect((await readWav(path)).samples[0]).toHaveLength(10 * FRAME_SAMPLES);
    const source = await openAudioSource({ kind: 'wav', path, loop: false });
    const samples = new Int16Array(FRAME_SAMPLES).fill(1);
    for (let each = 0; each < 11; each++) source?.fill(samples);
    expect(samples).toEqual(SILENCE);
  });
});

test('a tone continues seamlessly across frames', async () => {
  const source = await openAudioSource({ kind: 'tone', frequencyHz: 441 });
  const frames = new Int16Array(3 * FRAME_SAMPLES);
  for (let at = 0; at < frames.length; at += FRAME_SAMPLES) source?.fill(frames.subarray(at, at + FRAME_SAMPLES));
  expect(frames).toEqual(tone({ frequenciesHz: [441], durationMs: 60 }));
});

test('samples start on request, whole and after silence', async () => {
  const beginning = Promise.withResolvers<void>();
  const samples = Int16Array.from({ length: FRAME_SAMPLES }, (_, index) => index + 1);
  const source = await openAudioSource({ kind: 'samples', samples, after: () => beginning.promise });
  const said = new Int16Array(FRAME_SAMPLES).fill(1);
  source?.fill(said);
  expect(said).toEqual(new Int16Array(FRAME_SAMPLES));
  beginning.resolve();
  await beginning.promise;
  source?.fill(said);
  expect(said).toEqual(samples);
});

describe('loopback carrier', () => {
  test('responds for unknown numbers, failing numbers and itself', async () => {
    const carrier = await startLoopbackCarrier();
    cleanUps.push(() => carrier.stop());
    carrier.failures.set('+913', 503);
    const caller = await hand();
    const to: SipPeer = { transport: 'udp', host: '127.0.0.1', port: carrier.port };
    const at = carrier.sipUri.replace('sip:', '');
    caller.send(caller.write('INVITE', `sip:+912@${at}`), to);
    await caller.untilStatus(404);
    caller.send(caller.write('INVITE', `sip:+913@${at}`), to);
    await caller.untilStatus(503);
    caller.send(caller.write('OPTIONS', carrier.sipUri), to);
    await caller.untilStatus(200);
  });

  test('counts a call once despite repeated INVITEs', async () => {
    const callee = await phone({ answer: 'manual' });
    const carrier = await startLoopbackCarrier({ routes: new Map([['+912', callee.address]]) });
    cleanUps.push(() => carrier.stop());
    const caller = await hand();
    const to: SipPeer = { transport: 'udp', host: '127.0.0.1', port: carrier.port };
    const uri = carrier.sipUri.replace('sip:', 'sip:+912@');
    caller.send(caller.write('INVITE', uri), to);
    await caller.untilStatus(180);
    caller.send(caller.write('INVITE', uri), to);
    await caller.untilStatus(180, 2);
    expect(carrier.inviteCounts.get('+912')).toBe(1);
    expect(callee.counts).toEqual({ invites: 1, inviteRetransmissions: 1 });
  });
});
