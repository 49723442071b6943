import { randomUUID } from 'node:crypto';
import { fromCallback } from 'xstate';
import type { ControlRefusal, Talk, TalkControl } from '../machines/call-control.ts';
import type { CallEvent, MediaCommand, MediaReport, SpeechName } from '../machines/call-events.ts';
import { TandemError } from '../machines/errors.ts';
import { isLegName, type LegId, type LegQuality, type MediaEvent, type RemoteMedia } from '../machines/events.ts';
import { pressesMs } from '../media/dsp/dtmf-tones.ts';
import type { KeyPresses, MediaMeasurement, MediaPlane, MediaSession, PartyId } from '../media/media-plane.ts';
import { clamp } from '../runtime/clamp.ts';
import { Gate } from '../runtime/gate.ts';
import type { SealingKeys } from '../runtime/sealed-file/format.ts';
import { LATE, type Timers, within } from '../runtime/waiting.ts';
import { CallPlaybacks } from './call-playbacks.ts';
import type { CallQualityLog, QualityWatch } from './call-quality.ts';
import type { CallRegistry, LiveCall } from './call-registry.ts';
import { CALL_PARTIES, listenersOf, RECORDING_CHANNELS, routingOf, talkRouting } from './call-routing.ts';
import { SpeechUnavailableError } from './call-speech.ts';
import type { Logger } from './logger.ts';
import { growingFile, sealedName } from './recordings/recording-names.ts';

/**
 * The call machine's `media` port: opens a media session, runs its commands strictly in order and passes events of the
 * media workers to the call.
 */
export function mediaPort({
  mediaPlane,
  registry,
  quality: qualityLog,
  recordingsDir,
  sealingKeys,
  onMeasured,
  clock,
  logger,
}: MediaPortOptions) {
  return fromCallback<MediaCommand, { callId: string }>(({ input: { callId }, receive, sendBack }) => {
    const send = (event: CallEvent) => sendBack(event);
    const call = registry.get(callId);
    if (!call) throw new Error('a call without a registry entry has no media');
    let recordingId: string | null = null;
    /** Quality of legs that have left. */
    const removed: Record<LegId, LegQuality> = {};
    let hasRecordingFailed = false;
    let session: MediaSession | null = null;
    let watch: QualityWatch | null = null;
    /** The announcement or whisper that is playing or being prepared. Setting a path ends it. */
    let currentSpeech: { speech: SpeechName; isWithMedia: boolean } | null = null;
    /** Resolves when the recording tone, if any, has ended. Whispers and sounds wait for it. */
    let beeping: Promise<unknown> = Promise.resolve();
    const playbacks = new CallPlaybacks();
    const pressing = new Gate({ inAll: Infinity, perLane: 1, waitingPerLane: MOST_WAITING_PRESSES - 1 });

    async function open(): Promise<void> {
      try {
        session = await mediaPlane.openSession({
          sessionId: callId,
          parties: CALL_PARTIES,
          signal: call!.abort.signal,
          onEvent: pass,
          onMeasured: (measurement) => onMeasured(call!, measurement),
        });
        call!.media = session;
        watch = qualityLog.watch({ callId, media: session, signal: call!.abort.signal });
        send({
          type: 'media.opened',
          local: { agent: session.localOf('agent'), customer: session.localOf('customer') },
        });
      } catch (error) {
        logger.warn({ callId, err: error }, 'no media session could be opened');
        send({ type: 'media.unavailable', detail: 'no media port is free' });
      }
    }

    function pass(event: MediaEvent<PartyId>): void {
      if (event.type === 'recording.failed') hasRecordingFailed = true;
      if (event.type !== 'playback.started') send(event);
      else if (event.playbackId !== undefined) playbacks.begin(event.playbackId);
      else if (currentSpeech !== null && event.leg === 'agent')
        send({ type: 'speech.started', speech: currentSpeech.speech });
    }

    /** Do not await it, or the command that ends it would queue behind it. */
    async function playSpeech(media: MediaSession, speech: SpeechName): Promise<void> {
      const turn = { speech, isWithMedia: false };
      currentSpeech = turn;
      try {
        const samples = await call!.speech.take(speech);
        // The tone may still wait for an agent on hold. A whisper that waits, too, would take its place.
        const ifListening = (await beeping) === LATE;
        if (currentSpeech !== turn) return;
        turn.isWithMedia = true;
        const over = speech === 'whisper';
        const end = await media.play('agent', { samples, sampleRateHz: 16_000, over, ifListening });
        if (currentSpeech !== turn) return;
        currentSpeech = null;
        if (end === 'played') send({ type: 'speech.finished', speech });
        else {
          const detail =
            end === 'not-listening' ? 'the agent has put the call on hold' : 'another sound took its place';
          send({ type: 'speech.failed', speech, detail });
        }
      } catch (error) {
        if (currentSpeech !== turn) return;
        currentSpeech = null;
        if (!(error instanceof SpeechUnavailableError))
          logger.error({ callId, speech, err: error }, 'announcement or whisper failed');
        const detail = error instanceof SpeechUnavailableError ? error.message : 'it could not be played';
        send({ type: 'speech.failed', speech, detail });
      }
    }

    /** Keeps other sounds that the agent hears. */
    async function stopSpeech(media: MediaSession): Promise<void> {
      const isWithMedia = currentSpeech?.isWithMedia === true;
      currentSpeech = null;
      if (isWithMedia) await media.stopPlaying('agent');
    }

    /** Do not await it: a disk slow to open a file must not delay later commands, such as a re-INVITE. */
    async function record(media: MediaSession): Promise<void> {
      const id = randomUUID();
      const filePath = growingFile(recordingsDir, { id, isSealed: sealingKeys.isOn });
      const seal = sealingKeys.create(sealedName(filePath));
      await media.startRecording({ filePath, seal, channels: RECORDING_CHANNELS });
      recordingId = id;
      send({ type: 'recording.started', recordingId: id });
    }

    async function beep(media: MediaSession): Promise<void> {
      if (recordingId === null) return;
      await media.beep(Object.keys(RECORDING_CHANNELS)).catch((error) => {
        logger.warn({ callId, err: error }, 'recording tone could not be played');
      });
    }

    function startRecording(media: MediaSession): void {
      const recording = record(media).catch((error) => onFailure('record', error));
      // A phone that has put the call on hold gets the tone when it is back. The other one must not wait for that.
      if (call!.row.recordingBeep) beeping = recording.then(() => within(beep(media), { ms: BEEP_TIMEOUT_MS, clock }));
    }

    /** Do not await it: key presses take seconds. Those of one leg run in order. */
    async function carryOut(media: MediaSession, { controlId, control, talk }: ControlCommand): Promise<void> {
      try {
        const refusal = await perform(media, control, talk);
        if (refusal === null) {
          send({ type: 'control.done', controlId, control });
          if (control.type === 'play') void awaitEnd(control.playbackId);
        } else send({ type: 'control.failed', controlId, control, refusal });
      } catch (error) {
        logger.warn({ callId, control: control.type, err: error }, 'call control failed');
        send({ type: 'control.failed', controlId, control, refusal: 'INTERNAL' });
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
      { leg, digits, durationMs, yields = false }: KeyPresses & { leg: LegId },
    ): Promise<ControlRefusal | null> {
      if (pressing.outlook(leg) === 'full') return 'CONTROL_BUSY';
      const end = await pressing.run(() => media.sendDigits(leg, { digits, durationMs, yields }), { lane: leg });
      if (end === 'not-listening') return 'LEG_NOT_LISTENING';
      return end === 'played' ? null : 'INTERNAL';
    }

    /** Do not await it. A party that has us on hold, hears a sound or gets too many presses may miss this one. */
    function passOn(media: MediaSession, { leg, digit, durationMs, talk }: PressCommand): void {
      for (const listener of listenersOf(leg, talk)) {
        const heldMs = clamp(durationMs, LEAST_PASSED_PRESS_MS, LONGEST_PASSED_PRESS_MS);
        press(media, { leg: listener, digits: digit, durationMs: heldMs, yields: true }).catch((error) => {
          logger.warn({ callId, err: error }, 'key press could not be passed on');
        });
      }
    }

    async function play(media: MediaSession, control: Extract<TalkControl, { type: 'play' }>) {
      // Otherwise one sound would end the other.
      await beeping;
      const samples = call!.sounds.get(control.playbackId);
      return samples === undefined ? 'INTERNAL' : await playbacks.play(media, control, samples);
    }

    /** Do not await it: a sound may last hours. */
    async function awaitEnd(playbackId: string): Promise<void> {
      const end = await playbacks.end(playbackId);
      if (end !== null) send({ type: 'playback.ended', playbackId, end });
    }

    /** Do not await it: adding a leg must not delay the others. */
    async function addParty(media: MediaSession, legId: LegId): Promise<void> {
      try {
        send({ type: 'guest.opened', legId, local: await media.addParty(legId) });
      } catch (error) {
        logger.warn({ callId, err: error }, 'no media port for another leg');
        const isFull = error instanceof TandemError && error.code === 'no_free_channel';
        send({ type: 'guest.unavailable', legId, refusal: isFull ? 'no_free_channel' : 'INTERNAL' });
      }
    }

    async function removeParty(media: MediaSession, legId: LegId): Promise<void> {
      const quality = await media.removeParty(legId);
      if (quality !== null) removed[legId] = quality;
    }

    async function finish(media: MediaSession): Promise<MediaReport> {
      await watch?.end();
      const { agent = null, customer = null, ...guests } = await media.quality();
      const summary = await media.stopRecording();
      await media.close();
      return {
        quality: { ...removed, ...guests, agent, customer },
        recording: summary && recordingId ? { recordingId, ...summary } : null,
      };
    }

    /** If agent or customer cannot be connected, the call ends. Any other leg is hung up. */
    async function connect(media: MediaSession, leg: LegId, remote: RemoteMedia): Promise<void> {
      try {
        await media.connectParty(leg, remote);
        if (!isLegName(leg)) send({ type: 'guest.connected', legId: leg });
      } catch (error) {
        if (isLegName(leg)) throw error;
        logger.warn({ callId, err: error }, 'another leg could not be connected');
        send({ type: 'guest.unconnected', legId: leg });
      }
    }

    async function execute(command: MediaCommand): Promise<void> {
      if (session === null) {
        if (command.type === 'finish') send({ type: 'media.finished', report: NOTHING_MEASURED });
        return;
      }
      switch (command.type) {
        case 'connect':
          return await connect(session, command.leg, command.media);
        case 'add-party':
          return void addParty(session, command.leg);
        case 'remove-party':
          return await removeParty(session, command.leg);
        case 'route':
          return await session.setRouting(talkRouting(command.talk));
        case 'say':
          return void playSpeech(session, command.speech);
        case 'stop-saying':
          return await stopSpeech(session);
        case 'end-playback':
          return await playbacks.endAt(session, command.leg);
        case 'path':
          currentSpeech = null;
          await session.stopPlaying('agent');
          return await session.setRouting(routingOf(command.path));
        case 'record':
          return startRecording(session);
        case 'detect-machine':
          return await session.detectMachine('customer');
        case 'control':
          return void carryOut(session, command);
        case 'press':
          return passOn(session, command);
        case 'finish':
          currentSpeech = null;
          return send({ type: 'media.finished', report: await finish(session) });
      }
    }

    function onFailure(command: MediaCommand['type'], error: unknown): void {
      logger.error({ callId, command, err: error }, 'media command failed');
      if (command === 'record') {
        // The worker that could not open the file has reported the reason.
        if (!hasRecordingFailed) send({ type: 'recording.failed', detail: 'the recording could not be started' });
      } else if (command === 'finish') send({ type: 'media.finished', report: NOTHING_MEASURED });
      else if (command === 'connect') send({ type: 'media.lost', detail: 'a leg could not be connected' });
    }

    let queue = open();
    receive((command) => {
      queue = queue.then(() => execute(command)).catch((error) => onFailure(command.type, error));
    });
    return () => {
      void queue
        .then(() => session?.close())
        .catch((error) => logger.warn({ callId, err: error }, 'closing media failed'));
    };
  });
}

/** The tone takes half a second. */
const BEEP_TIMEOUT_MS = 2_000;
/** Key press requests per leg, with the one that is being sent. */
const MOST_WAITING_PRESSES = 8;
/** Longest that a request waits for those before it: the most digits that the API takes, at the longest. */
export const PRESSES_AHEAD_MS = (MOST_WAITING_PRESSES - 1) * pressesMs('0'.repeat(64), 2_000);

/** Long enough for any detector. */
const LEAST_PASSED_PRESS_MS = 80;
/** A longer one would silence the listener for as long. */
const LONGEST_PASSED_PRESS_MS = 1_000;

type PressCommand = Extract<MediaCommand, { type: 'press' }>;
type ControlCommand = Extract<MediaCommand, { type: 'control' }>;

export interface MediaPortOptions {
  mediaPlane: MediaPlane;
  registry: CallRegistry;
  quality: Pick<CallQualityLog, 'watch'>;
  recordingsDir: string;
  sealingKeys: SealingKeys;
  onMeasured: (call: LiveCall, measurement: MediaMeasurement) => void;
  clock: Timers;
  logger: Logger;
}

const NOTHING_MEASURED: MediaReport = { quality: null, recording: null };
