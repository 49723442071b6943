import { randomUUID } from 'node:crypto';
import { fromCallback } from 'xstate';
import type { ControlRefusal, Talk, TalkControl } from '../machines/call-control.ts';
import type { CallEvent, MediaCommand, MediaReport, SpeechName } from '../machines/call-events.ts';
import { TandemError } from '../machines/errors.ts';
import { isLegName, type LegId, type LegQuality, type MediaEvent, type RemoteMedia } from '../machines/events.ts';
import type { MediaPlane, MediaSession, PartyId } from '../media/media-plane.ts';
import type { SealingKeys } from '../runtime/sealed-file/format.ts';
import { CallPlaybacks } from './call-playbacks.ts';
import type { CallRegistry } from './call-registry.ts';
import { CALL_PARTIES, RECORDING_CHANNELS, routingOf, talkRouting } from './call-routing.ts';
import { UnspokenError } from './call-speech.ts';
import type { Logger } from './logger.ts';
import { growingFile, sealedName } from './recordings/recording-names.ts';

/**
 * The call machine's `media` port: opens a session of the media plane, carries out commands strictly one after the
 * other, and passes the edges the workers post on to the call.
 */
export function mediaPort({ mediaPlane, registry, recordingsDir, sealingKeys, logger }: MediaPortOptions) {
  return fromCallback<MediaCommand, { callId: string }>(({ input: { callId }, receive, sendBack }) => {
    const tell = (event: CallEvent) => sendBack(event);
    const call = registry.get(callId);
    if (!call) throw new Error('a call without a registry entry has no media');
    let recordingId: string | null = null;
    /** What was measured of legs that have left. */
    const removed: Record<LegId, LegQuality> = {};
    let hasRecordingFailed = false;
    let session: MediaSession | null = null;
    /** What is being said, or about to be; a path that is set ends it. */
    let saying: { speech: SpeechName; isWithMedia: boolean } | null = null;
    /** Ends with the tone that announces the recording, if there is one. A whisper and played sounds wait for it. */
    let beeping: Promise<void> = Promise.resolve();
    const playbacks = new CallPlaybacks();
    /** The key presses to each leg that are being sent. */
    const pressing = new Map<LegId, { last: Promise<unknown>; waiting: number }>();

    async function open(): Promise<void> {
      try {
        session = await mediaPlane.openSession({
          sessionId: callId,
          parties: CALL_PARTIES,
          signal: call!.abort.signal,
          onEvent: pass,
        });
        call!.media = session;
        tell({
          type: 'media.opened',
          local: { agent: session.localOf('agent'), customer: session.localOf('customer') },
        });
      } catch (error) {
        logger.warn({ callId, err: error }, 'no media session could be opened');
        tell({ type: 'media.unavailable', detail: 'no media port is free' });
      }
    }

    function pass(event: MediaEvent<PartyId>): void {
      if (event.type === 'recording.failed') hasRecordingFailed = true;
      if (event.type !== 'playback.started') tell(event);
      else if (event.playbackId !== undefined) playbacks.begin(event.playbackId);
      else if (saying !== null && event.leg === 'agent') tell({ type: 'speech.started', speech: saying.speech });
    }

    /** Not waited for: a command that ends it must not come after it. */
    async function say(media: MediaSession, speech: SpeechName): Promise<void> {
      const turn = { speech, isWithMedia: false };
      saying = turn;
      try {
        const samples = await call!.speech.take(speech);
        await beeping;
        if (saying !== turn) return;
        turn.isWithMedia = true;
        const end = await media.play('agent', { samples, sampleRateHz: 16_000, over: speech === 'whisper' });
        if (saying !== turn) return;
        saying = null;
        if (end === 'played') tell({ type: 'speech.finished', speech });
        else tell({ type: 'speech.failed', speech, detail: 'another sound took its place' });
      } catch (error) {
        if (saying !== turn) return;
        saying = null;
        if (!(error instanceof UnspokenError))
          logger.error({ callId, speech, err: error }, 'announcement or whisper failed');
        const detail = error instanceof UnspokenError ? error.message : 'it could not be played';
        tell({ type: 'speech.failed', speech, detail });
      }
    }

    /** Leaves alone what else the agent hears. */
    async function stopSaying(media: MediaSession): Promise<void> {
      const isWithMedia = saying?.isWithMedia === true;
      saying = null;
      if (isWithMedia) await media.stopPlaying('agent');
    }

    /** Not waited for: a disk that is slow to open a file must not delay what follows, such as a re-INVITE. */
    async function record(media: MediaSession): Promise<void> {
      const id = randomUUID();
      const filePath = growingFile(recordingsDir, { id, isSealed: sealingKeys.isOn });
      const seal = sealingKeys.create(sealedName(filePath));
      await media.startRecording({ filePath, seal, channels: RECORDING_CHANNELS });
      recordingId = id;
      tell({ type: 'recording.started', recordingId: id });
    }

    async function beep(media: MediaSession): Promise<void> {
      if (recordingId === null) return;
      await media.beep(Object.keys(RECORDING_CHANNELS)).catch((error) => {
        logger.warn({ callId, err: error }, 'recording tone could not be played');
      });
    }

    function startRecording(media: MediaSession): void {
      const recording = record(media).catch((error) => onFailure('record', error));
      if (call!.row.recordingBeep) beeping = recording.then(() => beep(media));
    }

    /** Not waited for, as key presses take seconds; those of a leg follow one another. */
    async function carryOut(media: MediaSession, { controlId, control, talk }: ControlCommand): Promise<void> {
      try {
        const refusal = await perform(media, control, talk);
        if (refusal === null) {
          tell({ type: 'control.done', controlId, control });
          if (control.type === 'play') void awaitEnd(control.playbackId);
        } else tell({ type: 'control.failed', controlId, control, refusal });
      } catch (error) {
        logger.warn({ callId, control: control.type, err: error }, 'call control failed');
        tell({ type: 'control.failed', controlId, control, refusal: 'INTERNAL' });
      }
    }

    async function perform(media: MediaSession, control: TalkControl, talk: Talk): Promise<ControlRefusal | null> {
      if (control.type === 'dtmf') return await press(media, control);
      if (control.type === 'play') return await play(media, control);
      if (control.type === 'play.stop') return await playbacks.stop(media, control.playbackId);
      if (control.type === 'recording.pause' || control.type === 'recording.resume') {
        await media.pauseRecording(control.type === 'recording.pause');
      } else await media.setRouting(talkRouting(talk));
      return null;
    }

    async function press(
      media: MediaSession,
      { leg, digits, durationMs }: Extract<TalkControl, { type: 'dtmf' }>,
    ): Promise<ControlRefusal | null> {
      const line = pressing.get(leg) ?? { last: Promise.resolve(), waiting: 0 };
      pressing.set(leg, line);
      if (line.waiting >= MOST_WAITING_PRESSES) return 'CONTROL_BUSY';
      line.waiting += 1;
      const sending = line.last.then(() => media.sendDigits(leg, { digits, durationMs }));
      line.last = sending.catch(() => {});
      const end = await sending.finally(() => {
        line.waiting -= 1;
      });
      if (end === 'not-listening') return 'LEG_NOT_LISTENING';
      return end === 'played' ? null : 'INTERNAL';
    }

    async function play(media: MediaSession, control: Extract<TalkControl, { type: 'play' }>) {
      // Else one would end the other.
      await beeping;
      const samples = call!.sounds.get(control.playbackId);
      return samples === undefined ? 'INTERNAL' : await playbacks.play(media, control, samples);
    }

    /** Not waited for: it may take hours. */
    async function awaitEnd(playbackId: string): Promise<void> {
      const end = await playbacks.end(playbackId);
      if (end !== null) tell({ type: 'playback.ended', playbackId, end });
    }

    /** Not waited for: whoever is added must not delay those who talk. */
    async function addParty(media: MediaSession, legId: LegId): Promise<void> {
      try {
        tell({ type: 'guest.opened', legId, local: await media.addParty(legId) });
      } catch (error) {
        logger.warn({ callId, err: error }, 'no media port for another leg');
        const isFull = error instanceof TandemError && error.code === 'no_free_channel';
        tell({ type: 'guest.unavailable', legId, refusal: isFull ? 'no_free_channel' : 'INTERNAL' });
      }
    }

    async function removeParty(media: MediaSession, legId: LegId): Promise<void> {
      const quality = await media.removeParty(legId);
      if (quality !== null) removed[legId] = quality;
    }

    async function finish(media: MediaSession): Promise<MediaReport> {
      const { agent = null, customer = null, ...guests } = await media.quality();
      const summary = await media.stopRecording();
      await media.close();
      return {
        quality: { ...removed, ...guests, agent, customer },
        recording: summary && recordingId ? { recordingId, ...summary } : null,
      };
    }

    /** One of the two that the call is for must be connected; any other leg that cannot be is hung up. */
    async function connect(media: MediaSession, leg: LegId, remote: RemoteMedia): Promise<void> {
      try {
        await media.connectParty(leg, remote);
        if (!isLegName(leg)) tell({ type: 'guest.connected', legId: leg });
      } catch (error) {
        if (isLegName(leg)) throw error;
        logger.warn({ callId, err: error }, 'another leg could not be connected');
        tell({ type: 'guest.unconnected', legId: leg });
      }
    }

    async function obey(command: MediaCommand): Promise<void> {
      if (session === null) {
        if (command.type === 'finish') tell({ type: 'media.finished', report: NOTHING_MEASURED });
        return;
      }
      switch (command.type) {
        case 'connect':
          return await connect(session, command.leg, command.media);
        case 'add-party':
          return void addParty(session, command.leg);
        case 'remove-party':
          pressing.delete(command.leg);
          return await removeParty(session, command.leg);
        case 'route':
          return await session.setRouting(talkRouting(command.talk));
        case 'say':
          return void say(session, command.speech);
        case 'stop-saying':
          return await stopSaying(session);
        case 'path':
          saying = null;
          await session.stopPlaying('agent');
          return await session.setRouting(routingOf(command.path));
        case 'record':
          return startRecording(session);
        case 'detect-machine':
          return await session.detectMachine('customer');
        case 'control':
          return void carryOut(session, command);
        case 'finish':
          saying = null;
          return tell({ type: 'media.finished', report: await finish(session) });
      }
    }

    function onFailure(command: MediaCommand['type'], error: unknown): void {
      logger.error({ callId, command, err: error }, 'media command failed');
      if (command === 'record') {
        // The worker that could not open the file has reported why.
        if (!hasRecordingFailed) tell({ type: 'recording.failed', detail: 'the recording could not be started' });
      } else if (command === 'finish') tell({ type: 'media.finished', report: NOTHING_MEASURED });
      else if (command === 'connect') tell({ type: 'media.lost', detail: 'a leg could not be connected' });
    }

    let queue = open();
    receive((command) => {
      queue = queue.then(() => obey(command)).catch((error) => onFailure(command.type, error));
    });
    return () => {
      void queue
        .then(() => session?.close())
        .catch((error) => logger.warn({ callId, err: error }, 'closing media failed'));
    };
  });
}

/** Requests to press keys on a leg that wait for those before them. */
const MOST_WAITING_PRESSES = 8;

type ControlCommand = Extract<MediaCommand, { type: 'control' }>;

interface MediaPortOptions {
  mediaPlane: MediaPlane;
  registry: CallRegistry;
  /** Where recordings grow while their call runs. */
  recordingsDir: string;
  sealingKeys: SealingKeys;
  logger: Logger;
}

const NOTHING_MEASURED: MediaReport = { quality: null, recording: null };
