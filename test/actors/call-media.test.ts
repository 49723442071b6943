import { describe, expect, it } from 'vitest';
import { mediaPort } from '../../actors/call-media.ts';
import type { CallQualityLog } from '../../actors/call-quality.ts';
import { createCallRegistry } from '../../actors/call-registry.ts';
import { OPEN_TALK } from '../../machines/call-control.ts';
import type { LegQuality } from '../../machines/events.ts';
import { createSealingKeys, type SealingKeys } from '../../runtime/sealed-file/format.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { eventually } from '../eventually.ts';
import {
  callRow,
  createTestClock,
  createTestLogger,
  FakeMediaPlane,
  LOCAL_MEDIA,
  liveCall,
  remoteMedia,
  runPort,
} from './fakes.ts';

const QUALITY: LegQuality = {
  codec: 'PCMU',
  packets_received: 500,
  packets_lost: 1,
  jitter_ms: 2,
  mos: 4.3,
  snr_db: 30,
  encryption: null,
};

describe('media of a call', () => {
  it('opens a session with the call id and reports the addresses of its legs', async () => {
    const { port, plane, call } = startMedia();
    await eventually(() => expect(port.received).toEqual([{ type: 'media.opened', local: LOCAL_MEDIA }]));
    expect(plane.session.options.sessionId).toBe(call.row.callId);
    expect(call.media).toBe(plane.session);
  });

  it('reports unavailable media when no session opens, and finishes without measurements', async () => {
    const { port, logger } = startMedia({ prepare: (plane) => plane.refuse() });
    port.send({ type: 'path', path: 'ringback' });
    port.send({ type: 'finish' });
    await eventually(() =>
      expect(port.received.map(({ type }) => type)).toEqual(['media.unavailable', 'media.finished']),
    );
    expect(port.received[1]).toMatchObject({ report: { quality: null, recording: null } });
    expect(logger.messages()).toEqual(['no media session could be opened']);
  });

  it('runs commands sequentially, including those from before the session opens', async () => {
    const opening = Promise.withResolvers<void>();
    const connecting = Promise.withResolvers<void>();
    const { port, plane } = startMedia({
      prepare: (it) => {
        it.onOpen = () => opening.promise;
      },
    });
    port.send({ type: 'connect', leg: 'agent', media: remoteMedia(20_000) });
    port.send({ type: 'path', path: 'ringback' });
    opening.resolve();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    plane.session.onCommand = (command) => (command.startsWith('connect') ? connecting.promise : undefined);
    port.send({ type: 'connect', leg: 'customer', media: remoteMedia(30_000) });
    port.send({ type: 'path', path: 'bridged' });
    connecting.resolve();
    await eventually(() => expect(plane.session.log).toHaveLength(8));
    expect(plane.session.log).toEqual(
      ['connect agent 20000', 'path ringback', 'connect customer 30000', 'path bridged'].flatMap((command) => [
        command,
        `${command} done`,
      ]),
    );
  });

  it('records into a separate file in the folder of growing recordings', async () => {
    const { port, plane } = startMedia();
    port.send({ type: 'record' });
    await eventually(() => expect(port.received).toHaveLength(2));
    const { recordingId } = port.received[1]!;
    expect(port.received[1]?.type).toBe('recording.started');
    expect(plane.session.recordingPath).toBe(`/recordings/${recordingId}.wav`);
  });

  it('reports a recording that cannot start, and continues', async () => {
    const { port, plane } = startMedia();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    plane.session.onCommand = (command) => {
      if (command === 'record') throw new Error('the disk is full');
    };
    port.send({ type: 'record' });
    port.send({ type: 'path', path: 'bridged' });
    port.send({ type: 'finish' });
    await eventually(() =>
      expect(port.received.map(({ type }) => type)).toEqual(['media.opened', 'recording.failed', 'media.finished']),
    );
    expect(plane.session.log).toContain('path bridged done');
    expect(port.received[2]).toMatchObject({ report: { recording: null } });
  });

  it('treats a failed leg connection as lost media', async () => {
    const { port, plane } = startMedia();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    plane.session.onCommand = () => {
      throw new Error('the worker is gone');
    };
    port.send({ type: 'connect', leg: 'agent', media: remoteMedia() });
    await eventually(() => expect(port.received.map(({ type }) => type)).toEqual(['media.opened', 'media.lost']));
  });

  it('survives a failed path change', async () => {
    const { port, plane, logger } = startMedia();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    plane.session.onCommand = (command) => {
      if (command.startsWith('path')) throw new Error('the worker is slow');
    };
    port.send({ type: 'path', path: 'ringback' });
    port.send({ type: 'finish' });
    await eventually(() => expect(port.received.map(({ type }) => type)).toEqual(['media.opened', 'media.finished']));
    expect(logger.lines).toMatchObject([{ level: 'error', fields: { command: 'path' } }]);
  });

  it('passes a key on without ending a sound that the other party hears', async () => {
    const { port, plane } = startMedia();
    port.send({ type: 'press', leg: 'customer', digit: '5', durationMs: 100, talk: OPEN_TALK });
    await eventually(() => expect(plane.session.log[0]).toBe('press 5 to agent unless it hears a sound'));
  });

  it('starts machine detection on the customer, and forwards its result', async () => {
    const { port, plane } = startMedia();
    port.send({ type: 'detect-machine' });
    await eventually(() =>
      expect(plane.session.log).toEqual(['detect machine at customer', 'detect machine at customer done']),
    );
    const found = { type: 'machine.detected', leg: 'customer', result: 'human', afterMs: 900 } as const;
    plane.session.options.onEvent(found);
    await eventually(() => expect(port.received.at(-1)).toEqual(found));
  });

  it('keeps the call when machine detection fails to start', async () => {
    const { port, plane, logger } = startMedia();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    plane.session.onCommand = (command) => {
      if (command.startsWith('detect')) throw new Error('the worker is slow');
    };
    port.send({ type: 'detect-machine' });
    port.send({ type: 'finish' });
    await eventually(() => expect(port.received.map(({ type }) => type)).toEqual(['media.opened', 'media.finished']));
    expect(logger.lines).toMatchObject([{ level: 'error', fields: { command: 'detect-machine' } }]);
  });

  it('finishes with measurements and recording, then closes the session', async () => {
    const { port, plane } = startMedia();
    port.send({ type: 'record' });
    await eventually(() => expect(port.received).toHaveLength(2));
    plane.session.measured = { agent: QUALITY, customer: null };
    port.send({ type: 'finish' });
    await eventually(() => expect(port.received).toHaveLength(3));
    const { recordingId } = port.received[1]!;
    expect(port.received[2]).toEqual({
      type: 'media.finished',
      report: {
        quality: { agent: QUALITY, customer: null },
        recording: { recordingId, filePath: `/recordings/${recordingId}.wav`, bytes: 3_244, durationMs: 100 },
      },
    });
    expect(plane.session.closed).toBe(1);
  });

  it('monitors quality until just before the session closes', async () => {
    const { port, plane, call, watched } = startMedia();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    expect(watched).toEqual([call.row.callId]);
    port.send({ type: 'finish' });
    await eventually(() => expect(plane.session.closed).toBe(1));
    expect(watched).toEqual([call.row.callId, 'ended with 0 closed']);
  });

  it('finishes without measurements when measuring fails', async () => {
    const { port, plane } = startMedia();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    plane.session.onCommand = () => {
      throw new Error('the worker is gone');
    };
    port.send({ type: 'finish' });
    await eventually(() => expect(port.received).toHaveLength(2));
    expect(port.received[1]).toEqual({ type: 'media.finished', report: { quality: null, recording: null } });
  });

  it('forwards events of the media workers', async () => {
    const { port, plane } = startMedia();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    plane.session.options.onEvent({ type: 'media.lost', detail: 'the worker died' });
    plane.session.options.onEvent({ type: 'rtp.timeout', leg: 'agent', silentForMs: 20_000 });
    expect(port.received.slice(1)).toEqual([
      { type: 'media.lost', detail: 'the worker died' },
      { type: 'rtp.timeout', leg: 'agent', silentForMs: 20_000 },
    ]);
  });

  it('closes its session when the machine stops it', async () => {
    const { port, plane } = startMedia();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    port.stop();
    await eventually(() => expect(plane.session.closed).toBe(1));
  });

  it('closes a session that opens after the machine stopped it', async () => {
    const opening = Promise.withResolvers<void>();
    const { port, plane } = startMedia({
      prepare: (it) => {
        it.onOpen = () => opening.promise;
      },
    });
    port.stop();
    opening.resolve();
    await eventually(() => expect(plane.sessions[0]?.closed).toBe(1));
    expect(port.received).toEqual([]);
  });

  it("ties the session to the call's abort signal", async () => {
    const { plane, call } = startMedia();
    await eventually(() => expect(plane.sessions).toHaveLength(1));
    call.abort.abort();
    expect(plane.session.closed).toBe(1);
  });

  it('throws for a call outside the registry', () => {
    const { port } = startMedia({ registered: false });
    expect(port.failed).toHaveLength(1);
  });

  it('plays the recording beep after the recording starts, and a whisper after the beep', async () => {
    const tone = Promise.withResolvers<void>();
    const { port, plane, call } = startMedia({ row: { recordingBeep: true } });
    Object.assign(call.speech, { take: async () => new Int16Array(160) });
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onCommand = (command) => (command === 'beep agent customer' ? tone.promise : undefined);
    port.send({ type: 'record' });
    port.send({ type: 'say', speech: 'whisper' });
    port.send({ type: 'connect', leg: 'agent', media: remoteMedia() });
    await eventually(() => expect(plane.session.log.some((line) => line.startsWith('connect'))).toBe(true));
    await eventually(() => expect(plane.session.log).toContain('beep agent customer'));
    expect(plane.session.log.some((line) => line.startsWith('play'))).toBe(false);
    tone.resolve();
    await eventually(() => expect(plane.session.log.some((line) => line.startsWith('play'))).toBe(true));
  });

  it('queues a playback behind the recording beep', async () => {
    const tone = Promise.withResolvers<void>();
    const { port, plane, call } = startMedia({ row: { recordingBeep: true } });
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onCommand = (command) => (command === 'beep agent customer' ? tone.promise : undefined);
    port.send({ type: 'record' });
    sendPlay({ port, call });
    port.send({ type: 'connect', leg: 'agent', media: remoteMedia() });
    await eventually(() => expect(plane.session.log).toContain('connect agent 20000 done'));
    await eventually(() => expect(plane.session.log).toContain('beep agent customer'));
    expect(plane.session.log.some((line) => line.startsWith('play'))).toBe(false);
    tone.resolve();
    await eventually(() => expect(port.received.map(({ type }) => type)).toContain('playback.ended'));
  });

  it('plays a sound although the beep waits for a phone that has put the call on hold', async () => {
    const { port, plane, call, clock } = startMedia({ row: { recordingBeep: true } });
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onCommand = (command) => (command.startsWith('beep') ? new Promise<void>(() => {}) : undefined);
    port.send({ type: 'record' });
    sendPlay({ port, call });
    await eventually(() => expect(plane.session.log).toContain('beep agent customer'));
    clock.advance(2_000);
    await eventually(() => expect(port.received.map(({ type }) => type)).toContain('playback.ended'));
  });

  it('does not replace a beep that waits for an agent on hold by the whisper', async () => {
    const { port, plane, call, clock } = startMedia({ row: { recordingBeep: true } });
    Object.assign(call.speech, { take: async () => new Int16Array(160) });
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onCommand = (command) => (command.startsWith('beep') ? new Promise<void>(() => {}) : undefined);
    plane.session.onPlay = ({ ifListening }) => (ifListening ? 'not-listening' : 'played');
    port.send({ type: 'record' });
    port.send({ type: 'say', speech: 'whisper' });
    await eventually(() => expect(plane.session.log).toContain('beep agent customer'));
    clock.advance(2_000);
    await eventually(() =>
      expect(port.received.at(-1)).toEqual({
        type: 'speech.failed',
        speech: 'whisper',
        detail: 'the agent has put the call on hold',
      }),
    );
  });

  it('ends the sound that plays to a leg, and nothing for one without a sound', async () => {
    const { port, plane, call } = startMedia();
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onPlay = () => new Promise(() => {});
    sendPlay({ port, call });
    await eventually(() => expect(plane.session.log.some((line) => line.startsWith('play'))).toBe(true));
    port.send({ type: 'end-playback', leg: 'customer' });
    port.send({ type: 'end-playback', leg: 'agent' });
    port.send({ type: 'finish' });
    await eventually(() => expect(port.received.at(-1)).toMatchObject({ type: 'media.finished' }));
    expect(plane.session.playStops).toBe(1);
  });

  it("abandons a whisper that does not start, and keeps the agent's other audio", async () => {
    const { port, plane, call } = startMedia();
    Object.assign(call.speech, { take: () => new Promise(() => {}) });
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onPlay = () => new Promise(() => {});
    port.send({ type: 'say', speech: 'whisper' });
    sendPlay({ port, call });
    await eventually(() => expect(port.received.map(({ type }) => type)).toContain('control.done'));
    port.send({ type: 'stop-saying' });
    port.send({ type: 'connect', leg: 'agent', media: remoteMedia() });
    await eventually(() => expect(plane.session.log).toContain('connect agent 20000 done'));
    expect(plane.session.playStops).toBe(0);
  });

  it('reports a whisper that another sound replaced', async () => {
    const { port, plane, call } = startMedia();
    Object.assign(call.speech, { take: async () => new Int16Array(160) });
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onPlay = () => 'stopped';
    port.send({ type: 'say', speech: 'whisper' });
    await eventually(() =>
      expect(port.received.at(-1)).toEqual({
        type: 'speech.failed',
        speech: 'whisper',
        detail: 'another sound took its place',
      }),
    );
  });

  it('plays no beep when the recording fails to start', async () => {
    const { port, plane } = startMedia({ row: { recordingBeep: true } });
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onCommand = (command) => {
      if (command === 'record') throw new Error('the disk is full');
    };
    port.send({ type: 'record' });
    await eventually(() => expect(port.received.map(({ type }) => type)).toContain('recording.failed'));
    port.send({ type: 'finish' });
    await eventually(() => expect(port.received.map(({ type }) => type)).toContain('media.finished'));
    expect(plane.session.log.join()).not.toContain('beep');
  });

  it("reports a failed recording once, with the worker's reason", async () => {
    const { port, plane } = startMedia();
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onCommand = (command) => {
      if (command !== 'record') return;
      plane.session.options.onEvent({ type: 'recording.failed', detail: 'ENOSPC' });
      throw new Error('ENOSPC');
    };
    port.send({ type: 'record' });
    port.send({ type: 'finish' });
    await eventually(() => expect(port.received.map(({ type }) => type)).toContain('media.finished'));
    const failures = port.received.filter(({ type }) => type === 'recording.failed');
    expect(failures).toEqual([{ type: 'recording.failed', detail: 'ENOSPC' }]);
  });

  it('runs further commands while the recording file opens slowly', async () => {
    const opening = Promise.withResolvers<void>();
    const { port, plane } = startMedia();
    await eventually(() => expect(plane.sessions.length).toBe(1));
    plane.session.onCommand = (command) => (command === 'record' ? opening.promise : undefined);
    port.send({ type: 'record' });
    port.send({ type: 'connect', leg: 'customer', media: remoteMedia() });
    await eventually(() => expect(plane.session.log.some((line) => line.startsWith('connect'))).toBe(true));
    expect(port.received.map(({ type }) => type)).not.toContain('recording.started');
    opening.resolve();
    await eventually(() => expect(port.received.map(({ type }) => type)).toContain('recording.started'));
  });

  it('encrypts the recording when a key is configured', async () => {
    const { port, plane } = startMedia({ sealingKeys: createSealingKeys(Buffer.alloc(32, 1)) });
    await eventually(() => expect(plane.sessions.length).toBe(1));
    port.send({ type: 'record' });
    await eventually(() => expect(plane.session.log).toContain('record sealed'));
    await eventually(() => expect(plane.session.recordingPath).toMatch(/^\/recordings\/[0-9a-f-]{36}\.wav\.sealed$/));
  });
});

/** Does what the machine does for a playback to the agent. */
function sendPlay({ port, call }: Pick<ReturnType<typeof startMedia>, 'port' | 'call'>): void {
  call.sounds.set('play_1', new Int16Array(160));
  const control = { type: 'play', playbackId: 'play_1', legs: ['agent'], isLooped: false, characters: null } as const;
  port.send({ type: 'control', controlId: 'c1', control, talk: OPEN_TALK });
}

function startMedia({
  prepare,
  registered = true,
  row = {},
  sealingKeys = createSealingKeys(null),
}: {
  row?: Partial<CallRow>;
  sealingKeys?: SealingKeys;
  prepare?: (plane: FakeMediaPlane) => void;
  registered?: boolean;
} = {}) {
  const plane = new FakeMediaPlane();
  prepare?.(plane);
  const registry = createCallRegistry();
  const call = liveCall(callRow(row));
  if (registered) registry.add(call);
  const logger = createTestLogger();
  const clock = createTestClock();
  const watched: string[] = [];
  const quality: Pick<CallQualityLog, 'watch'> = {
    watch: ({ callId }) => {
      watched.push(callId);
      return { end: async () => void watched.push(`ended with ${plane.session.closed} closed`) };
    },
  };
  const parts = {
    mediaPlane: plane,
    registry,
    recordingsDir: '/recordings',
    sealingKeys,
    logger,
    quality,
    clock,
    onMeasured() {},
  };
  const port = runPort(mediaPort(parts), { callId: call.row.callId });
  return { port, plane, call, logger, clock, watched };
}
